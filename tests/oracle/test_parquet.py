"""Rows of directories of plain Parquet against the rows in memory; Spark's readers are kept from judging them."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oracle import parquet, reading, tables
from oracle.spark_answers import matching_files
from oracle.verdict_checks import Conditions, draw_predicates
from oracle.verdicts import Queries
from planner import plans

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

# By the statistics of row groups, Spark itself loses NaN of files that pyarrow wrote.
BLIND = {"spark.sql.parquet.filterPushdown": "false", "spark.sql.ansi.enabled": "false"}
LEGACY = {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY", "spark.sql.parquet.int96RebaseModeInRead": "LEGACY"}


@pytest.fixture(autouse=True)
def without_row_group_pruning(spark):
    with plans.conf(spark, **BLIND):
        yield


def rows(spark, relation: str, condition: str) -> list[str]:
    return sorted(row[0] for row in spark.sql(f"SELECT to_json(struct(*)) FROM {relation} WHERE {condition}").collect())


def check(spark, relation: str, conditions: list[str]) -> None:
    spark.sql(f"SELECT * FROM {relation}").localCheckpoint().createOrReplaceTempView("held_parquet")
    for condition in conditions:
        assert rows(spark, relation, condition) == rows(spark, "held_parquet", condition), condition


@pytest.mark.slow
@pytest.mark.parametrize("kind", parquet.KINDS)
def test_rows_are_those_in_memory(spark, tmp_path, request, kind):
    rng = Random(f"{request.config.getoption('--oracle-seed')}/{kind}")
    subject = parquet.create(spark, kind, 12, tmp_path, rng)
    drawn = [p.sql() for p in draw_predicates(subject, 10, Conditions("UTC", ansi=False), rng)]
    conditions = [p for p, truth in zip(drawn, matching_files(spark, subject, drawn), strict=True) if truth is not None]
    check(spark, subject.relation, conditions)
    assert any(Queries(spark, subject).skipped_files(conditions))


@pytest.mark.slow
def test_the_old_calendar_reads_other_values_than_were_analyzed(spark, tmp_path):
    days = [-719162, -141430, 0, 18000]
    for number, day in enumerate(days):
        instant = pa.array([day * 86_400_000_000], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"d": pa.array([day], pa.date32()), "t": instant}), tmp_path / f"{number}.parquet")
    relation = f"parquet.`{tmp_path}`"
    subject = tables.observe(spark, "legacy", relation, "input_file_name()", root=tmp_path)
    parquet.statistics(subject).write()
    conditions = [
        "d = DATE '0001-01-01'",
        "d < DATE '1582-10-15'",
        "d > DATE '1970-01-01'",
        "year(t) < 1500",
        "d IS NULL",
    ]
    check(spark, relation, conditions)
    assert any(Queries(spark, subject).skipped_files(conditions))
    with plans.conf(spark, **LEGACY):
        check(spark, relation, conditions)
        assert not any(Queries(spark, subject).skipped_files(conditions))


@pytest.mark.slow
def test_partitions_are_sparks_and_the_rest_is_ours(spark, tmp_path):
    subject = parquet.create(spark, "parquet partitioned", 20, tmp_path, Random(1))
    part = f"`{parquet.PARTITION}`"
    conditions = [f"{part} = 'a/b=c' AND file_no > 5", f"{part} IS NULL", f"{part} = 'null' OR file_no = 3"]
    conditions += [
        f"{part} IN ('a b', 'a%2Fb') AND file_no <= 12",
        f"{part} <=> NULL AND file_no = 7",
        f"{part} LIKE 'a%'",
    ]
    check(spark, subject.relation, conditions)
    for condition in conditions:
        [opened] = reading.files(spark.sql(f"SELECT * FROM {subject.relation} WHERE {condition}"))
        verdicts = Queries(spark, subject).file_verdicts(condition)
        assert opened == {file for file, is_kept in verdicts.items() if is_kept}, condition
    assert len(Queries(spark, subject).read(conditions[0])) < len(Queries(spark, subject).file_verdicts(conditions[0]))


def test_char_is_padded_when_read_and_varchar_is_not(spark, tmp_path):
    for number, text in enumerate(["ab", "ab   ", "abc", "b", None]):
        columns = {"file_no": [number], "c": pa.array([text], pa.string()), "v": pa.array([text], pa.string())}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    stored = tables.observe(spark, "char", f"parquet.`{tmp_path}`", "input_file_name()", root=tmp_path)
    parquet.statistics(stored).write()
    spark.sql(f"CREATE TABLE oracle_char (file_no BIGINT, c CHAR(5), v VARCHAR(9)) USING parquet LOCATION '{tmp_path}'")
    try:
        conditions = [
            "c = 'ab'",
            "c = 'ab   '",
            "c > 'ab'",
            "c >= 'ab  '",
            "c <> 'ab'",
            "c IN ('ab', 'zz')",
            "c < 'ab '",
        ]
        conditions += ["c LIKE 'ab%'", "c LIKE 'ab'", "NOT (c <=> 'ab')", "c IS NULL", "v = 'ab'", "v > 'ab'", "v = c"]
        check(spark, "oracle_char", conditions)
        df = spark.sql("SELECT * FROM oracle_char WHERE v = 'ab'")
        assert plans.labels(df) == ["5 -> 1 files"]
        assert len(reading.files(df)[0]) == 1
    finally:
        spark.sql("DROP TABLE oracle_char")
