"""ANALYZE as SQL."""

from __future__ import annotations

import shutil

import pytest

import metastore

pytestmark = pytest.mark.spark

REPORT = (
    "table string, snapshot string, files bigint, files_read bigint, files_total bigint, rows bigint, columns bigint, "
    "seconds double, refused array<string>, format string, bytes_read bigint, objects bigint, committed boolean"
)


@pytest.fixture
def filled(spark, table):
    spark.sql(f"INSERT INTO {table} SELECT id, concat('s', id), 'p' || id % 2 FROM range(10)")
    return table


def test_the_report_is_the_answer(spark, filled):
    frame = spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS FOR ALL COLUMNS")
    assert ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in frame.schema) == REPORT
    row = frame.collect()[0]
    assert (row["table"], row["files"], row["files_read"], row["rows"], row["columns"]) == (filled, 2, 2, 10, 3)
    again = spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS FOR ALL COLUMNS").collect()[0]
    assert (again["files_read"], again["snapshot"]) == (0, row["snapshot"])


def test_partition_limits_every_form(spark, filled):
    for form in ("", "FOR COLUMNS id", "FOR ALL COLUMNS"):
        row = spark.sql(f"ANALYZE TABLE {filled} PARTITION (p = 'p1') COMPUTE STATISTICS {form}").collect()[0]
        assert row["files_read"] == 1, form


def test_a_partition_column_without_a_value_stands_for_every_one(spark, filled):
    row = spark.sql(f"ANALYZE TABLE {filled} PARTITION (p) COMPUTE STATISTICS").collect()[0]
    assert row["files_read"] == 2


def test_columns_are_those_named(spark, filled):
    spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS FOR COLUMNS id, S")
    rows = spark.sql(f"SELECT column_name, q50 FROM metastore.summary('{filled}')").collect()
    assert [row["column_name"] for row in rows if row["q50"] is not None] == ["id", "s"]


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (
            "ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS idd",
            "[METASTORE_COLUMN_NOT_FOUND] {t} has no column 'idd'.",
        ),
        (
            "ANALYZE TABLE {t} PARTITION (p = 'zz') COMPUTE STATISTICS",
            "[METASTORE_INVALID_ARGUMENT] PARTITION: {t} has no data file with p = zz.",
        ),
        (
            "ANALYZE TABLE {t} PARTITION (s = 's1') COMPUTE STATISTICS FOR ALL COLUMNS",
            "[METASTORE_INVALID_ARGUMENT] PARTITION: s is not a partition column of {t}.",
        ),
        (
            "ANALYZE TABLE {t} PARTITION (s) COMPUTE STATISTICS",
            "[METASTORE_INVALID_ARGUMENT] PARTITION: s is not a partition column of {t}.",
        ),
        (
            "ANALYZE TABLE {t} PARTITION (q) COMPUTE STATISTICS FOR ALL COLUMNS",
            "[METASTORE_COLUMN_NOT_FOUND] {t} has no column 'q'.",
        ),
        ("ANALYZE TABLE {t}_no COMPUTE STATISTICS", "[TABLE_OR_VIEW_NOT_FOUND]"),
        (
            "ANALYZE TABLE {t}.files COMPUTE STATISTICS FOR ALL COLUMNS",
            "[METASTORE_UNSUPPORTED_TABLE] {t}.files is not supported: it is a metadata table.",
        ),
        ("ANALYZE TABLE delta.`/no/where` COMPUTE STATISTICS", "[DELTA_MISSING_DELTA_TABLE]"),
        ("ANALYZE TABLES IN ice.nope COMPUTE STATISTICS NOSCAN", "[SCHEMA_NOT_FOUND] The schema `ice`.`nope`"),
    ],
)
def test_mistakes_get_one_line_and_write_nothing(spark, filled, statement, text):
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the line is compared
        spark.sql(statement.format(t=filled))
    assert str(caught.value).startswith(text.format(t=filled))
    assert spark.sql(f"SELECT * FROM metastore.snapshots('{filled}')").count() == 0


def test_all_tables_of_a_namespace(spark, filled):
    rows = {row["table"]: row for row in spark.sql("ANALYZE TABLES IN ice.db COMPUTE STATISTICS NOSCAN").collect()}
    assert (rows[filled]["files"], rows[filled]["files_read"]) == (2, 0)
    assert filled in [row["table"] for row in spark.sql("SELECT * FROM metastore.tables('ice.db')").collect()]


def test_a_broken_table_does_not_stop_the_others(spark, filled, warehouse):
    broken = warehouse / "db/a_broken/metadata"
    broken.mkdir(parents=True)
    (broken / "version-hint.text").write_text("1")
    (broken / "v1.metadata.json").write_text("{")
    try:
        rows = {row["table"]: row for row in spark.sql("ANALYZE TABLES IN ice.db COMPUTE STATISTICS NOSCAN").collect()}
    finally:
        shutil.rmtree(broken.parent)
    assert rows["ice.db.a_broken"]["snapshot"] is None
    assert len(rows["ice.db.a_broken"]["refused"]) == 1
    assert rows[filled]["committed"]


def test_catalogs_without_tables_of_ours_stay_with_spark(spark):
    session = spark.newSession()  # the catalog is nobody else's
    session.conf.set("spark.sql.catalog.foreign", "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    session.conf.set("spark.sql.catalog.foreign.url", "jdbc:derby:memory:foreign;create=true")
    session.conf.set("spark.sql.catalog.foreign.driver", "org.apache.derby.iapi.jdbc.AutoloadedDriver")
    session.sql("CREATE TABLE foreign.APP.t (a INT)")
    with pytest.raises(Exception, match="No plan for AnalyzeTables"):
        session.sql("ANALYZE TABLES IN foreign.APP COMPUTE STATISTICS")


def test_what_is_not_ours_stays_with_spark(spark):
    spark.sql("CREATE TABLE sql_parquet (a INT) USING parquet")
    try:
        assert spark.sql("ANALYZE TABLE sql_parquet COMPUTE STATISTICS").columns == []
    finally:
        spark.sql("DROP TABLE sql_parquet")


def test_formats_can_be_given_back_to_spark(spark, filled):
    spark.conf.set("spark.metastore.analyze.formats", "delta,hudi")
    try:
        with pytest.raises(Exception, match="NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"):
            spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS")
    finally:
        spark.conf.unset("spark.metastore.analyze.formats")


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false"])
def test_a_python_that_cannot_run_is_named(spark, filled, python):
    started_with = spark.sparkContext._jsc.sc().conf()
    started_with.set("spark.metastore.python", python)
    try:
        with pytest.raises(Exception, match=r"^\[METASTORE_ANALYZE_FAILED\] .*spark.metastore.python.*pip install"):
            spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS")
    finally:
        started_with.remove("spark.metastore.python")


@pytest.mark.slow
def test_a_session_cannot_name_a_program_for_the_driver_to_run(spark, filled, tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    session = spark.newSession()
    session.conf.set("spark.metastore.python", str(program))
    assert session.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS").collect()[0]["files_read"] == 2
    assert not (tmp_path / "ran").exists()


def test_the_session_of_the_driver_stays_the_default(spark, filled):
    classic = spark._jvm.org.apache.spark.sql.classic.SparkSession
    before = classic.getDefaultSession().get().sessionUUID()
    spark.newSession().sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS NOSCAN")
    assert classic.getDefaultSession().get().sessionUUID() == before


@pytest.mark.slow
def test_the_data_source_takes_names(spark, filled):
    spark.sql(f"ANALYZE TABLE {filled} COMPUTE STATISTICS FOR ALL COLUMNS")
    source = spark.read.format("metastore").option("table", filled)
    rows = {row["column_name"]: row for row in source.load().collect()}
    assert (rows["id"]["lo_long"], rows["id"]["hi_long"], rows["s"]["lo_binary"]) == (0, 9, bytearray(b"s0"))
    assert len(rows["id"]["percentiles_long"]) == 101
    assert source.option("view", "files").load().count() == 2
    assert spark.read.format("metastore").option("view", "snapshots").load(filled).count() == 1
    listed = spark.sql("SELECT location FROM metastore.tables('ice.db') WHERE table = 'ice.db.sql_scratch'")
    located = listed.collect()[0][0]
    same = {row["column_name"]: row for row in spark.read.format("metastore").load(located).collect()}
    assert same == rows


def test_a_name_is_told_as_statements_take_it(spark):
    name = "ice.db.`t.with dots``ü`"
    spark.sql(f"CREATE TABLE {name} USING iceberg AS SELECT id FROM range(3)")
    try:
        reported_name = spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS").first()["table"]
        assert reported_name == name
        assert spark.sql("SELECT * FROM metastore.summary(:t)", args={"t": reported_name}).count() == 1
        location = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").first()["data_type"]
        assert metastore.open(location).summary().subject == name
    finally:
        spark.sql(f"DROP TABLE {name}")
