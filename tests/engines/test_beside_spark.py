"""Pruning without Spark by statistics that Spark wrote: no row is lost, as many files are left out as by the shim."""

from __future__ import annotations

import pytest

import metastore

deltalake = pytest.importorskip("deltalake")
pyiceberg_table = pytest.importorskip("pyiceberg.table")

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROW = (
    "id, CAST(id % 7 AS INT) AS v, concat('s', lpad(CAST(id AS STRING), 5, '0')) AS s,"
    " CASE WHEN id = 37 THEN double('NaN') WHEN id % 11 = 0 THEN NULL ELSE id / 4D END AS x,"
    " CAST(id / 3 AS FLOAT) AS f,"
    " CAST(id AS DECIMAL(12,2)) AS c, CAST(id AS DECIMAL(30,3)) AS w, id % 2 = 0 AS p,"
    " date_add(DATE '2024-01-01', CAST(id DIV 20 AS INT)) AS day,"
    " TIMESTAMP '2024-01-01 00:00:00Z' + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS t,"
    " named_struct('a', CAST(id AS INT), 'b', CAST(id AS STRING)) AS st, array(id) AS l,"
    " concat('p ', id DIV 40, '%') AS part"
)
FILTERS = (
    "id = 5", "id > 60 AND id < 62", "id IN (3, 77, NULL)", "id NOT IN (1)", "v = 9", "v = 3 AND id < 20",
    "s = 's00021'", "s LIKE 's0003%'", "s LIKE '%55'", "s LIKE '%x%'", "s > 's00090'", "x > 1000", "x <= 3",
    "isnan(x)", "x IS NULL", "x <=> NULL", "f = 5", "f < 4.5", "c = 12", "c > 91.5", "c BETWEEN 3 AND 4.25",
    "w >= 99", "w = 12.3456", "p AND id < 15", "NOT p AND s = 's00010'", "day = DATE '2024-01-02'",
    "day < '2024-01-02'", "t >= TIMESTAMP '2024-01-03 00:00:00Z'", "t = '2024-01-01 07:00:00Z'", "st.a = 44",
    "st.b = '44'", "st.a IS NULL", "l IS NULL", "part = 'p 1%'", "part <> 'p 0%'", "NOT (id > 10 OR id < 5)",
    "id = 5 OR s = 's00090'", "id < 10 AND s > 's00050'", "length(s) = 6", "st.a = id",
    "lower(s) = 's00021'", "lcase(s) LIKE 's0003%'", "id + v = 8", "upper(s) = 'S00090'",
    "substring(s, 2, 5) = '00055'", "left(s, 5) = 's0002'", "trim(s) = 's00077'", "length(s) > 6", "id + 1 = 6",
    "50 - id > 45", "v * 2 = 14", "v % 7 = 9", "CAST(v AS BIGINT) = 9", "CAST(c AS DECIMAL(14,3)) = 12",
    "year(day) = 2023", "month(day) = 2", "day(day) = 3", "date_add(day, 1) = DATE '2024-01-03'",
    "trunc(day, 'week') > DATE '2024-01-05'", "CAST(t AS DATE) = DATE '2024-01-02'",
    "date_trunc('HOUR', t) = TIMESTAMP '2024-01-01 07:00:00Z'", "hour(t) = 3", "lower(s) IS NULL", "year(t) < 2024",
    "NOT (lower(s) >= 's00040')", "id + 1 = 6 OR upper(s) = 'S00090'",
)  # fmt: skip
MORE = {
    "part = 'p 1%'": 1,  # of the new file Spark knows the partition
    "w = 12.3456": 1,  # which Spark knows to be false of every row
}
"""How many more files than the shim's are read, by the filter."""


def fill(spark, name: str, create: str) -> None:
    """Five files of twenty rows, sorted; some rows are deleted, and a sixth file is not analyzed."""
    spark.sql(f"CREATE TABLE {name} {create} AS SELECT {ROW} FROM range(0)")
    for start in range(0, 100, 20):
        spark.sql(f"INSERT INTO {name} SELECT {ROW} FROM range({start}, {start + 20}, 1, 1)")
    metastore.analyze(spark, name, progress=False, expressions=["lower(s)", "id + v", "hour(t)"])
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 5")
    spark.sql(f"INSERT INTO {name} SELECT {ROW} FROM range(200, 220, 1, 1)")


@pytest.fixture(scope="module")
def iceberg(spark, warehouse):
    name = "ice.db.engines_side"
    properties = (
        "'write.delete.mode' = 'merge-on-read', 'format-version' = '2', 'write.metadata.metrics.default' = 'none'"
    )
    fill(spark, name, f"USING iceberg PARTITIONED BY (part) TBLPROPERTIES ({properties})")
    logged = spark.sql(f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp").collect()
    yield name, pyiceberg_table.StaticTable.from_metadata(logged[-1][0].removeprefix("file:"))
    spark.sql(f"DROP TABLE {name}")


@pytest.fixture(scope="module")
def delta(spark):
    name = "engines_side"
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.dataSkippingNumIndexedCols' = '0'"
    fill(spark, name, f"USING delta PARTITIONED BY (part) TBLPROPERTIES ({properties})")
    yield name, deltalake.DeltaTable(spark.sql(f"DESCRIBE DETAIL {name}").first().location.removeprefix("file:"))
    spark.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize(("format_", "path"), [("iceberg", "_file"), ("delta", "_metadata.file_path")])
def test_no_row_is_lost_and_as_many_files_are_skipped(spark, request, format_, path):
    name, table = request.getfixturevalue(format_)
    statistics = metastore.open(table)
    conditions = ", ".join(FILTERS)  # in an aggregate Spark fails on some of them
    rows = [
        (file_name(file), matches) for file, *matches in spark.sql(f"SELECT {path}, {conditions} FROM {name}").collect()
    ]
    more = {}
    for position, condition in enumerate(FILTERS):
        files = statistics.prune(condition)
        ours, expected = set(map(file_name, files)), {file for file, matches in rows if matches[position]}
        explained = metastore.explain(spark, f"SELECT * FROM {name} WHERE {condition}")
        assert expected <= ours, condition
        assert (files.total, files.analyzed, files.current) == (6, 5, True)
        assert len(files.with_deletes) == len(ours) - 1  # all but the new file have deletes
        if ours != {file_name(row["path"]) for row in explained if row["kept"]}:
            more[condition] = len(ours) - sum(row["kept"] for row in explained)
    assert more == MORE


def file_name(path: str) -> str:
    return path.rpartition("/")[2]
