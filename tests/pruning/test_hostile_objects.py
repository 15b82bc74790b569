"""The shim on hostile objects with right digests: damage that is said, and a scan that is planned without them."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from format import crafted, hostile
from metastore.format.manifest import Block, Manifest, TableIdentity
from metastore.format.manifest_references import SummaryRef
from metastore.format.parquet_footer import read_footer
from metastore.format.table_column import Column
from metastore.jvm_session import find_shim_package
from pruning.scala import items, module, no_limits, open_store

pytestmark = pytest.mark.spark

KEPT = Path(__file__).parents[1] / "cases" / "hostile"
BASE = hostile.samples()
ROWS = {kind: read_footer(kind, data).rows for kind, data in BASE.items()}
TABLE = TableIdentity("iceberg", "u", "file:/w/t", "t")
COLUMNS = tuple(Column(str(i), (f"c{i}",), "bigint", "long") for i in range(3))
REFUSALS = ("DamagedObjectException", "FormatTooNewException")


def written(folder, objects):
    """A store with one block for each hostile object; the other object of the block is sound."""
    for part in ("objects", "log"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    blocks = []
    for number, (kind, data) in enumerate(objects):
        refs = {}
        for each in BASE:
            content = data if each == kind else BASE[each]
            refs[each] = hostile.reference_of(each, content, ROWS[each])
            (folder / "objects" / refs[each].name).write_bytes(content)
        blocks.append(Block(str(number), "full", COLUMNS, refs["files"], (SummaryRef(refs["summary"], (0, 1, 2)),)))
    manifest = Manifest(TABLE, tuple(blocks), sequence=1, commit="c", written_at="", writer="")
    (folder / "log" / f"{1:020}.json").write_bytes(manifest.to_bytes())


def read(store, block, kind):
    """Reads the hostile object of a block as SQL functions do; the only errors are those that say damage."""
    try:
        if kind == "files":
            store.dataFiles(block)
        else:
            store.summary(block, no_limits(store.spark), no_limits(store.spark))
    except Py4JJavaError as failure:
        if failure.java_exception.getClass().getSimpleName() not in REFUSALS:
            raise
        return "damaged"
    return "read"


class Opened:
    def __init__(self, spark, folder):
        module(spark, "org.metastore.spark.statistics.cache.StatisticsCache").clear()
        self.spark, self._store = spark, open_store(spark, folder)

    def __getattr__(self, name):
        return getattr(self._store, name)


def mutations(seed, count):
    for number in range(seed, seed + count):
        chance = random.Random(number)
        kind = chance.choice(sorted(BASE))
        yield kind, hostile.mutated(BASE[kind], chance)


def plan(spark, store):
    """Plans a scan of all files with every block: nothing may be thrown, and time is limited."""
    found = store.planning("u", 5_000, no_limits(spark))
    assert found.isRight(), found
    arrays = spark.sparkContext._gateway.new_array
    paths = arrays(spark._jvm.java.lang.String, len(hostile.PATHS))
    sizes = arrays(spark._jvm.long, len(hostile.PATHS))
    for i, path in enumerate(hostile.PATHS):
        paths[i], sizes[i] = path, 9
    files = (
        found.right()
        .get()
        .of(
            find_shim_package(spark).statistics.columns.FileList(paths, sizes),
            module(spark, "scala.collection.immutable.Nil"),
        )
    )
    kind = module(spark, "org.apache.spark.sql.types.LongType")
    for column in COLUMNS:
        files.column(column.key, kind)
        files.sizes(column.key, kind)


@pytest.mark.parametrize("seed", [0, pytest.param(600, marks=pytest.mark.slow)])
def test_mutated_objects(spark, tmp_path, seed):
    objects = list(mutations(seed, 600))
    written(tmp_path, objects)
    store = Opened(spark, tmp_path)
    began = time.monotonic()
    blocks = items(store.manifest().get().blocks())
    found = [read(store, block, kind) for block, (kind, _) in zip(blocks, objects, strict=True)]
    assert found.count("damaged") > 300
    assert found.count("read") > 0
    plan(spark, store)
    assert time.monotonic() - began < 90


def test_kept_objects(spark, tmp_path):
    objects = [(path.name.partition(".")[0], path.read_bytes()) for path in sorted(KEPT.glob("*.parquet"))]
    written(tmp_path, objects)
    store = Opened(spark, tmp_path)
    for block, (kind, _) in zip(items(store.manifest().get().blocks()), objects, strict=True):
        read(store, block, kind)
    plan(spark, store)


CRAFTED = crafted.objects()


@pytest.mark.slow
@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_objects(spark, tmp_path, name):
    kind = name.partition(".")[0]
    written(tmp_path, [(kind, CRAFTED[name]())])
    store = Opened(spark, tmp_path)
    began = time.monotonic()
    assert read(store, store.manifest().get().blocks().apply(0), kind) == "damaged"
    plan(spark, store)
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_mutated_manifests(spark):
    reader, damaged = module(spark, "org.metastore.spark.statistics.objects.ManifestReader"), 0
    assert reader.read("m", hostile.manifest(hostile.MANIFEST)).blocks().size() == 1
    texts = [hostile.manifest(hostile.changed(hostile.MANIFEST, random.Random(number))) for number in range(1_000)]
    for data in [*texts, hostile.line(b"[" * 1_000_000), hostile.line(b'{"a":' * 100_000), hostile.line(b"")]:
        try:
            reader.read("m", data)
        except Py4JJavaError as failure:
            if failure.java_exception.getClass().getSimpleName() not in REFUSALS:
                raise
            damaged += 1
    assert damaged > 300
