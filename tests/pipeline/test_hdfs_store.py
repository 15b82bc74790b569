"""Statistics on HDFS: the same promises as on a disk, kept through Hadoop's file system in driver and executors."""

from __future__ import annotations

import itertools
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

import metastore
from metastore.errors import DamagedObject, StoreNotWritable, UnsupportedTable
from metastore.format.manifest import Manifest
from metastore.format.object_schemas import SKETCHES
from metastore.spark_jobs.hadoop_store import open_store_at
from metastore.spark_jobs.task_store import JvmTaskStore
from store import hdfs
from store.small_blocks import TABLE, adding, block, bounds

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SKETCH = pa.Table.from_pylist([{"column": 0, "file": 0, "theta": b"x"}], SKETCHES)
_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with hdfs.running(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def catalog(spark, address):
    settings = {
        "spark.sql.catalog.far": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.far.type": "hadoop",
        "spark.sql.catalog.far.warehouse": f"hdfs://{address}/warehouse",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS far.db")
    yield "far.db"
    for key in settings:
        spark.conf.unset(key)


@pytest.fixture
def far(spark, catalog):
    name = f"{catalog}.t{next(_NUMBERS)}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")


@pytest.fixture
def uri(address, request):
    return f"hdfs://{address}/stores/{request.node.name}/_metastore"


def fill(spark, table, start, end):
    rows = f"SELECT id, concat('n', id % 7) AS name, id / 3 AS part FROM range({start}, {end}, 1, 1)"
    spark.sql(f"CREATE TABLE IF NOT EXISTS {table} USING iceberg AS SELECT * FROM ({rows}) WHERE false")
    spark.sql(f"INSERT INTO {table} {rows}")


@pytest.mark.parametrize("how", [pytest.param("python", marks=pytest.mark.campaign), "sql"])
def test_a_table_on_hdfs(spark, address, far, how):
    def analyzed():
        if how == "python":
            return metastore.analyze(spark, far, progress=False).to_dict()
        return spark.sql(f"ANALYZE TABLE {far} COMPUTE STATISTICS FOR ALL COLUMNS").collect()[0].asDict()

    for start in (0, 100, 200):
        fill(spark, far, start, start + 100)
    assert (analyzed()["files_read"], analyzed()["files_read"]) == (3, 0)
    fill(spark, far, 300, 400)
    assert analyzed()["files_read"] == 1
    id_summary = metastore.summary(spark, far).column("id")
    assert (id_summary["min"], id_summary["max"], id_summary["count"], id_summary["current"]) == (0, 399, 400, True)
    plan = spark.sql(f"EXPLAIN SELECT * FROM {far} WHERE id = 250").collect()[0][0]
    assert re.search(r"Metastore: \d -> 1 files", plan), plan
    assert metastore.frequencies(spark, far, "name", 1)[0]["frequency"] == 58
    assert metastore.report(spark, far).columns == 3
    assert metastore.compact(spark, far)["blocks_after"] == 1
    assert metastore.gc(spark, far, delete=True, grace_days=0).to_dict()["rows"]
    assert {row["state"] for row in metastore.verify(spark, far)} == {"ok"}
    assert metastore.summary(spark, far).column("id")["max"] == 399


def test_tasks_carry_objects_through_their_jvm(spark, table, address):
    spark.conf.set("spark.metastore.store", f"hdfs://{address}/central")
    try:
        fill(spark, table, 0, 1000)
        fill(spark, table, 1000, 2000)
        metastore.analyze(spark, table, ranks=["id"], distribution=["name"], frequencies="exact", progress=False)
        fill(spark, table, 2000, 3000)
        report = metastore.analyze(spark, table, ranks=["id"], distribution=["name"], progress=False)
        assert report.refused == ()
        assert metastore.quantiles(spark, table, "id", [0.5])[0]["value"] == "1499"
        assert metastore.frequencies(spark, table, "name", 1)[0]["value"] == "n0"
        assert metastore.locate(spark, table, "id", spark.range(5, 2005, 1000)).count() == 2
        assert {row["state"] for row in metastore.verify(spark, table)} == {"ok"}
    finally:
        spark.conf.unset("spark.metastore.store")


def test_objects_that_are_missing_are_named_in_the_task_that_asks(spark, uri):
    store, path = open_store_at(spark, uri, writable=True)
    here = store.put("sketches", SKETCH, [1]).name
    gone = f"sketches-{'0' * 8}-0000-8000-8000-{'0' * 12}.parquet"
    hostile = f"../objects/{here}"
    paths = [here, gone, hostile, ""]

    def said(answer):  # not at the top: workers cannot import this module
        name, content = answer
        if not name:
            return name, "nothing"
        try:
            return name, len(content())
        except DamagedObject:
            return name, "missing"

    answers = path.distribute_with_content(spark.sparkContext, paths, 2, lambda name: name or None).map(said)
    assert answers.collect() == [
        (here, len(store.read_bytes(here))),
        (gone, "missing"),
        (hostile, "missing"),
        ("", "nothing"),
    ]


def test_one_of_many_creates(spark, uri):
    blobs = [open_store_at(spark, uri, writable=True)[0].ensure_writable() for _ in range(2)]
    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            path = f"log/{number:020}.json"
            replies = list(threads.map(lambda blob_store, path=path: blob_store.create(path, b"x")[0], blobs * 4))
            assert sorted(reply.value for reply in replies) == sorted(["created"] + ["exists"] * 7)


def test_two_analyzers_at_once_lose_nothing(spark, far):
    for start in (0, 100):
        fill(spark, far, start, start + 100)
    reports, barrier = [], threading.Barrier(2)

    def analyze(column):
        barrier.wait()
        reports.append(metastore.analyze(spark, far, [column], progress=False))

    writers = [threading.Thread(target=analyze, args=(column,)) for column in ("id", "name")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [report.committed for report in reports] == [True, True]
    analyzed_columns = {row["column_name"] for row in metastore.columns(spark, far)}
    assert {"id", "name"} <= analyzed_columns


def test_writers_that_meet_lose_no_commit(spark, uri):
    def commits(writer):
        store, _ = open_store_at(spark, uri, writable=True)
        for number in range(8):
            store.commit(TABLE, _marking(f"{writer}-{number}"))

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(commits, "ab"))
    manifest = open_store_at(spark, uri, writable=False)[0].read()
    assert (manifest.sequence, set(manifest.settings.values())) == (16, {1})


def _marking(mark):
    def change(old):
        base = old or Manifest(table=TABLE)
        return replace(base, settings={**base.settings, mark: base.settings.get(mark, 0) + 1})

    return change


@pytest.mark.parametrize("trouble", ["lose", "drop"])
def test_every_commit_meets_trouble_once(spark, address, uri, trouble):
    armed = []
    with hdfs.Proxy(address, lambda: armed.pop() if armed else None) as proxy:
        store, _ = open_store_at(spark, uri.replace(address, proxy.address), writable=True)
        made = block(store, ["a"])
        for number in range(3):
            armed.append(trouble)
            done = store.commit(TABLE, adding(made) if number == 0 else _marking(f"m{number}"))
            assert done.sequence == number + 1
        assert proxy.caused == 3
    direct = open_store_at(spark, uri, writable=False)[0]
    assert direct.read().settings == {"m1": 1, "m2": 1}
    assert set(bounds(direct, direct.read())) == {("a", "0"), ("a", "1")}


def test_a_mount_of_hdfs_is_as_good_and_one_of_a_disk_is_refused(spark, address, tmp_path):
    mounts = {"sure": f"hdfs://{address}/mounted", "unsure": f"file://{tmp_path}"}
    for name, target in mounts.items():
        spark.conf.set(f"fs.viewfs.mounttable.it.link./{name}", target)
    try:
        sure, _ = open_store_at(spark, "viewfs://it/sure/_metastore", writable=True)
        assert sure.commit(TABLE, adding()).sequence == 1
        unsure, _ = open_store_at(spark, "viewfs://it/unsure/_metastore", writable=True)
        with pytest.raises(
            StoreNotWritable, match=r"does not promise that a file is created once.*Set spark\.metastore"
        ):
            unsure.commit(TABLE, adding())
        assert unsure.read() is None
    finally:
        for name in mounts:
            spark.conf.unset(f"fs.viewfs.mounttable.it.link./{name}")


@pytest.mark.parametrize("uri", ["nowhere://x/t", "hdfs://127.0.0.1:1/t"])
def test_places_that_do_not_answer_are_one_clear_error(spark, table, uri):
    spark.conf.set("spark.metastore.store", uri)
    try:
        fill(spark, table, 0, 10)
        with pytest.raises(metastore.MetastoreError) as refused:
            metastore.analyze(spark, table, progress=False)
        assert "STORE_NOT" in refused.value.code
        assert "\n" not in str(refused.value)
    finally:
        spark.conf.unset("spark.metastore.store")


def test_without_spark_the_way_out_is_named(address):
    with pytest.raises(UnsupportedTable, match="Ask with Spark"):
        metastore.open(f"hdfs://{address}/warehouse/db/t")


def test_a_place_in_a_task_knows_no_jvm():
    import pickle  # noqa: PLC0415 - what Spark does

    sent = pickle.loads(pickle.dumps(JvmTaskStore("hdfs://nn/s", jvm_access=object)))  # noqa: S301 - ours
    assert (sent.uri, sent.jvm_access) == ("hdfs://nn/s", None)
    assert [record[0] for record in sent.pack_results(sent.write("sketches", SKETCH, [1]) for _ in range(1))] == [53, 0]
