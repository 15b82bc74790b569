"""Plain Parquet tables, which Spark reads by its own file source."""

from __future__ import annotations

import os

import pytest

import metastore
from parquet.conftest import settle
from planner import written
from planner.plans import check, conf, files_read, labels, physical, rows, scans
from planner.test_estimates import column_stats, estimate

pytestmark = pytest.mark.spark


def write(spark, path, files: int = 4, rows_a_file: int = 100) -> None:
    for k in range(files):
        low = k * rows_a_file
        spark.range(low, low + rows_a_file).selectExpr(
            "id",
            "cast(id % 10 as int) v",
            "concat('x', lpad(id, 4, '0')) s",
            "named_struct('a', id) st",
        ).coalesce(1).write.mode("append").parquet(str(path))  # fmt: skip


@pytest.fixture
def folder(spark, tmp_path):
    """Four Parquet files with true statistics beside them."""
    path = tmp_path / "plain"
    write(spark, path)
    written.describe_parquet_folder(path).write("1")
    return path


@pytest.fixture
def table(spark, folder):
    """The same files as a table of the session catalog."""
    spark.sql(f"CREATE TABLE planner_plain USING parquet LOCATION 'file:{folder}'")
    yield "planner_plain"
    spark.sql("DROP TABLE planner_plain")


CASES = {
    "id = 5": 1,
    "id BETWEEN 190 AND 210": 2,
    "id IN (1, 399)": 2,
    "s LIKE 'x039%'": 1,
    "v = 3": 4,
    "st.a = 250": 1,
    "id = 5000": 0,
}


@pytest.mark.parametrize("where", CASES)
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_reads_only_the_files_that_can_match(spark, folder, where, adaptive):
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        df = check(spark, f"SELECT * FROM parquet.`{folder}` WHERE {where}", [CASES[where]])
        assert labels(df) == [f"4 -> {CASES[where]} files"]


def test_tables_of_the_catalog(spark, table):
    df = check(spark, f"SELECT v, count(*) FROM {table} WHERE id < 150 GROUP BY v", [2])
    assert "default.planner_plain [Metastore: 4 -> 2 files]" in physical(df)
    check(spark, f"SELECT a.id FROM {table} a JOIN {table} b ON a.id = b.id WHERE a.id < 50 AND b.id > 20")
    check(spark, f"SELECT * FROM {table} WHERE id = (SELECT max(id) FROM {table} WHERE id < 20)")
    check(spark, f"SELECT * FROM {table} WHERE id IN (SELECT id FROM {table} WHERE id > 395)")


def test_equal_parts_are_reused(spark, table):
    part = f"SELECT v, count(*) c FROM {table} WHERE id < {{}} GROUP BY v"
    same = check(spark, f"{part.format(50)} UNION ALL {part.format(50)}")
    assert len(scans(same)) == 1
    other = check(spark, f"{part.format(50)} UNION ALL {part.format(150)}")
    assert sorted(files_read(other)) == [1, 2]


def test_partitioned_tables(spark, tmp_path):
    path = tmp_path / "by day"
    for low in (0, 100):
        spark.range(low, low + 100).selectExpr("id", "id % 2 p").repartition(1).write.mode("append").partitionBy(
            "p"
        ).parquet(str(path))
    written.describe_parquet_folder(path).write()
    check(spark, f"SELECT * FROM parquet.`{path}` WHERE id = 5", [2])
    check(spark, f"SELECT * FROM parquet.`{path}` WHERE id = 5 AND p = 1", [1])
    check(spark, f"SELECT p, count(*) FROM parquet.`{path}` WHERE id < 100 GROUP BY p", [2])
    spark.sql(
        f"CREATE TABLE planner_days (id bigint, p bigint) USING parquet PARTITIONED BY (p) LOCATION 'file:{path}'"
    )
    try:
        spark.sql("MSCK REPAIR TABLE planner_days")
        check(spark, "SELECT * FROM planner_days WHERE id = 5", [2])
        check(spark, "SELECT * FROM planner_days WHERE id = 5 AND p = 1", [1])
        either = "SELECT * FROM planner_days WHERE (p = 1 AND id < 10) OR (p = 2 AND id = 7)"
        check(spark, either, [1])
        with conf(spark, spark__metastore__pruning__enabled="false"):
            check(spark, either, [2])  # those of the one partition that the condition implies, as Spark alone reads
    finally:
        spark.sql("DROP TABLE planner_days")


def test_a_scan_that_is_left_alone_lists_its_partitions_when_it_runs(spark, tmp_path):
    path = tmp_path / "by day"
    spark.range(100).selectExpr("id", "id % 2 p").repartition(1).write.partitionBy("p").parquet(str(path))
    written.describe_parquet_folder(path).write()
    spark.sql(
        f"CREATE TABLE planner_late (id bigint, p bigint) USING parquet PARTITIONED BY (p) LOCATION 'file:{path}'"
    )
    try:
        spark.sql("MSCK REPAIR TABLE planner_late")
        with conf(spark, spark__metastore__pruning__enabled="false"):
            early = spark.table("planner_late")
            early._jdf.queryExecution().optimizedPlan()
            spark.sql("INSERT INTO planner_late VALUES (1000, 7)")
            assert len(early.collect()) == 101
    finally:
        spark.sql("DROP TABLE planner_late")


@pytest.mark.parametrize("managed", ["true", "false"])
def test_partitions_of_the_catalog_are_estimated(spark, tmp_path, managed):
    path = tmp_path / "days"
    columns = ("id", "cast(id % 7 as int) v", "cast(id div 100 as int) day", "if(id % 2 = 0, 'even', 'odd') kind")
    spark.range(0, 400, 1, 4).selectExpr(*columns).write.partitionBy("day", "kind").parquet(str(path))
    settle(path)
    with conf(spark, spark__sql__hive__manageFilesourcePartitions=managed):
        spark.sql(
            "CREATE TABLE planner_days (id bigint, v int, day int, kind string) USING parquet "
            f"PARTITIONED BY (day, kind) LOCATION 'file:{path}'"
        )
        try:
            if managed == "true":
                spark.sql("MSCK REPAIR TABLE planner_days")
            metastore.analyze(spark, "planner_days", progress=False)
            for where, true in ESTIMATED.items():
                df = check(spark, f"SELECT * FROM planner_days WHERE {where}")
                assert estimate(df)[0] == pytest.approx(true, rel=0.05), where
            assert estimate(spark.table("planner_days"))[0] == 400
            statistics = column_stats(spark.table("planner_days"))
            assert [int(statistics[name].distinctCount().get()) for name in ("id", "day", "kind")] == [400, 4, 2]
            spark.sql("INSERT INTO planner_days SELECT id, 1, 9, 'odd' FROM range(1000, 1100)")
            assert estimate(spark.sql("SELECT * FROM planner_days WHERE day = 9"))[0] == pytest.approx(100, rel=0.5)
            check(spark, "SELECT * FROM planner_days WHERE day = 9 AND id = 1003")
            check(spark, "SELECT a.id FROM planner_days a JOIN planner_days b ON a.day = b.day WHERE b.id = 1003")
        finally:
            spark.sql("DROP TABLE planner_days")


ESTIMATED = {
    "day = 2": 100,
    "DAY = 2 AND kind = 'odd'": 50,
    "day IN (0, 3)": 200,
    "day > 0 AND v = 3": 43,
    "day <> 1 OR kind = 'even'": 350,
    "upper(kind) = 'ODD' AND day < 2": 100,
}


def test_readers_of_version_2_are_left_alone(spark, table):
    with conf(spark, spark__sql__sources__useV1SourceList=""):
        df = check(spark, f"SELECT * FROM {table} WHERE id < 150")
        assert estimate(df)[0] == 150
        location = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Location'").first().data_type
        frame = spark.read.parquet(location).where("id = 5")
        assert labels(frame) == []
        assert frame.count() == 1


def test_a_file_that_changed_is_read(spark, folder):
    first = min(folder.glob("*.parquet"))
    os.utime(first, (1, 1))
    df = check(spark, f"SELECT * FROM parquet.`{folder}` WHERE id = 5000", [1])
    assert labels(df) == ["4 -> 1 files"]
    write(spark, folder, files=1)
    check(spark, f"SELECT * FROM parquet.`{folder}` WHERE id = 5000", [2])


def test_the_optimizer_knows_the_rows_that_match(spark, folder):
    plan = spark.sql(f"SELECT * FROM parquet.`{folder}` WHERE id < 150")._jdf.queryExecution().optimizedPlan()
    assert int(plan.stats().rowCount().get()) == 150


def test_rows_of_files_that_were_never_analyzed_are_estimated_by_their_size(spark, folder):
    source = f"parquet.`{folder}`"
    write(spark, folder, files=3, rows_a_file=100)
    all_rows = spark.sql(f"SELECT * FROM {source}")
    assert estimate(all_rows)[0] == pytest.approx(700, rel=0.1)
    filtered = f"SELECT * FROM {source} WHERE id >= 350"
    assert estimate(spark.sql(filtered))[0] == pytest.approx(50 + 300, rel=0.1)
    (estimate_of_scan,) = {(row["estimated_from"], row["estimate_exact"]) for row in metastore.explain(spark, filtered)}
    assert "size" in estimate_of_scan[0].split(", ")
    assert estimate_of_scan[1] is False


def test_writes_read_every_row(spark, folder, tmp_path):
    lie = written.describe_parquet_folder(folder)
    lie.sequence = 2
    lie.change("id", lambda _, row: {**row, "lo_long": 5000, "hi_long": 6000}).write("2")
    source = f"parquet.`{folder}`"
    assert spark.sql(f"SELECT * FROM {source} WHERE id = 5").collect() == [], "the statistics do not lie"
    spark.sql(f"SELECT * FROM {source} WHERE id < 50").write.parquet(str(tmp_path / "copy"))
    assert spark.read.parquet(str(tmp_path / "copy")).count() == 50
    spark.sql(f"CREATE TABLE planner_copy USING parquet AS SELECT * FROM {source} WHERE id < 60")
    try:
        assert spark.table("planner_copy").count() == 60
        spark.sql(f"INSERT OVERWRITE planner_copy SELECT * FROM {source} WHERE id < 70")
        assert spark.table("planner_copy").count() == 70
    finally:
        spark.sql("DROP TABLE planner_copy")


def test_streams_are_left_alone(spark, folder, tmp_path):
    lie = written.describe_parquet_folder(folder)
    lie.sequence = 2
    lie.change("id", lambda _, row: {**row, "lo_long": 5000, "hi_long": 6000}).write("2")
    schema = spark.read.parquet(str(folder)).schema
    query = (
        spark.readStream.schema(schema).parquet(str(folder)).where("id < 50")
        .writeStream.format("memory").queryName("planner_files")
        .option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()
    assert spark.sql("SELECT count(*) FROM planner_files").first()[0] == 50


def test_switched_off_the_plan_is_that_of_a_spark_without_us(spark, folder):
    with conf(spark, spark__metastore__enabled=False):
        df = spark.sql(f"SELECT * FROM parquet.`{folder}` WHERE id = 5")
        assert "etastore" not in df._jdf.queryExecution().toString().replace(str(folder), "")
        relation = df._jdf.queryExecution().optimizedPlan().collectLeaves().head()
        assert relation.relation().options().size() <= 1
        assert len(rows(df)) == 1
        assert files_read(df) == [4]


def test_a_folder_without_statistics_says_so(spark, tmp_path):
    write(spark, tmp_path / "new", files=2)
    df = check(spark, f"SELECT * FROM parquet.`{tmp_path / 'new'}` WHERE id = 5", [2])
    assert "no statistics" in labels(df)[0]
