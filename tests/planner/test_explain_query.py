"""`ExplainQuery`: which data files a query would read, and why, without running it."""

from __future__ import annotations

import pytest

import metastore
from metastore.jvm_session import find_shim_package
from planner.plans import conf, labels, plain, rows

pytestmark = pytest.mark.spark


def decisions(spark, query: str) -> list[dict[str, object]]:
    decisions_of_shim = find_shim_package(spark).explain.ExplainQuery.decisions(spark._jsparkSession, query)
    names = ("scan", "table", "path", "kept", "reason", "conjunct", "statistic", "rows")
    return [
        {n: _plain(getattr(decisions_of_shim.apply(i), n)()) for n in names} for i in range(decisions_of_shim.size())
    ]


def _plain(value):
    if hasattr(value, "isDefined"):
        return value.get() if value.isDefined() else None
    return value


def test_every_file_has_a_reason(spark, analyzed):
    explained = decisions(spark, f"SELECT * FROM {analyzed} WHERE id = 5 AND v >= 0")
    assert [d["kept"] for d in explained] == [True, False, False, False] or sum(d["kept"] for d in explained) == 1
    assert {d["reason"] for d in explained} == {"SKIPPED", "KEPT_MAY_MATCH"}
    skipped = next(d for d in explained if not d["kept"])
    assert "id" in skipped["conjunct"]
    assert "5" in skipped["conjunct"]
    assert skipped["statistic"]
    assert skipped["rows"] == 100
    assert skipped["path"].endswith(".parquet")
    assert skipped["table"] == analyzed


def test_the_sentence_of_a_file_that_is_read_names_what_has_no_rule(spark, analyzed):
    sentences = {row["kept"]: row["sentence"] for row in metastore.explain(
        spark, f"SELECT * FROM {analyzed} WHERE id = 5 AND id % 2 <> v % 2 AND rand(1) < 2 + v")}  # fmt: skip
    assert sentences[False].startswith(f"no row can match ({analyzed}.id = 5L) because of id in [")
    assert sentences[True].startswith("rows may match; there is no rule for ")
    assert sentences[True].endswith("is not deterministic")


@pytest.mark.slow
def test_the_table_is_a_name_and_nothing_else(spark, analyzed, tmp_path):
    spark.range(10).write.parquet(f"{tmp_path}/p")
    spark.range(10).write.format("delta").save(f"{tmp_path}/d")
    spark.sql("CREATE TABLE named USING parquet AS SELECT id FROM range(10)")
    try:
        for table, expected in {
            analyzed: analyzed,
            f"{analyzed}.files": f"{analyzed}.files",
            "named": "spark_catalog.default.named",
            f"parquet.`{tmp_path}/p`": f"parquet.`file:{tmp_path}/p`",
            f"delta.`{tmp_path}/d`": f"delta.`file:{tmp_path}/d`",
        }.items():
            for setting in ("true", "false"):
                with conf(spark, spark__metastore__pruning__enabled=setting):
                    explained = decisions(spark, f"SELECT * FROM {table}")
                assert {d["table"] for d in explained} == {expected}
    finally:
        spark.sql("DROP TABLE named")


def test_each_scan_has_its_own_rows(spark, analyzed):
    query = f"SELECT * FROM {analyzed} a JOIN {analyzed} b ON a.v = b.v WHERE a.id < 50 AND b.id >= 200"
    explained = decisions(spark, query)
    assert {d["scan"] for d in explained} == {0, 1}
    assert sorted(sum(d["kept"] for d in explained if d["scan"] == s) for s in (0, 1)) == [1, 2]


def test_a_scan_that_is_left_alone_says_why(spark, four_files):
    assert {d["reason"] for d in decisions(spark, f"SELECT * FROM {four_files} WHERE id = 5")} == {"NO_STATISTICS"}


def test_commands_are_planned_and_never_run(spark, analyzed):
    explained = decisions(spark, f"INSERT INTO {analyzed} SELECT * FROM {analyzed} WHERE id = 5")
    assert {d["reason"] for d in explained} <= {"INSIDE_WRITE"}
    assert spark.table(analyzed).count() == 400


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE ice.db.explained_as USING iceberg AS SELECT * FROM {t} WHERE id = 5",
        "CREATE TABLE explained_as USING delta AS SELECT * FROM {t} WHERE id = 5",
        "CREATE TABLE explained_as USING parquet AS SELECT * FROM {t} WHERE id = 5",
        "INSERT INTO {t} SELECT * FROM {t}",
        "INSERT OVERWRITE {t} TABLE {t}",
    ],
)
def test_reads_of_writes_say_why_they_are_left_alone(spark, analyzed, statement):
    query = statement.format(t=analyzed)
    explained = decisions(spark, query)
    assert [(d["reason"], d["kept"]) for d in explained] == [("INSIDE_WRITE", True)] * 4
    assert spark.table(analyzed).count() == 400
    if "SELECT" in query and "WHERE" in query:
        with conf(spark, spark__metastore__pruneInsideWrites=True):
            assert sorted(d["kept"] for d in decisions(spark, query)) == [False, False, False, True]
    else:
        assert "pruneInsideWrites is false" in spark.sql(f"EXPLAIN {query}").first()[0]
    assert not spark.catalog.tableExists("explained_as")


def test_an_insert_into_delta_says_why(spark, analyzed):
    spark.sql("CREATE TABLE explained_into (id BIGINT) USING delta")
    try:
        explained = decisions(spark, f"INSERT INTO explained_into SELECT id FROM {analyzed} WHERE id = 5")
        assert [d["reason"] for d in explained] == ["INSIDE_WRITE"] * 4
        assert spark.table("explained_into").count() == 0
    finally:
        spark.sql("DROP TABLE explained_into")


def test_answers_from_metadata_say_that_no_file_is_read(spark, analyzed):
    answered = (0, analyzed, None, False, "ANSWERED_BY_FORMAT")

    def explained(query):
        return [tuple(d[n] for n in ("scan", "table", "path", "kept", "reason")) for d in decisions(spark, query)]

    assert explained(f"SELECT count(*) FROM {analyzed}") == [answered]
    with conf(spark, spark__metastore__pruning__enabled=False):
        assert explained(f"SELECT count(*) FROM {analyzed}") == [answered]
    first, *later = explained(
        f"SELECT * FROM (SELECT count(*) AS total FROM {analyzed}) JOIN {analyzed} ON id < total WHERE id = 5"
    )
    assert first == answered
    assert [(scan, reason) for scan, _, _, kept, reason in later if kept] == [(1, "KEPT_MAY_MATCH")]
    assert spark.sql(f"SELECT count(*) FROM {analyzed}").first()[0] == 400


@pytest.mark.parametrize("metadata", ["files", "snapshots", "history", "partitions", "position_deletes"])
def test_metadata_tables_say_that_they_are_left_alone(spark, analyzed, metadata):
    query = f"SELECT * FROM {analyzed}.{metadata}"
    assert [(d["path"], d["reason"]) for d in decisions(spark, query)] == [(None, "METADATA_TABLE")]
    df = spark.sql(query)
    assert labels(df) == ["metadata tables are left alone"]
    assert rows(df) == plain(spark, query)
    assert spark.sql(f"SELECT count(*) FROM {analyzed}.files WHERE record_count = 100").first()[0] == 4


def test_where_we_are_switched_off_it_is_said(spark, analyzed):
    with conf(spark, spark__metastore__enabled=False):
        (row,) = metastore.explain(spark, f"SELECT * FROM {analyzed} WHERE id = 5")
    assert (row["reason"], row["sentence"]) == ("DISABLED", "spark.metastore.enabled is false")


@pytest.mark.parametrize(
    ("statement", "reason", "named", "is_kept"),
    [
        ("DELETE FROM ice.db.explained_one WHERE id = 1", "ANSWERED_BY_FORMAT", "ice.db.explained_one", False),
        ("DELETE FROM explained_own WHERE id = 1", "NO_STATISTICS", "spark_catalog.default.explained_own", True),
        ("INSERT INTO explained_own VALUES (1)", "NO_SCAN", "spark_catalog.default.explained_own", False),
        ("SHOW TABLES", "NO_SCAN", None, False),
        ("SELECT 1", "NO_SCAN", None, False),
    ],
)
def test_a_plan_without_scans_says_why(spark, statement, reason, named, is_kept):
    spark.sql("CREATE TABLE explained_own (id BIGINT) USING delta")
    spark.sql("CREATE TABLE ice.db.explained_one AS SELECT 1L AS id")
    try:
        (row,) = metastore.explain(spark, statement)
    finally:
        spark.sql("DROP TABLE explained_own")
        spark.sql("DROP TABLE ice.db.explained_one")
    assert (row["reason"], row["table"], row["kept"], row["path"]) == (reason, named, is_kept, None)
    assert statement.split()[0] in row["sentence"] or reason in ("ANSWERED_BY_FORMAT", "NO_STATISTICS")
