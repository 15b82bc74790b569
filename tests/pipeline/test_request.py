"""Mistakes are named, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

import metastore
from metastore.errors import ColumnNotFound, InvalidArgument, StoreNotWritable, TableNotFound, UnsupportedTable
from pipeline.checks import Stored, location

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def sales(spark):
    name = "ice.db.requests"
    spark.sql(
        f"CREATE TABLE {name} (id INT, price DOUBLE, `a.b` STRING, s STRUCT<x: INT, `y z`: STRING>, day DATE, p STRING)"
        " USING iceberg PARTITIONED BY (p, bucket(2, id))"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT CAST(id AS INT), 1.5, 'v', named_struct('x', 1, 'y z', 'q'), "
        "DATE'2024-01-01', IF(id = 0, NULL, concat('p', id % 2)) FROM range(10)"
    )
    yield name
    spark.sql(f"DROP TABLE {name} PURGE")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"columns": ["prise"]}, ColumnNotFound, "price"),
        ({"columns": ["id", "s.z"]}, ColumnNotFound, "s.z"),
        ({"partition": {"price": 1}}, InvalidArgument, "not a partition column"),
        ({"partition": {"q": 1}}, ColumnNotFound, "'q'"),
        ({"partition": {"p": "p7"}}, InvalidArgument, "p = p7"),
        ({"depth": "deep"}, InvalidArgument, "deep"),
        ({"columns": "id"}, InvalidArgument, "list"),
        ({"columns": ["id"], "depth": "footer"}, InvalidArgument, "footer"),
    ],
)
def test_mistakes_write_nothing(spark, sales, arguments, error, says):
    before = sorted(Path(location(spark, sales)).glob("_metastore/**/*"))
    with pytest.raises(error, match=says):
        metastore.analyze(spark, sales, progress=False, **arguments)
    assert sorted(Path(location(spark, sales)).glob("_metastore/**/*")) == before


def test_near_names_are_facts_of_the_error(spark, sales):
    with pytest.raises(ColumnNotFound) as column:
        metastore.analyze(spark, sales, columns=["prise"], progress=False)
    assert column.value.near == ("price",)
    with pytest.raises(TableNotFound) as table:
        metastore.analyze(spark, "ice.db.request", progress=False)
    assert table.value.near == ("ice.db.requests",)
    with pytest.raises(TableNotFound):
        metastore.analyze(spark, "ice.nowhere.t", progress=False)


def test_views_and_other_formats_are_not_supported(spark):
    spark.range(1).createOrReplaceTempView("a_view")
    with pytest.raises(UnsupportedTable, match="view"):
        metastore.analyze(spark, "a_view", progress=False)
    spark.sql("CREATE TABLE IF NOT EXISTS plain_orc (id INT) USING orc")
    with pytest.raises(UnsupportedTable, match="orc"):
        metastore.analyze(spark, "plain_orc", progress=False)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a.b"], {"a.b"}),
        (["`a.b`"], {"a.b"}),
        (["s"], {"x", "y z"}),
        (["S.X"], {"x"}),
        (["s.`y z`"], {"y z"}),
    ],
)
def test_columns_are_found_as_sql_finds_them(spark, sales, names, expected):
    metastore.analyze(spark, sales, columns=names, progress=False)
    assert expected <= {row["column"].path[-1] for row in Stored.of(spark, sales).table().values()}


@pytest.mark.parametrize(("partition", "files"), [({"p": "p1"}, 2), ({"P": None}, 1), ({"p": "p0", "id_bucket": 1}, 1)])
def test_partition_limits_the_files(spark, sales, tmp_path, partition, files):
    spark.conf.set("spark.metastore.store", str(tmp_path))
    try:
        report = metastore.analyze(spark, sales, partition=partition, progress=False)
    finally:
        spark.conf.unset("spark.metastore.store")
    assert report.files_read == report.files == files
    assert report.files_total == 5


def test_statistics_may_live_away_from_the_table(spark, sales, tmp_path):
    spark.conf.set("spark.metastore.store", f"file:{tmp_path}/stats")
    try:
        assert metastore.analyze(spark, sales, progress=False).committed
    finally:
        spark.conf.unset("spark.metastore.store")
    (folder,) = (tmp_path / "stats").iterdir()
    assert folder.name.startswith("iceberg-")
    assert (folder / "log").is_dir()


def test_a_store_that_cannot_be_written_is_named(spark, sales, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    spark.conf.set("spark.metastore.store", str(blocked))
    try:
        with pytest.raises(StoreNotWritable, match=str(blocked)):
            metastore.analyze(spark, sales, progress=False)
    finally:
        spark.conf.unset("spark.metastore.store")
