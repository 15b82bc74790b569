"""Functions of a column whose bounds follow from the column's: by bounds alone, no file without a match is read."""

from __future__ import annotations

import pytest

from nightly import others_nightly
from planner.plans import check, conf, plain

pytestmark = pytest.mark.spark

FILES = 8
ROWS = 200
# Each file has numbers from 1000 times its place on, and times of six weeks of its own.
COLUMNS = """
    id, CAST(id AS int) i, id / 4D x, CAST(id / 4 AS float) f, CAST(id / 3 AS decimal(10,2)) m,
    CAST(id AS decimal(30,3)) w, 4000 - id back, timestampadd(SECOND, id * 4000, TIMESTAMP'2023-02-01 01:02:03.5') t,
    CAST(timestampadd(SECOND, id * 4000, TIMESTAMP'2023-02-01 01:02:03.5') AS timestamp_ntz) n,
    date_add(DATE'2023-02-01', CAST(id / 24 AS int)) d, concat('user-', lpad(CAST(id AS string), 8, '0')) s,
    IF(id % 7 = 3, null, id) gaps, id % 2 = 0 f2
"""
PREDICATES = [
    "id * 2 + 1 < 20",
    "id * -3 > -20",
    "7 * id = 21000",
    "i * 3 BETWEEN 9000 AND 9010",
    "id div 1000 = 3",
    "id / 2 < 10",
    "floor(id / 1000) = 3",
    "ceil(x) = 751",
    "round(x) = 251",
    "round(x, 1) <= 24.9",
    "bround(x, 0) = 250",
    "round(m, 1) = 1000.3",
    "x * 1.5D < 20",
    "0.5D * x > 850",
    "x + 0.25D = 500.25D",
    "x - 1 < 3",
    "x / 3D BETWEEN 100 AND 101",
    "f * CAST(2 AS float) < 5",
    "m * 1.1BD > 2500",
    "m / 2BD = 500",
    "m + 0.5BD < 3",
    "w - 1BD = 2999",
    "m > 2300.5D",
    "CAST(w AS double) = 5000D",
    "CAST(x AS int) = 7",
    "CAST(x AS bigint) IN (7, 1770)",
    "CAST(m AS int) = 5",
    "CAST(w AS bigint) = 3005",
    "CAST(m AS decimal(6,0)) = 1001",
    "CAST(id AS int) = 5007",
    "CAST(id AS decimal(5,0)) = 5007",
    "abs(back) < 10",
    "abs(back) >= 4000",
    "abs(back) = 3005",
    "CAST(id AS string) = '4017'",
    "CAST(i AS string) IN ('17', '7017')",
    "CAST(i AS string) <=> '17'",
    "CAST(id AS timestamp) < TIMESTAMP'1970-01-01 00:00:10Z'",
    "timestamp_seconds(id) < TIMESTAMP'1970-01-01 00:00:10Z'",
    "timestamp_millis(id) = TIMESTAMP'1970-01-01 00:00:06.100Z'",
    "timestamp_micros(id) < TIMESTAMP'1970-01-01 00:00:00.000010Z'",
    "from_unixtime(id * 86400, 'yyyy-MM-dd') = '1978-03-27'",
    "unix_timestamp(t) < 1675220000",
    "unix_millis(t) > 1704000000000",
    "CAST(t AS bigint) < 1675220000",
    "CAST(t AS double) < 1675220000D",
    "date_format(t, 'yyyy-MM-dd') = '2023-05-08'",
    "date_format(t, 'yyyyMM') IN ('202307', '202308')",
    "date_format(t, \"yyyy-MM-dd'T'HH:mm\") >= '2023-12-30T00:00'",
    "date_format(d, 'yyyy') = '2024'",
    "CAST(t AS string) LIKE '2023-05-0%'",
    "CAST(n AS string) < '2023-02-02'",
    "CAST(d AS string) LIKE '2023-07%'",
    "CAST(t AS date) = DATE'2023-05-08'",
    "year(t) = 2023 AND month(t) = 5",
    "month(d) = 7",
    "quarter(d) = 2",
    "dayofyear(d) = 45",
    "coalesce(id, -1) = 5",
    "coalesce(gaps, -1) = 5000",
    "coalesce(id, -1) = -1",
    "NOT (coalesce(gaps, 9000) > 20)",
    "coalesce(id < 10, false)",
    "if(id > 1000, 1, 0) = 0",
    "CASE WHEN id < 1000 THEN 'low' WHEN id < 3000 THEN 'middle' ELSE 'high' END IN ('low', 'middle')",
    "CASE WHEN gaps >= 1000 THEN f2 END",
    "(id < 10) IS TRUE",
    "(gaps < 10) IS NOT TRUE AND gaps < 1100",
    "s RLIKE '^user-00003'",
]
OF_TIMES = [predicate for predicate in PREDICATES if "(t" in predicate or "(d" in predicate]


@pytest.fixture(scope="module")
def ordered(spark):
    name = "ice.db.bounds_of_functions"
    with conf(spark, spark__sql__session__timeZone="UTC"):
        for file in range(FILES):
            rows = spark.sql(f"SELECT {COLUMNS} FROM range({1000 * file}, {1000 * file + ROWS}, 1, 1)")
            rows.writeTo(name).using("iceberg").create() if file == 0 else rows.writeTo(name).append()
    spark.sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize(
    ("zone", "ansi", "predicates"),
    others_nightly(
        [
            ("UTC", "true", PREDICATES),
            ("America/Los_Angeles", "false", PREDICATES),
            ("Europe/Berlin", "true", OF_TIMES),
            ("Pacific/Apia", "true", OF_TIMES),
        ]
    ),
)
def test_only_files_with_a_matching_row_are_read(spark, ordered, zone, ansi, predicates):
    settings = {"spark__sql__session__timeZone": zone, "spark__sql__ansi__enabled": ansi}
    with conf(spark, spark__metastore__pruning__values__maxEvaluations="0", **settings):
        needed = [f"collect_set(IF({predicate}, _file, null))" for predicate in predicates]
        [expected] = plain(spark, f"SELECT {', '.join(needed)} FROM {ordered}")
        for predicate, files in zip(predicates, expected, strict=True):
            assert len(files) < FILES, predicate
            query = f"SELECT * FROM {ordered} WHERE {predicate}"
            explained = spark.sql("SELECT path FROM metastore.explain(:q) WHERE kept", args={"q": query}).collect()
            kept_paths = {row.path for row in explained}
            assert kept_paths == set(files), f"{predicate} reads {len(kept_paths)} files, {len(files)} have a match"


@pytest.mark.parametrize(
    "predicate", ["id * 2 = 5000", "month(d) = 7", "CASE WHEN id < 1000 THEN 'a' ELSE 'b' END = 'a'"]
)
def test_a_query_gives_the_same_rows(spark, ordered, predicate):
    check(spark, f"SELECT id, t, s FROM {ordered} WHERE {predicate}")


@pytest.mark.parametrize("pattern", ["RLIKE '(x|xx)+\\\\1z'", "NOT RLIKE '^(x+x+)+y'"])
def test_planning_ends_where_a_value_is_matched_for_ever(spark, tmp_path, pattern):
    table = f"parquet.`{tmp_path}/t`"
    spark.sql("SELECT concat(repeat('x', 40), '1') s").coalesce(1).write.parquet(f"{tmp_path}/t")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    with conf(spark, spark__metastore__planning__timeout="1s"):
        explained = spark.sql(
            "SELECT kept FROM metastore.explain(:q)", args={"q": f"SELECT * FROM {table} WHERE s {pattern}"}
        )
        assert [row.kept for row in explained.collect()] == [True]


def test_sizes_are_no_larger_than_the_files_without_cost_based_optimization(spark, ordered):
    query = f"SELECT * FROM {ordered} WHERE id % 5 = 3 OR i % 7 = 2"
    with conf(spark, spark__sql__cbo__enabled="false"):
        leaf = spark.sql(query)._jdf.queryExecution().optimizedPlan().collectLeaves().head()
        assert leaf.stats().rowCount().get() <= FILES * ROWS


def test_no_text_bounds_are_made_of_clocks_that_the_rules_do_not_know(spark, ordered):
    query = f"SELECT id FROM {ordered} WHERE date_format(t, 'yyyy-MM-dd') = '2023-05-08'"
    with conf(
        spark, spark__sql__legacy__timeParserPolicy="LEGACY", spark__metastore__pruning__values__maxEvaluations="0"
    ):
        check(spark, query, [FILES])
