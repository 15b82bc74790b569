"""Queries over Delta tables: fewer files, the same rows, true numbers; writes are never pruned by what may be wrong."""

from __future__ import annotations

import pytest

import metastore
from delta.conftest import append, create, location
from planner import written
from planner.plans import check_first, conf, labels, query_number
from planner.queries import SORTED
from planner.test_estimates import column_stats, estimate

pytestmark = pytest.mark.spark

QUERIES = {**SORTED, "SELECT v, count(*) FROM {t} VERSION AS OF 2 WHERE id < 300 GROUP BY v": None}


@pytest.fixture
def analyzed(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    return filled


@pytest.fixture(
    params=[
        pytest.param("as they were", marks=pytest.mark.campaign),
        pytest.param("with deletion vectors", marks=pytest.mark.slow),
    ]
)
def either(request, spark, analyzed):
    if request.param == "with deletion vectors":
        spark.sql(f"DELETE FROM {analyzed} WHERE id % 10 = 3")
    return analyzed


def test_rows_are_the_same_and_files_fewer(spark, either):
    for query, files in QUERIES.items():
        check_first(spark, query.format(t=either), files)


@pytest.mark.slow
def test_by_path_and_without_adaptive_execution(spark, analyzed):
    spark.sql(f"DELETE FROM {analyzed} WHERE id % 10 = 3")
    for query, files in list(QUERIES.items())[:3]:
        check_first(spark, query.format(t=f"delta.`{location(spark, analyzed)}`"), files)
        with conf(spark, spark__sql__adaptive__enabled="false"):
            check_first(spark, query.format(t=analyzed), files)


def test_explain_says_how_many(spark, analyzed):
    query = f"SELECT * FROM {analyzed} WHERE id = 7"
    assert labels(spark.sql(query)) == ["4 -> 1 files"]
    kept = [row["kept"] for row in metastore.explain(spark, query)]
    assert sorted(kept) == [False, False, False, True]


def test_files_of_later_versions_are_read(spark, analyzed):
    append(spark, analyzed, 400, 500, 1)
    frame = spark.sql(f"SELECT * FROM {analyzed} WHERE id = 450")
    assert len(frame.collect()) == 1
    assert labels(frame) == ["5 -> 1 files"]


def test_the_optimizer_learns_true_numbers(spark, analyzed):
    def estimated_rows() -> int:
        plan = spark.sql(f"SELECT * FROM {analyzed} WHERE id < 100")._jdf.queryExecution().optimizedPlan()
        count = plan.stats().rowCount()
        return int(str(count.get())) if count.isDefined() else -1

    assert 90 <= estimated_rows() <= 110
    with conf(spark, spark__metastore__enabled="false"):
        assert estimated_rows() == -1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["STRING", "INT", "DATE"])
def test_a_partition_of_few_rows_in_several_files_is_estimated_right(spark, table, kind):
    days = {"STRING": ("'a'", "'b'"), "INT": ("1", "100"), "DATE": ("DATE '2024-01-01'", "DATE '2024-03-01'")}[kind]
    create(spark, table, f"id BIGINT, day {kind}", "PARTITIONED BY (day)")
    for start, end, day in ((0, 1, days[0]), (1, 2, days[0]), (2, 50, days[1]), (50, 100, days[1])):
        append(spark, table, start, end, files=1, row=f"id, {day} AS day")

    def rows(where: str) -> int:
        stats = spark.sql(f"SELECT * FROM {table} WHERE {where}")._jdf.queryExecution().optimizedPlan().stats()
        return int(str(stats.rowCount().get()))

    for day in days:
        spark.sql(f"ANALYZE TABLE {table} PARTITION (day = {day}) COMPUTE STATISTICS FOR ALL COLUMNS")
        assert rows(f"day = {days[0]}") == 2
    assert rows(f"day = {days[1]}") == 98
    assert rows(f"day IN ({days[0]}, {days[1]})") == 100


def test_rows_of_files_that_were_never_analyzed_are_estimated_by_size(spark, analyzed):
    append(spark, analyzed, 400, 600, 2)
    every = f"SELECT * FROM {analyzed}"
    assert estimate(spark.sql(every))[0] == pytest.approx(600, rel=0.1)
    assert estimates_of(spark, every) == ({"size"}, {False})
    query = f"SELECT * FROM {analyzed} WHERE id < 100"
    assert estimate(spark.sql(query))[0] == pytest.approx(300, rel=0.1)
    few = f"SELECT * FROM {analyzed} WHERE id < 100 AND s < 's00100'"
    assert estimate(spark.sql(few))[0] >= 250


def estimates_of(spark, query: str) -> tuple[set[str], set[bool]]:
    explained = metastore.explain(spark, query)
    return {row["estimated_from"] for row in explained}, {row["estimate_exact"] for row in explained}


def test_numbers_that_spark_left_in_the_catalog_are_not_used(spark, filled):
    spark.sql("ANALYZE TABLES COMPUTE STATISTICS")
    append(spark, filled, 400, 900, 1)
    assert estimate(spark.sql(f"SELECT * FROM {filled}"))[0] > 500


@pytest.fixture
def lied_about(spark, analyzed):
    """A table whose statistics say of `id` what is wrong; only queries trust them, commands do not."""
    written.read_store(location(spark, analyzed)).change("id", written.shifted).write("1")
    with conf(spark, spark__metastore__pruning__rowLevel="off"):
        assert spark.sql(f"SELECT * FROM {analyzed} WHERE id = 5").count() == 0, "the statistics do not lie"
        yield analyzed


@pytest.mark.slow
def test_writes_reach_their_rows_whatever_the_statistics_say(spark, lied_about):
    t = lied_about
    spark.sql(f"DELETE FROM {t} WHERE id < 50")
    assert query_number(spark, f"SELECT count(*) FROM {t}") == 350
    spark.sql(f"UPDATE {t} SET v = -1 WHERE id BETWEEN 90 AND 110")
    assert query_number(spark, f"SELECT count(*) FROM {t} WHERE v = -1") == 21
    spark.sql(
        f"MERGE INTO {t} t USING (SELECT id FROM {t} WHERE id < 80) s ON t.id = s.id AND t.id >= 60 "
        "WHEN MATCHED THEN UPDATE SET v = -3"
    )
    assert query_number(spark, f"SELECT count(*) FROM {t} WHERE v = -3") == 20
    spark.sql(f"INSERT INTO {t} SELECT * FROM {t} WHERE id >= 380")
    assert query_number(spark, f"SELECT count(*) FROM {t}") == 370
    spark.sql(f"INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 200")
    assert query_number(spark, f"SELECT count(*) FROM {t}") == 150
    spark.sql(f"CREATE TABLE {t}_copy USING delta AS SELECT * FROM {t} WHERE id < 100")
    copied = query_number(spark, f"SELECT count(*) FROM {t}_copy")
    spark.sql(f"DROP TABLE {t}_copy")
    assert copied == 50


def test_maintenance_and_change_feeds_are_left_alone(spark, table):
    create(spark, table, **{"delta.enableChangeDataFeed": "true"})
    append(spark, table, 0, 200, 4)
    metastore.analyze(spark, table, progress=False)
    written.read_store(location(spark, table)).change("id", written.shifted).write("1")
    spark.sql(f"OPTIMIZE {table}")
    assert query_number(spark, f"SELECT count(*) FROM {table}") == 200
    spark.sql(f"DELETE FROM {table} WHERE id = 7")
    changes = spark.sql(f"SELECT count(*) FROM table_changes('{table}', 0) WHERE id < 100").first()[0]
    assert changes == 101
    assert spark.sql(f"DESCRIBE HISTORY {table}").count() >= 6


def test_parameters_work_beside_delta(spark, analyzed):
    assert spark.sql("SELECT :a + 1", args={"a": 1}).first()[0] == 2
    assert spark.sql(f"SELECT count(*) FROM {analyzed} WHERE id < ?", args=[10]).first()[0] == 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["STRING", "INT", "DATE", "DECIMAL(6,2)", "BOOLEAN"])
def test_partition_columns_are_estimated_from_the_log(spark, table, kind):
    create(spark, table, f"id BIGINT, v INT, p {kind}", "PARTITIONED BY (p)")
    values = {
        "STRING": ["'a'", "'b b'", "'c'"], "INT": ["1", "5", "9"], "DECIMAL(6,2)": ["1.50", "2.25", "9.99"],
        "DATE": ["DATE'2024-01-01'", "DATE'2024-02-01'", "DATE'2025-01-01'"], "BOOLEAN": ["true", "false", "NULL"],
    }[kind]  # fmt: skip
    row = f"id, CAST(id % 5 AS INT) AS v, CAST({{}} AS {kind}) AS p"
    append(spark, table, 0, 100, files=1, row=row.format(values[0]))
    metastore.analyze(spark, table, progress=False)
    append(spark, table, 100, 350, files=2, row=row.format(values[1]))
    append(spark, table, 350, 1000, files=1, row=row.format(values[2]))
    append(spark, table, 1000, 1010, files=1, row=row.format("NULL"))

    def rows(where: str) -> int:
        return estimate(spark.sql(f"SELECT * FROM {table} WHERE {where}"))[0]

    last = f"p = {values[2]}" if kind != "BOOLEAN" else "p IS NULL"
    assert rows(f"p = {values[0]}") == 100
    never = [rows(f"p = {values[1]}"), rows(last)]  # by size, of which most is the footer of so few rows
    assert all(100 < estimated < 1000 for estimated in never)
    assert rows(f"p IN ({values[0]}, {values[1]})") == 100 + never[0]
    metastore.analyze(spark, table, progress=False)
    assert rows(f"p = {values[1]}") == 250
    assert rows(last) == (650 if kind != "BOOLEAN" else 660)
    assert rows(f"p <> {values[1]} AND v >= 0") == pytest.approx(750 if kind != "BOOLEAN" else 100, rel=0.01)
    column_statistics = column_stats(spark.table(table))["p"]
    assert int(column_statistics.distinctCount().get()) == (2 if kind == "BOOLEAN" else 3)
    assert int(column_statistics.nullCount().get()) == (660 if kind == "BOOLEAN" else 10)
    assert column_statistics.min().isDefined() == (kind != "STRING")
    assert estimate(spark.sql(f"SELECT p, count(*) FROM {table} GROUP BY p"))[0] <= 4
    estimated = estimates_of(spark, f"SELECT * FROM {table} WHERE p = {values[1]}")
    assert estimated == ({"value counts"}, {True})
    check_first(spark, f"SELECT * FROM {table} WHERE p = {values[1]} AND id < 120", None)


def test_partition_columns_under_names_of_their_own_in_the_log(spark, table):
    create(spark, table, "id BIGINT, `a day` INT", "PARTITIONED BY (`a day`)")
    append(spark, table, 0, 100, files=2, row="id, CAST(id DIV 50 AS INT) AS `a day`")
    metastore.analyze(spark, table, progress=False)
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN `a day` TO day")
    append(spark, table, 100, 200, files=2, row="id, CAST(id DIV 50 AS INT) AS day")
    assert estimate(spark.sql(f"SELECT * FROM {table} WHERE DAY >= 2"))[0] == pytest.approx(100, rel=0.1)
    assert int(column_stats(spark.table(table))["day"].distinctCount().get()) == 4


def test_answers_from_the_log_have_a_row_in_explain(spark, filled):
    def reasons(query):
        rows = spark.sql(f"SELECT DISTINCT reason FROM metastore.explain('{query}')").collect()
        return {row.reason for row in rows}

    assert reasons(f"SELECT count(*) FROM {filled}") == {"ANSWERED_BY_FORMAT"}
    both = reasons(f"SELECT (SELECT count(*) FROM {filled}) n, id FROM {filled} WHERE id >= 0")
    assert both == {"ANSWERED_BY_FORMAT", "NO_STATISTICS"}
    assert reasons(f"SELECT * FROM {filled} WHERE false") == {"NO_SCAN"}
