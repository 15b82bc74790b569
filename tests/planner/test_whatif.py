"""`metastore.whatif`: what it says of a sorted table is what a table is that was really sorted."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import functions

import metastore
from metastore.errors import ColumnNotFound, InvalidArgument, NoStatistics
from parquet.conftest import settle
from planner.plans import files_read

pytestmark = pytest.mark.spark

FILES, ROWS = 8, 1203
COLUMNS = """
    IF(id % 17 = 0, NULL, pmod(hash(id), 97)) AS k,
    IF(id % 11 = 0, NULL, concat('s', lpad(pmod(hash(id, 1), 300), 3, '0'))) AS s,
    CASE WHEN id % 13 = 0 THEN NULL WHEN id % 6 = 0 THEN double('NaN') ELSE pmod(hash(id, 2), 400) / 8 - 20 END AS x,
    date_add(DATE '2024-01-01', CAST(pmod(hash(id, 3), 200) AS INT)) AS d,
    CAST(pmod(hash(id, 4), 500) / 4 AS DECIMAL(12, 2)) AS n,
    IF(id % 3 = 0, NULL, id % 2 = 0) AS flag,
    CAST(pmod(hash(id, 5), 5) AS INT) AS v"""
PREDICATES = {
    "k": [
        *("k = 40", "k = 1000", "k < 30", "k BETWEEN 20 AND 45", "k IN (3, 50, 96)", "k IS NULL", "k IS NOT NULL"),
        *("k <> 4", "k NOT IN (1, 2)", "k + 1 > 60", "k % 10 = 7", "k < 20 OR k > 90", "k <=> NULL"),
        *("k > 90 AND v = 3", "k = 40 AND s > 'zz'", "v = 3", "k > 5 AND k < 7", "k = 3 OR k = 97", "abs(k - 50) < 3"),
    ],
    "s": [
        *("s = 's100'", "s >= 's25'", "s LIKE 's1%'", "s LIKE '%77'", "s IS NULL", "s IN ('s001', 's299')"),
        *("length(s) = 4", "s > 's05' AND v = 2"),
    ],
    "x": [
        *("x = 0", "x > 25", "x < -15", "isnan(x)", "x IS NULL", "x = double('NaN')", "x BETWEEN 0 AND 1"),
        *("x <> 0", "NOT isnan(x)"),
    ],
    "d": [
        *("d = '2024-03-01'", "d > '2024-06-01'", "year(d) = 2024", "month(d) = 2"),
        "d < '2024-01-10' OR d > '2024-07-01'",
    ],
    "n": ["n = 17.25", "n > 100", "n IN (0, 124.75)", "CAST(n AS INT) = 50"],
    "flag": ["flag", "NOT flag", "flag IS NULL"],
}


class Lake:
    """Tables of one format, each of some files: what is written keeps its partitions."""

    def __init__(self, spark, kind, folder):
        self.spark, self.kind, self.folder = spark, kind, folder

    def write(self, name, rows):
        """Write and analyze a table; its name in SQL."""
        if self.kind == "parquet":
            rows.write.parquet(str(self.folder / name))
            settle(self.folder / name)
            table = f"parquet.`{self.folder / name}`"
        else:
            table = f"ice.db.whatif_{name}"
            none = {"write.metadata.metrics.default": "none", "write.distribution-mode": "none"}
            writer = rows.writeTo(table).using("iceberg")
            for key, value in none.items():
                writer = writer.tableProperty(key, value)
            writer.createOrReplace()
        metastore.analyze(self.spark, table, progress=False)
        return table

    def scattered(self, columns=COLUMNS, rows=ROWS):
        return self.write("scattered", self.spark.sql(f"SELECT id, {columns} FROM range(0, {rows}, 1, {FILES})"))

    def sort(self, table, by, files=FILES):
        """The same rows in order, in files of equally many."""
        order = ", ".join(by)
        ranked = self.spark.sql(f"SELECT *, row_number() OVER (ORDER BY {order}) - 1 AS place FROM {table}").cache()
        numbered = self.spark.range(0, ranked.count(), 1, files).withColumnRenamed("id", "place")
        rows = numbered.join(functions.broadcast(ranked), "place").drop("place")
        name = self.write("sorted_" + "_".join(by), rows)
        ranked.unpersist()
        assert len(metastore.files(self.spark, name)) == files
        return name


@pytest.fixture(params=["iceberg", pytest.param("parquet", marks=pytest.mark.slow)])
def lake(request, spark, tmp_path):
    yield Lake(spark, request.param, tmp_path)
    for row in spark.sql("SHOW TABLES IN ice.db LIKE 'whatif_*'").collect():
        spark.sql(f"DROP TABLE ice.db.{row.tableName} PURGE")


def count_kept_files(spark, query):
    return sum(row["kept"] for row in metastore.explain(spark, query))


def ask(spark, query, by):
    (estimate,) = metastore.whatif(spark, query, sorted_by=by)
    return estimate


@pytest.mark.parametrize(
    "column", ["x", *(pytest.param(c, marks=pytest.mark.campaign) for c in PREDICATES if c != "x")]
)
def test_it_is_what_a_sorted_table_reads(spark, lake, column):
    table = lake.scattered()
    in_order = lake.sort(table, [column])
    wrong, fewer = [], 0
    for condition in PREDICATES[column]:
        estimate = ask(spark, f"SELECT * FROM {table} WHERE {condition}", column)
        now = count_kept_files(spark, f"SELECT * FROM {table} WHERE {condition}")
        then = count_kept_files(spark, f"SELECT * FROM {in_order} WHERE {condition}")
        stated = (estimate["files_total"], estimate["files_read_now"], estimate["files_read_then"], estimate["exact"])
        if stated != (FILES, now, then, not re.search(r"\bv\b|'zz'", condition)):
            wrong.append((condition, stated, now, then, estimate["method"]))
        fewer += then < now
    assert not wrong
    assert fewer > 1


def test_files_are_really_read_as_told(spark, lake):
    table = lake.scattered()
    in_order = lake.sort(table, ["k"])
    for condition in ("k < 30", "k IS NULL", "k = 40 AND v >= 0"):
        df = spark.sql(f"SELECT id FROM {in_order} WHERE {condition}")
        assert {row.id for row in df.collect()} == {
            row.id for row in spark.sql(f"SELECT id FROM {table} WHERE {condition}").collect()
        }
        estimate = ask(spark, f"SELECT id FROM {table} WHERE {condition}", ["k"])
        assert (files_read(df)[0], FILES) == (estimate["files_read_then"], estimate["files_total"]), condition
        assert estimate["files_read_then"] < estimate["files_read_now"]


@pytest.mark.slow
@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_a_writer_that_keeps_equal_values_together_reads_about_as_many(spark, lake):
    table = lake.scattered()
    ranges = spark.table(table).repartitionByRange(FILES, "k").sortWithinPartitions("k")
    in_order = lake.write("ranges", ranges)
    for condition in PREDICATES["k"]:
        estimate = ask(spark, f"SELECT * FROM {table} WHERE {condition}", "k")
        assert (
            abs(estimate["files_read_then"] - count_kept_files(spark, f"SELECT * FROM {in_order} WHERE {condition}"))
            <= 2
        ), condition


@pytest.mark.slow
@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
@pytest.mark.parametrize("kind", ["number", "text"])
def test_of_a_histogram_it_is_off_by_little(spark, lake, kind):
    number = "CAST(id * 7919 % 40009 AS INT)"
    value = {"number": number, "text": f"concat('t', sha2(string({number}), 256))"}[kind]
    table = lake.scattered(f"{value} AS k", rows=40000)
    in_order = lake.sort(table, ["k"])
    literal = {"number": "{}", "text": "concat('t', sha2('{}', 256))"}[kind]
    for condition in ("k = {}", "k > {}", "k < {}", "k IN ({}, {})"):
        for at in (7, 4021, 17777, 33333):
            where = condition.replace("{}", literal).replace("{}", str(at))
            estimate = ask(spark, f"SELECT * FROM {table} WHERE {where}", "k")
            assert estimate["method"] == "histogram of k"
            assert estimate["exact"] is False
            assert (
                abs(estimate["files_read_then"] - count_kept_files(spark, f"SELECT * FROM {in_order} WHERE {where}"))
                <= 1
            ), where


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_where_the_first_column_has_one_value_the_second_is_in_order(spark, lake):
    table = lake.scattered()
    in_order = lake.sort(table, ["flag", "k"])
    for condition in ("flag AND k = 40", "NOT flag AND k < 30", "flag IS NULL AND k > 80", "k BETWEEN 20 AND 30"):
        estimate = ask(spark, f"SELECT * FROM {table} WHERE {condition}", ["flag", "k"])
        then = count_kept_files(spark, f"SELECT * FROM {in_order} WHERE {condition}")
        assert abs(estimate["files_read_then"] - then) <= 2, (condition, estimate, then)
        assert estimate["exact"] is False
        assert ask(spark, f"SELECT * FROM {table} WHERE {condition}", "flag")["files_read_then"] >= then


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_limits_and_aggregates_are_answered_of_sorted_files(spark, lake):
    table = lake.scattered()
    in_order = lake.sort(table, ["k"])
    for query in (
        "SELECT * FROM {} WHERE k > 20 LIMIT 3", "SELECT * FROM {} ORDER BY k DESC LIMIT 3", "SELECT count(*) FROM {}",
        "SELECT * FROM {} LIMIT 3", "SELECT max(k) FROM {}",
    ):  # fmt: skip
        estimate = ask(spark, query.format(table), "k")
        now, then = count_kept_files(spark, query.format(table)), count_kept_files(spark, query.format(in_order))
        assert (estimate["files_read_now"], estimate["files_read_then"]) == (now, then), query


@pytest.mark.slow
@pytest.mark.parametrize("by", ["", "k"])
def test_partitions_are_sorted_each_by_itself(spark, tmp_path, by):
    """By a column of its own, and by ranges of the sorted column: files of others are not read."""
    part = "k DIV 25" if by else "v % 3"
    rows = spark.sql(f"SELECT id, {COLUMNS} FROM range(0, {ROWS}, 1, {FILES})").selectExpr("*", f"string({part}) AS p")
    scattered, in_order = tmp_path / "scattered", tmp_path / "sorted"
    rows.write.partitionBy("p").parquet(str(scattered))
    rows.repartition(1).createOrReplaceTempView("whatif_rows")
    ranked = spark.sql("SELECT *, ntile(8) OVER (PARTITION BY p ORDER BY k) AS place FROM whatif_rows")
    for number in range(1, 9):
        ranked.where(f"place = {number}").drop("place").repartition(1).write.mode("append").partitionBy("p").parquet(
            str(in_order)
        )
    for folder in (scattered, in_order):
        settle(folder)
        metastore.analyze(spark, f"parquet.`{folder}`", progress=False)
    for condition in ("k = 40", "k < 30", "k > 70 AND p = '1'", "k IS NULL", "p = '0'"):
        estimate = ask(spark, f"SELECT * FROM parquet.`{scattered}` WHERE {condition}", "k")
        then = count_kept_files(spark, f"SELECT * FROM parquet.`{in_order}` WHERE {condition}")
        assert abs(estimate["files_read_then"] - then) <= 4, (condition, estimate, then)
        assert estimate["exact"] is False


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_each_scan_has_a_row_and_tables_without_the_column_stay(spark, lake):
    table = lake.scattered()
    other = lake.write("other", spark.sql("SELECT id AS key, id AS other FROM range(0, 100, 1, 4)"))
    query = f"SELECT * FROM {table} a JOIN {other} b ON a.v = b.other WHERE a.k = 40 AND b.other < 30"
    estimates = {row["table"]: row for row in metastore.whatif(spark, query, sorted_by=["`K`"])}
    assert [row["files_read_then"] for row in estimates.values()] == [1, 2]
    assert estimates[other]["files_read_now"] == 2
    assert "no column" in estimates[other]["method"]
    in_sql = f"SELECT scan, files_read_then FROM metastore.whatif('SELECT * FROM {table} WHERE k = 40', 'k, id')"
    assert [tuple(row) for row in spark.sql(in_sql).collect()] == [(0, 1)]


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_rows_that_were_written_since_make_it_inexact(spark, lake):
    table = lake.scattered()
    spark.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE id < 10")
    estimate = ask(spark, f"SELECT * FROM {table} WHERE k = 40", "k")
    assert estimate["files_total"] > FILES
    assert (estimate["files_read_then"], estimate["exact"]) == (1, False)


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_columns_without_statistics(spark, lake):
    table = lake.scattered()
    spark.sql(f"ALTER TABLE {table} ADD COLUMN later INT")
    spark.sql(f"INSERT INTO {table} SELECT *, id FROM (SELECT * EXCEPT (later) FROM {table} WHERE id < 10)")
    query = f"SELECT * FROM {table} WHERE later = 3"
    with pytest.raises(NoStatistics, match="of the column later"):
        metastore.whatif(spark, query, sorted_by="later")
    (estimate,) = metastore.whatif(spark, query, statistics="later")
    assert estimate["files_read_then"] == estimate["files_read_now"] == count_kept_files(spark, query)
    assert estimate["method"].startswith("at most")
    (other,) = metastore.whatif(spark, query, statistics="k")
    assert other["method"] == "no condition of the scan names them"


def test_mistakes_are_named(spark, lake):
    table = lake.scattered("id % 7 AS k")
    query = f"SELECT * FROM {table} WHERE k = 3"
    with pytest.raises(ColumnNotFound, match="no column 'kk'"):
        metastore.whatif(spark, query, sorted_by="kk")
    for arguments in ({}, {"sorted_by": "k", "statistics": "k"}, {"sorted_by": " , "}):
        with pytest.raises(InvalidArgument):
            metastore.whatif(spark, query, **arguments)
    spark.range(3).write.parquet(str(lake.folder / "plain"))
    with pytest.raises(NoStatistics):
        metastore.whatif(spark, f"SELECT * FROM parquet.`{lake.folder / 'plain'}` WHERE id = 1", sorted_by="id")


@pytest.mark.parametrize("kind", ["iceberg", "parquet", "path"])
def test_of_a_table_that_was_never_analyzed_there_is_an_upper_bound(spark, tmp_path, kind):
    rows = spark.range(0, 100, 1, 4)
    table = {"iceberg": "ice.db.whatif_new", "parquet": "whatif_new", "path": f"parquet.`{tmp_path / 'new'}`"}[kind]
    if kind == "path":
        rows.write.parquet(str(tmp_path / "new"))
    else:
        rows.write.format(kind).saveAsTable(table)
    (estimate,) = metastore.whatif(spark, f"SELECT * FROM {table} WHERE id = 7", statistics=["id"])
    with pytest.raises(ColumnNotFound, match="no column 'idd'"):
        metastore.whatif(spark, f"SELECT * FROM {table} WHERE id = 7", statistics="idd")
    if kind != "path":
        spark.sql(f"DROP TABLE {table}")
    read = 1 if kind == "iceberg" else 4  # which skips by itself
    assert (estimate["files_total"], estimate["files_read_then"], estimate["exact"]) == (4, read, False)
    assert estimate["method"].startswith("at most")
