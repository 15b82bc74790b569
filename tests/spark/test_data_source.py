"""`format("metastore")` and the Python verbs on one real table: the same answers in all ways."""

from __future__ import annotations

from random import Random

import pytest
from pyspark.errors import PySparkException

import metastore
from format.test_sparkline import SHAPES
from lakes import SPARK
from metastore.errors import ColumnNotFound, NoStatistics, TableNotFound
from metastore.format.sparkline import draw_sparkline
from metastore.reading import views
from pruning.scala import module

pytestmark = pytest.mark.spark

TABLE = "ice.db.read_by_source"


@pytest.fixture(scope="module")
def table(spark, warehouse):
    spark.sql(
        f"CREATE TABLE {TABLE} (id INT, name STRING, price DECIMAL(10,2), day DATE, at TIMESTAMP, x DOUBLE, "
        "st STRUCT<a: INT, `b.c`: STRING>, tags ARRAY<STRING>, ok BOOLEAN) USING iceberg"
    )
    for part in range(3):
        spark.sql(
            f"INSERT INTO {TABLE} SELECT CAST(id + {part * 100} AS INT), concat('n', id), CAST(id AS DECIMAL(10,2)), "
            f"date_add(DATE'2024-01-01', {part}), TIMESTAMP'2024-01-01 00:00:00' + make_dt_interval(id), "
            "IF(id = 3, double('NaN'), id / 3), named_struct('a', CAST(id AS INT), 'b.c', 's'), array('t'), id > 5 "
            "FROM range(0, 10, 1, 1)"
        )
    metastore.analyze(spark, TABLE, progress=False)
    return f"{warehouse}/db/read_by_source"


def without_empty_partition(row):
    return {name: value or None if name == "partition" else value for name, value in row.items()}


def source(spark, view, **options):
    return spark.read.format("metastore").options(view=view, **options)


@pytest.mark.parametrize("verb", ["summary", "files", "columns", "snapshots"])
def test_sql_and_location_say_the_same(spark, table, verb):
    by_sql = getattr(metastore, verb)(spark, TABLE)
    by_location = getattr(metastore.open(table), verb)()
    assert by_sql.columns == by_location.columns
    key = lambda row: str(row.get("path", "")) + str(row.get("column_name", ""))  # noqa: E731 - a sort key
    for sql_row, other in zip(sorted(by_sql, key=key), sorted(by_location, key=key), strict=True):
        assert without_empty_partition(sql_row) == without_empty_partition(other)


def test_summary_of_one_file_says_the_same(spark, table):
    path = metastore.files(spark, TABLE)[0]["path"]
    assert list(metastore.summary(spark, TABLE, file=path)) == list(metastore.open(table).summary(file=path))


@pytest.mark.parametrize("verb", ["summary", "files", "snapshots"])
def test_answers_are_frames_of_spark(spark, table, verb):
    answer = getattr(metastore, verb)(spark, TABLE)
    frame = answer.to_spark(spark)
    assert frame.columns == list(answer.columns)
    assert [row[0] for row in frame.collect()] == [row[answer.columns[0]] for row in answer]


def test_the_shim_draws_the_same_sparklines(spark):
    random = Random(1)
    draw_integer = lambda: random.randrange(-3, 9), lambda: random.randrange(-(2**62), 2**62)
    broken = lambda: random.gauss(0, 1), lambda: random.choice([0.5, 7.25]), lambda: 10 ** random.uniform(-300, 300)
    for name, draws in (("Long", draw_integer), ("Double", broken)):
        for draw in draws * 20:
            values = sorted(draw() for _ in range(101))
            assert draw_in_shim(spark, name, values) == draw_sparkline(values)


def draw_in_shim(spark, name, values):
    """The sparkline that the shim draws of an array of `Long` or `Double`."""
    gateway = spark.sparkContext._gateway
    array = gateway.new_array(getattr(gateway.jvm, name.lower()), len(values))
    for row_number, value in enumerate(values):
        array[row_number] = value
    percentiles = getattr(gateway.jvm.scala.Predef, f"wrap{name}Array")(array).toIndexedSeq()
    drawn = module(spark, "org.metastore.spark.statistics.values.Sparkline").draw(percentiles)
    return drawn.get() if drawn.isDefined() else None


@pytest.mark.parametrize(("percentiles", "expected"), SHAPES)
def test_the_shim_draws_the_same_shapes(spark, percentiles, expected):
    if isinstance(percentiles[0], bytes):
        pytest.skip("the shim draws bytes as it draws nothing")
    name = "Long" if isinstance(percentiles[0], int) else "Double"
    assert draw_in_shim(spark, name, percentiles) == expected


@pytest.mark.slow
@pytest.mark.parametrize("view", list(views.VIEWS))
def test_every_view_by_location(spark, table, view):
    frame = source(spark, view).load(table)
    names = views.VIEWS[view].names
    assert frame.columns[: len(names)] == names
    assert len(frame.columns) == len(names) or view == "histograms_wide"
    assert frame.count() == metastore.open(table).view(view).num_rows
    assert frame.count() > 0 or view == "ranks"  # which are made where asked for


def test_values_are_typed(spark, table):
    frame = source(spark, "columns").load(table).where("column_name = 'id'")
    assert sorted((row.lo_long, row.hi_long) for row in frame.collect()) == [(0, 9), (100, 109), (200, 209)]


@pytest.mark.slow
@pytest.mark.parametrize("pushed", ["true", "false"])
def test_filters_work_pushed_or_not(spark, table, pushed):
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushed)
    try:
        path = metastore.open(table).files()[0]["path"]
        frame = source(spark, "columns").load(table)
        file_row = frame.where((frame.column_name == "id") & (frame.path == path)).collect()
        assert [(row.path, row.column_name) for row in file_row] == [(path, "id")]
        assert frame.where("column_name = 'none'").count() == 0
        assert frame.where("path = 'none'").count() == 0
        assert frame.where("column_name = 'ID'").count() == 0
        assert frame.where("column_name = 'id' OR column_name = 'x'").count() == 6
        assert frame.count() == metastore.open(table).view("columns").num_rows
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize("by", ["name", "location"])
def test_options_narrow_what_is_read(spark, table, by):
    path = metastore.open(table).files()[0]["path"]
    rows = source(spark, "columns", column="id", file=path).load(TABLE if by == "name" else table).collect()
    assert [(row.path, row.column_name) for row in rows] == [(path, "id")]


NARROWED = {"summary": 1, "columns": 1, "frequencies": 10, "histograms": 1, "histograms_wide": 11}


@pytest.mark.parametrize("by", ["name", "location"])
@pytest.mark.parametrize("view", NARROWED)
def test_every_view_honours_both_options(spark, table, view, by):
    path = max(row["path"] for row in metastore.open(table).files())  # the last of three files
    where = TABLE if by == "name" else table
    all_rows = source(spark, view).load(where)
    narrow = source(spark, view, column="ID", file=path).load(where)
    narrow_rows = narrow.collect()
    assert len(narrow_rows) == NARROWED[view]
    if view == "histograms_wide":
        assert narrow.columns == ["edge", "id"]
    else:
        assert {row.column_name for row in narrow_rows} == {"id"}
        assert {row.column_name for row in source(spark, view, file=path).load(where).collect()} <= {
            row.column_name for row in all_rows.collect()
        }
    if view == "summary":
        of_file = next(row for row in metastore.open(table).summary(file=path) if row["column_name"] == "id")
        assert (narrow_rows[0].min, narrow_rows[0].max, narrow_rows[0]["count"]) == (of_file["min"], of_file["max"], 10)
        assert [row["count"] for row in source(spark, view, column="id").load(where).collect()] == [30]


@pytest.mark.parametrize("by", ["name", "location"])
@pytest.mark.parametrize(
    ("view", "option", "message"),
    [
        ("files", "file", "the view files cannot be narrowed by it"),
        ("files", "column", "the view files cannot be narrowed by it"),
        ("snapshots", "column", "the view snapshots cannot be narrowed by it"),
        ("ranks", "file", "the view ranks cannot be narrowed by it"),
        ("summary", "column", r"METASTORE_COLUMN_NOT_FOUND.*has no column 'idd'. Did you mean id"),
        ("frequencies", "column", "METASTORE_COLUMN_NOT_FOUND"),
        ("columns", "column", "METASTORE_COLUMN_NOT_FOUND"),
        ("summary", "file", "METASTORE_INVALID_ARGUMENT.*idd is no data file of"),
        ("columns", "file", "METASTORE_INVALID_ARGUMENT.*idd is no data file of"),
        ("histograms", "file", "METASTORE_INVALID_ARGUMENT.*idd is no data file of"),
        ("summary", "at", "METASTORE_INVALID_ARGUMENT.*at: it is not an option of the data source"),
        ("ranks", "AT", "METASTORE_INVALID_ARGUMENT.*at: it is not an option of the data source"),
        ("summary", "colum", "colum: it is not an option of the data source. Did you mean column"),
        ("files", "veiw", "veiw: it is not an option of the data source. Did you mean view"),
        ("sumary", "column", "view: there is no view sumary. Did you mean summary"),
    ],
)
def test_options_that_narrow_nothing_are_refused(spark, table, view, option, message, by):
    with pytest.raises(PySparkException, match=message):
        source(spark, view, **{option: "idd"}).load(TABLE if by == "name" else table).collect()


def test_filters_on_column_and_file_are_pushed_for_each_query_alone(spark, table):
    frame = source(spark, "columns").load(TABLE)
    by_location = source(spark, "columns").load(table)
    path, other, _ = sorted(row["path"] for row in metastore.open(table).files())
    for where, read in [
        ("column_name = 'id'", 3),
        (f"column_name IN ('id', 'x') AND path = '{path}'", 2),
        (f"path IN ('{path}', '{other}') AND lo_long = 0", 2 * 10),
        ("column_name = 'ID'", 0),
        ("column_name = 'id' OR path = 'none'", 3 * 10),
    ]:
        assert rows_read(spark, frame.where(where)) == read, where
        expected = sorted((row.path, row.column_name) for row in by_location.where(where).collect())
        pushed = frame.select("path", "column_name", "lo_long").where(where)
        assert sorted((row.path, row.column_name) for row in pushed.collect()) == expected
    joined = frame.alias("a").join(frame.alias("b"), ["path", "column_name"]).where("column_name = 'id'")
    assert joined.count() == 3
    assert frame.count() == by_location.count()


def rows_read(spark, frame):
    """Rows that are read for a filter, before it is applied."""
    rule = module(spark, "org.metastore.spark.sql.ColumnsViewRule")
    return rule.apply(frame._jdf.queryExecution().analyzed()).collectLeaves().head().data().size()


@pytest.mark.parametrize("view", [view for view in views.VIEWS if view != "ranks"])
def test_every_view_by_name(spark, table, view):
    by_name, by_location = source(spark, view).load(TABLE), source(spark, view).load(table)
    assert by_name.columns == by_location.columns
    assert by_name.count() == by_location.count()


def test_as_a_table_in_sql(spark, table):
    spark.sql(f"CREATE TEMPORARY VIEW stored USING metastore OPTIONS (path '{table}', view 'files')")
    assert spark.sql("SELECT sum(rows) FROM stored").collect()[0][0] == 30


@pytest.mark.parametrize("options", ["path '{path}'", "table '{name}'", "table '{name}', column 'id', view 'columns'"])
def test_as_a_table_of_the_session_catalog(spark, table, options):
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.spark_catalog", "builtin")  # Delta's cannot: docs/details/data-source.md
    option_text = options.format(path=table, name=TABLE)
    view = "" if "view" in option_text else ", view 'files'"
    session.sql(f"CREATE TABLE stored_table USING metastore OPTIONS ({option_text}{view})")
    try:
        assert session.sql("SELECT sum(rows) FROM stored_table").first()[0] == 30
        assert session.table("stored_table").count() == 3
    finally:
        session.sql("DROP TABLE stored_table")


@pytest.mark.parametrize(
    ("view", "where", "message"),
    [
        ("nonsense", "/x", "METASTORE_INVALID_ARGUMENT"),
        ("rank", "/x", "there is no view rank"),
    ],
)
def test_mistakes_are_told_before_anything_runs(spark, view, where, message):
    with pytest.raises(PySparkException, match=message):
        source(spark, view).load(where).explain()


def test_a_location_without_statistics_is_told(spark):
    with pytest.raises(PySparkException, match="METASTORE_TABLE_NOT_FOUND"):
        source(spark, "summary").load("/no/where").collect()


@pytest.mark.parametrize(("view", "where"), [("nonsense", ["/x"]), ("summary", ["/no/where"]), ("summary", [])])
def test_mistakes_come_without_the_trace_of_a_worker(spark, view, where):
    with pytest.raises(PySparkException, match="METASTORE_") as caught:
        source(spark, view).load(*where).collect()
    assert "Traceback" not in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 3
    if SPARK == "4.1":  # before, Spark alone finds data sources
        assert str(caught.value).startswith("[METASTORE_")


@pytest.mark.slow
def test_a_reader_that_is_made_early_reads_late(spark, tmp_path):
    rows = spark.range(10).selectExpr("id")
    rows.write.parquet(str(tmp_path / "t"))
    table = f"parquet.`{tmp_path / 't'}`"
    metastore.analyze(spark, table, progress=False)
    read = source(spark, "summary").load(str(tmp_path / "t"))
    assert [row["count"] for row in read.collect()] == [10]
    rows.write.mode("append").parquet(str(tmp_path / "t"))
    metastore.analyze(spark, table, progress=False)
    assert [row["count"] for row in read.collect()] == [20]


def test_errors_of_sql_are_errors_of_python(spark, table):
    with pytest.raises(TableNotFound, match="METASTORE_TABLE_NOT_FOUND"):
        metastore.summary(spark, "ice.db.no_such_table")
    with pytest.raises(ColumnNotFound, match="idd"):
        metastore.columns(spark, TABLE, "idd")
    spark.sql("CREATE TABLE IF NOT EXISTS ice.db.never_analyzed (id INT) USING iceberg")
    with pytest.raises(NoStatistics, match="ANALYZE TABLE"):
        metastore.summary(spark, "ice.db.never_analyzed")


def test_current_is_false_after_an_append(spark, table):
    spark.sql("CREATE TABLE ice.db.appended_to (id INT) USING iceberg")
    spark.sql("INSERT INTO ice.db.appended_to VALUES (1)")
    metastore.analyze(spark, "ice.db.appended_to", progress=False)
    location = table.replace("read_by_source", "appended_to")
    assert metastore.summary(spark, "ice.db.appended_to").current is True
    assert metastore.open(location).summary().current is True
    spark.sql("INSERT INTO ice.db.appended_to VALUES (2)")
    assert metastore.summary(spark, "ice.db.appended_to").current is False
    assert metastore.open(location).summary().current is False


def test_the_other_verbs(spark, table):
    assert metastore.version(spark)["format"] == 1
    assert TABLE in [row["table"] for row in metastore.tables(spark, "ice.db")]
    read = [row["kept"] for row in metastore.explain(spark, f"SELECT * FROM {TABLE} WHERE id + 1 = 106")]
    assert (len(read), sum(read)) == (3, 1)
    assert {row["name"] for row in metastore.settings(spark)} >= {"spark.metastore.enabled"}


def test_settings_of_the_session_are_seen(spark):
    spark.conf.set("spark.metastore.pruning.enabled", "false")
    try:
        rows = {row["name"]: row for row in metastore.settings(spark)}
        assert rows["spark.metastore.pruning.enabled"]["value"] == "false"
        assert rows["spark.metastore.pruning.enabled"]["source"] == "spark"
    finally:
        spark.conf.unset("spark.metastore.pruning.enabled")
