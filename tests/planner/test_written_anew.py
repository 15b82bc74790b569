"""Files that other programs write anew under their names, while a session keeps the listing of before."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metastore
from nightly import others_nightly
from parquet.conftest import settle
from planner.plans import check, conf, rows

pytestmark = pytest.mark.spark
QUERIES = [
    "SELECT * FROM {t} WHERE id = 45",
    "SELECT * FROM {t} WHERE id = 15",
    "SELECT min(id), max(id), count(*) FROM {t}",
    "SELECT count(*) FROM {t} WHERE id >= 10",
    "SELECT p, count(*), max(id) FROM {t} GROUP BY p",
    "SELECT id FROM {t} ORDER BY id DESC LIMIT 1",
    "SELECT count(*) FROM (SELECT id FROM {t} WHERE p = 1 AND id >= 0 LIMIT 8)",
    "SELECT a.id FROM {t} a JOIN VALUES (45), (3) k(id) ON a.id = k.id",
]


def write(folder, name: str, first: int, rows: int = 10) -> None:
    ids = pa.array(range(first, first + rows), pa.int32())
    pq.write_table(pa.table({"id": ids}), folder / name, use_dictionary=False, compression="none")


@pytest.fixture
def folder(spark, tmp_path):
    """Three files in folders of two partitions, analyzed."""
    path = tmp_path / "anew"
    for part, name, first in ((0, "a", 0), (1, "b", 10), (1, "c", 20)):
        (path / f"p={part}").mkdir(parents=True, exist_ok=True)
        write(path / f"p={part}", f"{name}.parquet", first)
    settle(path)
    metastore.analyze(spark, f"parquet.`{path}`")
    return path


@pytest.fixture(params=["table", "frame"])
def listed(spark, folder, request):
    """A listing of files that is older than a write: a table of the catalog, or a frame."""
    if request.param == "table":
        spark.sql(f"CREATE TABLE anew USING parquet LOCATION 'file:{folder}'")
        spark.sql("MSCK REPAIR TABLE anew")
    else:
        spark.read.parquet(str(folder)).createOrReplaceTempView("anew")
    assert spark.sql("SELECT * FROM anew").count() == 30
    yield "anew"
    spark.sql("DROP TABLE anew" if request.param == "table" else "DROP VIEW anew")


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("length", others_nightly([10, 13, 4]))
def test_they_are_read_as_they_are(spark, folder, listed, query, length):
    write(folder / "p=1", "b.parquet", 40, length)
    filled_query = query.format(t=listed)
    with conf(spark, spark__metastore__enabled="false"):
        expected = rows(spark.sql(filled_query))
    for answers in ("true", "false"):
        with conf(spark, spark__metastore__aggregates__enabled=answers):
            assert rows(spark.sql(filled_query)) == expected


def test_the_others_are_skipped(spark, folder, listed):
    check(spark, f"SELECT * FROM {listed} WHERE id = 15", [1])
    write(folder / "p=1", "b.parquet", 40)
    check(spark, f"SELECT * FROM {listed} WHERE id = 45", [1])
    explained = metastore.explain(spark, f"SELECT * FROM {listed} WHERE id = 45")
    assert [row["reason"] for row in explained if row["kept"]] == ["KEPT_FILE_UNKNOWN"]


def test_one_that_is_gone_is_missed_as_without_us(spark, folder, listed):
    (folder / "p=1" / "b.parquet").unlink()
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|does not exist"):
        spark.sql(f"SELECT * FROM {listed} WHERE id = 5").collect()
