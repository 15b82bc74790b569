"""The optimizer's estimates: the numbers of the files that are read, and nothing that misleads it."""

from __future__ import annotations

import pytest

from planner import written
from planner.plans import conf, physical
from pruning.scala import module

pytestmark = pytest.mark.spark


def estimate(df) -> tuple[int, int]:
    """Rows and bytes that the optimizer expects of the plan."""
    statistics = optimized(df).stats()
    return int(statistics.rowCount().get()), int(statistics.sizeInBytes())


def scanned(df) -> int:
    """Rows that the optimizer expects of the plan's first scan."""
    return int(optimized(df).collectLeaves().head().stats().rowCount().get())


def optimized(df):
    return df._jdf.queryExecution().optimizedPlan()


def column_stats(df) -> dict[str, object]:
    leaf = optimized(df).collectLeaves().head()
    stats = leaf.stats().attributeStats()
    return {a.name(): stats.get(a).get() for a in _each(leaf.output()) if stats.contains(a)}


def _each(seq):
    return [seq.apply(i) for i in range(seq.size())]


def test_cost_based_optimization_is_on_where_the_user_did_not_decide(spark):
    assert spark.conf.get("spark.sql.cbo.enabled") == "true"
    assert spark.conf.get("spark.sql.cbo.joinReorder.enabled") == "true"
    assert spark.newSession().conf.get("spark.sql.cbo.enabled") == "true"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 5", 1),
        ("id < 50", 50),
        ("id BETWEEN 100 AND 119", 20),
        ("v = 3", 40),
        ("v = 3 AND id < 100", 10),
        ("s = 'x0003'", 1),
        ("d < date'2024-01-11'", 10),
        ("id IN (1, 2, 3)", 3),
        ("id > 350 AND v IN (1, 2)", 10),
    ],
)
def test_filters_are_estimated_right(spark, analyzed, where, expected):
    rows, _ = estimate(spark.sql(f"SELECT * FROM {analyzed} WHERE {where}"))
    assert expected / 2 <= max(rows, 1) <= expected * 2, rows


def test_the_numbers_are_those_of_the_rows_that_match(spark, analyzed):
    df = spark.sql(f"SELECT id, s, v FROM {analyzed} WHERE id < 150")
    assert estimate(df)[0] == 150
    statistics = column_stats(df)
    assert statistics["id"].min().get() == 0
    assert statistics["id"].max().get() == 150
    assert int(statistics["id"].distinctCount().get()) == 150
    assert int(statistics["v"].distinctCount().get()) == 10
    assert not statistics["s"].min().isDefined()
    assert 0 < statistics["s"].avgLen().get() <= 5


def test_sizes_follow_the_columns_that_are_read(spark, analyzed):
    narrow = estimate(spark.sql(f"SELECT id FROM {analyzed}"))[1]
    wide = estimate(spark.sql(f"SELECT id, s, d FROM {analyzed}"))[1]
    assert narrow == 400 * (8 + 8 // 2)  # no column is told of with less than half its width
    assert wide == 400 * (8 + (5 + 12) + 4)


def test_a_side_is_broadcast_by_the_widths_of_its_columns_alone(spark, analyzed):
    # Spark adds 8 bytes to each row where rows are counted and none where they are not.
    size = 400 * (8 + (5 + 12) + 4 + 4)
    columns = "id, s, d, v"
    query = f"SELECT * FROM {analyzed} a JOIN (SELECT {columns} FROM {analyzed}) b ON a.id = b.id"
    for threshold, kind in ((size, "BroadcastHashJoin"), (size - 1, "SortMergeJoin")):
        with conf(spark, spark__sql__autoBroadcastJoinThreshold=threshold, spark__sql__adaptive__enabled="false"):
            assert kind in physical(spark.sql(query))


def test_joins_are_estimated_right(spark, analyzed):
    rows, _ = estimate(spark.sql(f"SELECT * FROM {analyzed} a JOIN {analyzed} b ON a.id = b.id WHERE b.id < 100"))
    assert 50 <= rows <= 200
    rows, _ = estimate(spark.sql(f"SELECT * FROM {analyzed} a JOIN {analyzed} b ON a.v = b.v"))
    assert 8_000 <= rows <= 32_000


def test_no_file_left_is_not_estimated_as_nothing(spark, analyzed):
    df = spark.sql(f"SELECT * FROM {analyzed} WHERE id = 5000")
    assert scanned(df) == 1


def test_types_that_spark_cannot_estimate_get_no_statistics(spark, new_table):
    table = new_table("t timestamp_ntz, z timestamp, x double, y float, b binary, f boolean")
    spark.sql(
        f"INSERT INTO {table} SELECT timestamp_ntz'2024-01-01 00:00:00', timestamp'2024-01-01 00:00:00', "
        "double('infinity'), float('nan'), X'01', true UNION ALL SELECT timestamp_ntz'2024-01-02 00:00:00', "
        "timestamp'2024-01-02 00:00:00', -1.0, 1.0f, X'02', false"
    )
    written.describe_iceberg_table(spark, table).write("1")
    df = spark.sql(f"SELECT * FROM {table} WHERE t > timestamp_ntz'2024-01-01 12:00:00' AND x > 0.5 AND y > 0")
    statistics = column_stats(spark.table(table))
    assert "t" not in statistics
    assert "x" not in statistics
    assert {"z", "f", "b"} <= set(statistics)
    df.collect()
    for column, value in (("x", "3.0"), ("y", "3.0"), ("z", "timestamp'2024-01-01 12:00:00'"), ("f", "true")):
        for operator in ("=", "<", ">=", "<>"):
            spark.sql(f"SELECT * FROM {table} WHERE {column} {operator} {value}").collect()


def test_names_with_dots_have_statistics(spark, new_table):
    table = new_table("`x y.z` int, `a``b` int")
    spark.sql(f"INSERT INTO {table} VALUES (1, 2), (2, 3)")
    written.describe_iceberg_table(spark, table).write("1")
    assert set(column_stats(spark.table(table))) == {"x y.z", "a`b"}
    assert [tuple(r) for r in spark.sql(f"SELECT * FROM {table} WHERE `x y.z` = 2").collect()] == [(2, 3)]


def test_nulls_and_deleted_rows_are_scaled(spark, new_table):
    table = new_table("id int, v int", "'format-version' = '2'", "'write.delete.mode' = 'merge-on-read'")
    spark.range(100).selectExpr("cast(id as int) id", "cast(if(id % 2 = 0, null, id) as int) v").coalesce(1).writeTo(
        table
    ).append()
    written.describe_iceberg_table(spark, table).write("1")
    spark.sql(f"DELETE FROM {table} WHERE id < 50")
    assert estimate(spark.table(table))[0] == 50
    assert int(column_stats(spark.table(table))["v"].nullCount().get()) == 25


@pytest.fixture
def counted(spark, four_files):
    """A table with Iceberg's own distinct counts, which Spark makes an estimate of no rows from."""
    spark.sql(f"CALL ice.system.compute_table_stats(table => '{four_files.removeprefix('ice.')}')")
    with conf(spark, **IT_REPORTS):
        yield four_files


IT_REPORTS = {"spark__sql__iceberg__report-column-stats": True}


def test_iceberg_s_own_counts_never_reach_the_optimizer(spark, counted):
    query = f"SELECT * FROM {counted} WHERE v = 3"
    with conf(spark, spark__metastore__enabled=False):
        assert estimate(spark.sql(query))[0] == 0, "Spark was repaired: this harm is gone"
    assert estimate(spark.sql(query))[0] > 0
    spark.sql(f"ALTER TABLE {counted} DROP COLUMN v")
    assert len(spark.sql(f"SELECT * FROM {counted} WHERE id = 5").collect()) == 1


@pytest.mark.parametrize("setting", ["enabled", "cbo.enabled"])
def test_who_got_optimization_from_us_keeps_no_harm_when_we_are_switched_off(spark, counted, setting):
    session = spark.newSession()
    assert session.conf.get("spark.sql.cbo.enabled") == "true"
    session.conf.set(f"spark.metastore.{setting}", "false")
    assert estimate(session.sql(f"SELECT * FROM {counted} WHERE v = 3"))[0] > 0
    session.sql(f"ALTER TABLE {counted} DROP COLUMN v")
    assert len(session.sql(f"SELECT * FROM {counted} WHERE id = 5").collect()) == 1


def test_incremental_reads_are_shielded_and_read_in_full(spark, counted):
    first, *_, last = [
        row[0] for row in spark.sql(f"SELECT snapshot_id FROM {counted}.snapshots ORDER BY committed_at").collect()
    ]
    read = spark.read.format("iceberg").option("start-snapshot-id", first).option("end-snapshot-id", last)
    df = read.load(counted).where("v = 3")
    assert column_stats(df) == {}
    assert "incremental and change reads are left alone" in df._jdf.queryExecution().simpleString()
    assert df.count() == 30


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(
    "command",
    [
        "UPDATE {t} SET x = -1 WHERE v = 3",
        "DELETE FROM {t} WHERE v = 3 AND x < 1e9",
        "MERGE INTO {t} t USING (SELECT id FROM {t} WHERE v = 3) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET x = -1",
    ],
)
def test_targets_of_commands_are_shielded_and_read_in_full(spark, counted, mode, command):
    modes = ", ".join(f"'write.{verb}.mode' = '{mode}'" for verb in ("delete", "update", "merge"))
    spark.sql(f"ALTER TABLE {counted} SET TBLPROPERTIES ('format-version' = '2', {modes})")
    statement = command.format(t=counted)
    with conf(spark, spark__metastore__enabled=False):
        assert any(not stats.isEmpty() for _, stats in leaf_stats(spark, statement)), "the counts are there"
    assert all(stats.isEmpty() for _, stats in leaf_stats(spark, statement))
    with conf(spark, spark__metastore__pruning__rowLevel="off"):
        planned = leaf_stats(spark, statement)
    assert all(stats.isEmpty() for _, stats in planned)
    assert any("reads its own target" in text for text, _ in planned)
    spark.sql(statement)
    with conf(spark, spark__metastore__enabled=False):
        counted_rows = spark.sql(f"SELECT count_if(x = -1), count(*) FROM {counted}").first()
    assert tuple(counted_rows) == ((0, 360) if command.startswith("DELETE") else (40, 400))


def leaf_stats(spark, statement):
    """Description and column statistics of every scan that a command is planned with; it does not run."""
    state = spark._jsparkSession.sessionState()
    skip = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    plan = state.executePlan(state.sqlParser().parsePlan(statement), skip).optimizedPlan()
    leaves = _each(plan.collectLeaves())
    scans = [leaf for leaf in leaves if leaf.getClass().getSimpleName() == "DataSourceV2ScanRelation"]
    return [(scan.scan().description(), scan.stats().attributeStats()) for scan in scans]


def test_the_optimizer_is_told_nothing_where_that_is_switched_off(spark, analyzed):
    with conf(spark, spark__metastore__cbo__enabled=False):
        df = spark.sql(f"SELECT * FROM {analyzed} WHERE id = 5")
        assert column_stats(df) == {}
        assert "4 -> 1 files" in df._jdf.queryExecution().simpleString()


@pytest.mark.parametrize("where", ["p = 1 OR q = 3", "p = 2", "id < 1000 AND (p = 1 OR q = 3)"])
def test_conditions_that_iceberg_takes_over_are_not_counted_twice(spark, new_table, where):
    name = new_table("id bigint, p bigint, q bigint", partitioned="PARTITIONED BY (p, q)")
    rows = spark.range(20_000).selectExpr("id", "id % 8 AS p", "id DIV 8 % 8 AS q")
    rows.coalesce(1).sortWithinPartitions("p", "q").writeTo(name).append()
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    df = spark.table(name).where(where)
    assert estimate(df)[0] == pytest.approx(df.count(), rel=0.05)


@pytest.mark.parametrize("value", [1, 1 << 40, 0.5, "text"])
def test_a_bucket_between_equal_values_holds_one_value(spark, value):
    buckets = module(spark, "org.metastore.spark.statistics.values.Bucket")
    assert buckets.apply(value, value, 0.0, 1.0, 10.0, 2.0).isSingle()
    assert not buckets.apply(value, value * 2, 0.0, 1.0, 10.0, 2.0).isSingle()
