"""UPDATE, DELETE and MERGE read the data files that hold a row to change, and no others."""

from __future__ import annotations

import itertools

import pytest

import lakes
import metastore
from commands.random_commands import SOURCE
from commands.targets import WITHOUT_US, Target, parameters
from commands.twins import FILES, fill, read_by
from planner.plans import conf

pytestmark = pytest.mark.spark

_names = itertools.count()
MERGED = "MERGE INTO {t} t USING " + SOURCE + " s ON t.id = s.k "
MATCHED = MERGED + "WHEN MATCHED THEN UPDATE SET x = -1"


@pytest.fixture(scope="module", params=parameters("copy-on-write", "merge-on-read", "delta-vectors"))
def filled(spark, request):
    target = fill(spark, request.param, f"files_read_{next(_names)}")
    yield target
    target.drop()


@pytest.fixture
def target(filled):
    """The same files before each test."""
    before = filled.version()
    yield filled
    if filled.version() != before:
        filled.restore(before)


@pytest.fixture
def source(spark):
    """Three keys of rows that there are."""
    spark.range(100, 1000, 300).selectExpr("id k", "CAST(id AS INT) code").createOrReplaceTempView(SOURCE)


def file_column(target: Target) -> str:
    return "_file" if target.kind.format == "iceberg" else "_metadata.file_path"


def files_with(target: Target, condition: str) -> int:
    """Data files with a row that satisfies a condition."""
    with conf(target.spark, **WITHOUT_US):
        return len(
            target.spark.sql(f"SELECT DISTINCT {file_column(target)} FROM {target.name} WHERE {condition}").collect()
        )


@pytest.mark.parametrize("condition", ["s = md5('78')", "id BETWEEN 300 AND 302"])
def test_conditions_find_their_files(target, condition):
    needed = files_with(target, condition)
    assert read_by(target, f"UPDATE {{t}} SET x = x + 1 WHERE {condition}", "conditions") == needed < FILES


def test_keys_of_a_merge_find_their_files(target, source):
    needed = files_with(target, f"id IN (SELECT k FROM {SOURCE})")
    assert read_by(target, MATCHED, "all") == needed < FILES


INSERTS = " WHEN NOT MATCHED THEN INSERT (id, code) VALUES (s.k, s.code)"


def test_keys_find_the_files_of_an_upsert(target, source):
    needed = files_with(target, f"id IN (SELECT k FROM {SOURCE})")
    assert read_by(target, MATCHED + INSERTS, "all") == needed < FILES


def test_keys_of_an_iceberg_table_find_the_files_of_an_upsert(target, source):
    if target.kind.format != "iceberg":
        pytest.skip("of targets whose source is read twice")
    target.spark.sql(f"CREATE OR REPLACE TABLE ice.db.new_rows USING iceberg AS SELECT * FROM {SOURCE}")
    needed = files_with(target, f"id IN (SELECT k FROM {SOURCE})")
    statement = (MATCHED + INSERTS).replace(SOURCE, "ice.db.new_rows")
    assert read_by(target, statement, "all") == needed < FILES
    target.spark.sql("DROP TABLE ice.db.new_rows")


def test_keys_find_the_files_of_a_merge_that_inserts_alone(target, source):
    needed = files_with(target, f"id IN (SELECT k FROM {SOURCE})")
    assert read_by(target, MERGED + INSERTS, "all") == needed < FILES


@pytest.mark.parametrize(
    "changing",
    ["SELECT first(k) k, code FROM {s} GROUP BY code", "SELECT * FROM keys_in_catalog", "SELECT * FROM cached"],
)
def test_keys_of_a_source_that_may_change_find_no_files_of_an_upsert(target, source, changing):
    """Spark broadcasts no source of an upsert; a second query for the keys may get others."""
    if target.kind.name != "merge-on-read":
        pytest.skip("of targets whose source is read twice")
    target.spark.sql(f"CREATE TABLE keys_in_catalog USING parquet AS SELECT * FROM {SOURCE}")
    target.spark.sql(f"CACHE TABLE cached AS SELECT * FROM {SOURCE}")
    target.spark.sql(changing.format(s=SOURCE)).createOrReplaceTempView(SOURCE)
    assert read_by(target, MATCHED + INSERTS, "all") == FILES
    target.spark.sql("DROP TABLE keys_in_catalog")
    target.spark.sql("DROP VIEW cached")


@pytest.mark.parametrize("key", [pytest.param("t.id = s.k", marks=pytest.mark.campaign), "t.s = s.s"])
def test_thousands_of_keys_find_their_files(target, key, tmp_path):
    """The keys of five files, which bounds do not tell apart."""
    rows = target.spark.table(target.name).selectExpr("id k", "s", "code", f"{file_column(target)} file").collect()
    files = sorted({row.file for row in rows})[:5]
    keys = [(row.k, row.s, row.code) for row in rows if row.file in files]
    assert len(keys) > 1000
    target.spark.createDataFrame(keys, "k BIGINT, s STRING, code INT").write.parquet(str(tmp_path / "keys"))
    target.spark.read.parquet(str(tmp_path / "keys")).createOrReplaceTempView(SOURCE)
    statement = f"MERGE INTO {{t}} t USING {SOURCE} s ON {key} WHEN MATCHED THEN UPDATE SET x = -1"
    assert read_by(target, statement, "all") == len(files)


def test_without_keys_a_merge_reads_every_file(target, source):
    assert read_by(target, MATCHED, "conditions") == FILES


def test_conditions_on_the_target_count_in_a_merge(target, source):
    if target.kind.format == "delta":
        pytest.skip("Delta numbers the rows of the target below its conditions")
    statement = MERGED + "AND t.s = md5('400') WHEN MATCHED THEN DELETE"
    assert read_by(target, statement, "conditions") == 1


def test_rows_that_no_source_matches_are_looked_for_everywhere(target, source):
    statement = MATCHED + " WHEN NOT MATCHED BY SOURCE AND t.id = 7 THEN DELETE"
    assert read_by(target, statement, "all") == FILES


def test_switched_off_every_file_is_read(target):
    assert read_by(target, "DELETE FROM {t} WHERE s = md5('78')", "off") == FILES


@pytest.mark.parametrize(("property_value", "read"), [("off", FILES), ("all", 1), ("everything", FILES)])
def test_a_table_property_can_only_restrict(target, property_value, read):
    target.spark.sql(f"ALTER TABLE {target.name} SET TBLPROPERTIES ('metastore.pruning.rowLevel' = '{property_value}')")
    assert read_by(target, "DELETE FROM {t} WHERE s = md5('78')", "conditions") == read
    target.spark.sql(f"ALTER TABLE {target.name} UNSET TBLPROPERTIES ('metastore.pruning.rowLevel')")


def explained(target: Target, statement: str, mode: str) -> int:
    """Data files of the target that a statement would read, as `explain` tells them without running it."""
    before = target.version()
    with conf(target.spark, spark__metastore__pruning__rowLevel=mode):
        rows = metastore.explain(target.spark, statement.format(t=target.name))
    assert target.version() == before
    short = target.name.rsplit(".", 1)[-1]
    of_files = [row for row in rows if row["path"] and short in row["table"]]
    if not of_files:  # the scan is left alone
        return FILES
    first = min(row["scan"] for row in of_files)
    return sum(row["kept"] for row in of_files if row["scan"] == first)


@pytest.mark.parametrize(
    "statement", ["UPDATE {t} SET x = 0 WHERE s = md5('78')", "DELETE FROM {t} WHERE s = md5('78')"]
)
def test_explain_tells_what_a_command_would_read(target, statement):
    assert explained(target, statement, "conditions") == 1
    assert explained(target, statement, "off") == FILES


def test_explain_tells_that_keys_choose_when_a_merge_runs(target, source):
    assert explained(target, MATCHED, "all") == FILES
    with conf(target.spark, spark__metastore__pruning__rowLevel="all"):
        rows = metastore.explain(target.spark, MATCHED.format(t=target.name))
    assert len({row["path"] for row in rows if row["path"]}) == FILES


@pytest.mark.parametrize("mode", ["off", "all"])
def test_a_sub_query_that_is_planned_by_queries_of_its_own(target, source, mode):
    """Delta runs queries while the command is planned: the setting counts all the same."""
    if target.kind.name != "copy-on-write" or "delta" not in lakes.FORMATS:
        pytest.skip("of Iceberg's target and Delta's sub-query")
    target.spark.sql(f"CREATE TABLE keys_of_delta USING delta AS SELECT * FROM {SOURCE}")
    needed = files_with(target, f"id IN (SELECT k FROM {SOURCE})") if mode == "all" else FILES
    assert read_by(target, "DELETE FROM {t} WHERE id IN (SELECT k FROM keys_of_delta)", mode) == needed
    target.spark.sql("DROP TABLE keys_of_delta")


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM {t} WHERE s = md5('78')", "UPDATE {t} SET x = x + 1 WHERE id BETWEEN 300 AND 302", MATCHED],
)
def test_a_plan_that_is_optimized_twice_stays_the_same(target, source, statement):
    """Spark's test mode repeats each batch of rules that runs once, and refuses another plan."""
    if target.kind.format == "delta":
        pytest.skip("Delta plans its commands by queries of its own")
    system = target.spark._jvm.System
    system.setProperty("spark.testing", "true")
    try:
        plan = target.spark.sql("EXPLAIN " + statement.format(t=target.name)).head()[0]
    finally:
        system.clearProperty("spark.testing")
    assert "Error occurred" not in plan
