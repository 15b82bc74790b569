"""Statistics in the session catalog: as Spark's own ANALYZE leaves them, for who reads them there."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

import metastore
from lakes import FORMATS
from metastore.errors import InvalidArgument, NoStatistics, UnsupportedTable
from planner.plans import conf

pytestmark = pytest.mark.spark
HINT = r"\. ANALYZE TABLE by its name is Spark's own until spark\.metastore\.analyze\.formats has parquet"

_NUMBERS = itertools.count()
_COLUMNS = {
    "i": "CAST(id % 7 AS INT)",
    "small": "CAST(IF(id % 3 = 0, NULL, id % 5) AS TINYINT)",
    "big": "id * 1000000007",
    "d": "CAST(id AS DOUBLE) / 4",
    "b": "id % 2 = 0",
    "s": "IF(id % 4 = 0, NULL, concat('s', id % 90))",
    "price": "CAST(id AS DECIMAL(9, 2)) / 100",
    "wide": "CAST(id - 50 AS DECIMAL(38, 2))",
    "day": "date_add(DATE'1999-12-01', CAST(id AS INT))",
    "at": "timestamp_micros(id * 1000003)",
    "bytes": "CAST(concat('x', id) AS BINARY)",
    "none": "CAST(NULL AS INT)",
}
_LEFT_OUT = {
    "nan": "IF(id = 1, CAST('NaN' AS DOUBLE), 1.0D)",
    "inner": "named_struct('a', id)",
    "list": "array(id)",
}


@pytest.fixture
def new_table(spark):
    made = []

    def make(kind="parquet", columns=_COLUMNS, rows=200, more=""):
        name = f"default.exported_{next(_NUMBERS)}"
        made.append(name)
        listed = ", ".join(f"{sql} AS {column}" for column, sql in columns.items())
        spark.sql(f"CREATE TABLE {name} USING {kind} {more} AS SELECT {listed} FROM range(0, {rows}, 1, 2)")
        return name

    yield make
    for name in made:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def _analyze(spark, table, **how):
    metastore.analyze(spark, table, progress=False, **how)


def _describe(spark, table, column):
    return {row.info_name: row.info_value for row in spark.sql(f"DESCRIBE EXTENDED {table} {column}").collect()}


def _stored(spark, table):
    state = spark._jsparkSession.sessionState()
    statistics = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(table)).stats()
    return statistics.get() if statistics.isDefined() else None


def _expected_rows(spark, query):
    """Return Spark's own estimate, without us."""
    with conf(spark, spark__metastore__enabled=False, spark__sql__cbo__enabled=True):
        row_count = spark.sql(query)._jdf.queryExecution().optimizedPlan().stats().rowCount()
        return int(str(row_count.get())) if row_count.isDefined() else None


def test_the_catalog_says_what_spark_s_own_analyze_says(spark, new_table):
    table = new_table(columns={**_COLUMNS, **_LEFT_OUT})
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS {', '.join(_COLUMNS)}")
    theirs, size = {name: _describe(spark, table, name) for name in _COLUMNS}, _stored(spark, table).sizeInBytes()
    _analyze(spark, table)
    done = metastore.export(spark, table)
    assert (done["subject"], done["rows"], done["columns"], done["left_out"]) == (
        *(table, 200, list(_COLUMNS)),
        list(_LEFT_OUT),
    )
    stored = _stored(spark, table)
    assert (str(stored.rowCount().get()), done["size_bytes"]) == ("200", int(str(stored.sizeInBytes())))
    assert 0 < done["size_bytes"] <= int(str(size))
    for name in _COLUMNS:
        ours = _describe(spark, table, name)
        truth = spark.sql(f"SELECT count(DISTINCT {name}) FROM {table}").first()[0]
        assert ours == {**theirs[name], "distinct_count": str(truth)}, name
    for name in _LEFT_OUT:
        assert not stored.colStats().contains(name)


def test_histograms_where_spark_keeps_them(spark, new_table):
    table = new_table(columns={"i": "id", "day": _COLUMNS["day"], "s": _COLUMNS["s"], "few": "CAST(id % 2 AS INT)"})
    with conf(spark, spark__sql__statistics__histogram__enabled=True, spark__sql__statistics__histogram__numBins=4):
        _analyze(spark, table)
        metastore.export(spark, table)
    bins = [_bins(spark, table, name) for name in ("i", "day", "few")]
    assert bins[0] == (50.0, [(0, 49, 50), (49, 99, 50), (99, 149, 50), (149, 199, 50)])
    assert bins[1] == (50.0, [(10926 + lo, 10926 + hi, count) for lo, hi, count in bins[0][1]])
    assert (bins[2][0], [bin_[:2] for bin_ in bins[2][1]]) == (50.0, [(0, 0), (0, 0), (0, 1), (1, 1)])
    assert not _stored(spark, table).colStats().apply("s").histogram().isDefined()


def _bins(spark, table, column):
    histogram = _stored(spark, table).colStats().apply(column).histogram().get()
    return histogram.height(), [(bin_.lo(), bin_.hi(), bin_.ndv()) for bin_ in histogram.bins()]


@pytest.mark.parametrize(
    "kind", [format_ for format_ in ("parquet", "delta", "hudi") if format_ in ("parquet", *FORMATS)]
)
def test_spark_alone_plans_by_them(spark, new_table, kind):
    table = new_table(kind, {"i": "id", "v": "id % 10"})
    query = f"SELECT * FROM {table} WHERE v = 3"
    assert _expected_rows(spark, query) is None
    _analyze(spark, table)
    metastore.export(spark, table)
    assert _expected_rows(spark, f"SELECT * FROM {table}") == 200
    assert _expected_rows(spark, query) == 20


@pytest.mark.skipif("delta" not in FORMATS, reason="without Delta")
def test_of_deleted_rows_no_bounds_are_told(spark, new_table):
    table = new_table("delta", {"i": "id"}, more="TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {table} WHERE i = 0")
    _analyze(spark, table)
    done = metastore.export(spark, table)
    assert (done["rows"], done["columns"], done["left_out"]) == (199, [], ["i"])
    assert _expected_rows(spark, f"SELECT * FROM {table}") == 199


def test_parts_of_a_table_are_refused(spark, new_table):
    table = new_table(columns={"i": "id", "p": "id % 2"}, more="PARTITIONED BY (p)")
    with pytest.raises(NoStatistics, match="has no statistics") as refused:
        metastore.export(spark, table)
    assert "ANALYZE TABLE" in str(refused.value)
    _analyze(spark, table, partition={"p": 0})
    with pytest.raises(NoStatistics, match=rf"of 2 of its 4 data files{HINT}\. Run: ANALYZE TABLE .* FOR ALL COLUMNS"):
        metastore.export(spark, table)
    _analyze(spark, table, depth="files")
    with pytest.raises(NoStatistics, match=rf"of column i in 2 of its 4 data files{HINT}\. Run: ANALYZE TABLE"):
        metastore.export(spark, table)
    _analyze(spark, table)
    metastore.export(spark, table)
    spark.sql(f"INSERT INTO {table} VALUES (1, 1)")
    with pytest.raises(NoStatistics, match=rf"of its current snapshot{HINT}\. Run: ANALYZE TABLE"):
        metastore.export(spark, table)


def test_a_footer_tells_of_no_column(spark, new_table):
    table = new_table(columns={"i": "id"})
    _analyze(spark, table, depth="footer")
    assert metastore.export(spark, table)["left_out"] == ["i"]
    assert _expected_rows(spark, f"SELECT * FROM {table}") == 200


def test_other_catalogs_have_no_place_for_them(spark, new_table):
    spark.sql("CREATE OR REPLACE TABLE ice.db.not_exported USING iceberg AS SELECT 1 AS a")
    _analyze(spark, "ice.db.not_exported")
    with pytest.raises(UnsupportedTable, match=r"session catalog.*spark\.metastore\.iceberg\.puffin"):
        metastore.export(spark, "ice.db.not_exported")
    table = new_table(columns={"i": "id"})
    table_path = next(row[1] for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect() if row[0] == "Location")
    with pytest.raises(UnsupportedTable, match="session catalog"):
        metastore.export(spark, f"parquet.`{table_path.removeprefix('file:')}`")
    with pytest.raises(InvalidArgument, match="'glue' is not hive"):
        metastore.export(spark, table, to="glue")


def test_a_connect_session_is_told_of_the_command():
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session", "sql": None})()
    with pytest.raises(InvalidArgument, match="metastore export TABLE --to hive"):
        metastore.export(remote, "t")


@pytest.mark.skipif("delta" not in FORMATS, reason="of Delta")
def test_any_thread_may_ask(spark, new_table):
    """The shim's own threads and those of Python have no active session until it is set."""
    table = new_table("delta", {"i": "id"})
    _analyze(spark, table)
    with ThreadPoolExecutor(1) as threads:
        exported = threads.submit(_export_without_active_session, spark, table).result()
    assert (exported["rows"], exported["columns"]) == (200, ["i"])


def _export_without_active_session(spark, table):
    spark._jvm.org.apache.spark.sql.SparkSession.clearActiveSession()
    return metastore.export(spark, table)
