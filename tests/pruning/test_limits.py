"""The shim at the limits that both readers have, and both readers on manifests that no writer makes."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from format import hostile, limits
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format.manifest import Block, Manifest, TableIdentity
from metastore.format.manifest_references import SummaryRef
from metastore.format.table_column import Column
from pruning.scala import items, module, no_limits, open_store

pytestmark = pytest.mark.spark

REFUSALS = ("DamagedObjectException", "FormatTooNewException")
COLUMNS = tuple(Column(str(i), (f"c{i}",), "bigint", "long") for i in range(3))


def in_shim(work):
    """Whether the shim reads something; it fails with nothing but a refusal."""
    try:
        work()
    except Py4JJavaError as failure:
        if failure.java_exception.getClass().getSimpleName() not in REFUSALS:
            raise
        return limits.REFUSED
    return limits.READ


def in_python(data):
    try:
        Manifest.from_bytes(data)
    except (DamagedObject, FormatTooNew):
        return limits.REFUSED
    return limits.READ


def test_manifests(spark):
    reader = module(spark, "org.metastore.spark.statistics.objects.ManifestReader")
    cases = limits.manifests()
    found = {name: in_shim(lambda data=data: reader.read("m", data)) for name, (data, _) in cases.items()}
    assert found == {name: expected for name, (_, expected) in cases.items()}


@pytest.mark.slow
def test_both_readers_agree_on_manifests_that_no_writer_makes(spark):
    reader = module(spark, "org.metastore.spark.statistics.objects.ManifestReader")
    cases = limits.mutated(1_500)
    found = [in_shim(lambda data=data: reader.read("m", data)) for data in cases]
    other = [data for data, shim in zip(cases, found, strict=True) if in_python(data) != shim]
    assert not other, (len(other), [data[:2000] for data in other[:3]])
    assert {*found} == {limits.READ, limits.REFUSED}


def test_objects(spark, tmp_path):
    cases = limits.objects()
    for part in ("objects", "log"):
        (tmp_path / part).mkdir()
    files = hostile.samples()["files"]
    blocks = []
    for name, (data, _) in cases.items():
        refs = {"files": hostile.reference_of("files", files, 5), "summary": hostile.reference_of("summary", data, 15)}
        for kind, content in (("files", files), ("summary", data)):
            (tmp_path / "objects" / refs[kind].name).write_bytes(content)
        blocks.append(Block(name, "full", COLUMNS, refs["files"], (SummaryRef(refs["summary"], (0, 1, 2)),)))
    manifest = Manifest(TableIdentity("iceberg", "u", "file:/w/t", "t"), tuple(blocks), sequence=1)
    (tmp_path / "log" / f"{1:020}.json").write_bytes(manifest.to_bytes())
    store, nothing = open_store(spark, tmp_path), no_limits(spark)
    found = {
        block.id(): in_shim(lambda block=block: store.summary(block, nothing, nothing))
        for block in items(store.manifest().get().blocks())
    }
    assert found == {name: expected for name, (_, expected) in cases.items()}
