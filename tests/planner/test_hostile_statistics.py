"""Queries over tables whose statistics were made to fill the driver's memory: right rows, in time, and the reason."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from pyspark.errors import AnalysisException

from format import crafted, hostile
from metastore.format.manifest import Manifest
from planner import written
from planner.plans import check, labels

pytestmark = pytest.mark.spark

CLAIMS = [
    "summary.many-rows",
    "files.many-rows",
    "summary.overlapping",
    "summary.zstd-bomb",
    "summary.packed-levels",
    "summary.growing-texts",
    "summary.many-columns",
    "summary.deep-columns",
]
OBJECTS = crafted.objects()


@pytest.fixture
def statistics(spark, analyzed):
    """Puts an object in the place of the sound one of its kind; the manifest vouches for it."""
    table = written.of_iceberg(spark, analyzed)
    (current,) = spark.sql(f"SELECT snapshot_id FROM {analyzed}.history ORDER BY made_current_at DESC LIMIT 1").first()
    sound = replace(table, sequence=2).write(str(current))
    newest = max((sound.folder / "log").iterdir())
    manifest = Manifest.from_bytes(newest.read_bytes())

    def replaced(kind: str, data: bytes) -> None:
        (block,) = manifest.blocks
        before = block.files if kind == "files" else block.summary[0].object
        ref = hostile.reference_of(kind, data, before.rows)
        (sound.folder / "objects" / ref.name).write_bytes(data)
        summary = tuple(replace(part, object=ref) for part in block.summary)
        changed = replace(block, files=ref) if kind == "files" else replace(block, summary=summary)
        body = replace(manifest, blocks=(changed,), sequence=manifest.sequence + 1)
        (sound.folder / "log" / f"{body.sequence:020d}.json").write_bytes(body.to_bytes())

    return replaced


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_query_is_planned_without_them(spark, analyzed, statistics, claim):
    statistics(claim.partition(".")[0], OBJECTS[claim]())
    began = time.monotonic()
    df = check(spark, f"SELECT * FROM {analyzed} WHERE id = 5 AND s > 'x'", files=[4])
    assert time.monotonic() - began < 60
    assert "damaged" in "".join(labels(df))


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_table_function_says_that_they_are_damaged(spark, analyzed, statistics, claim):
    statistics(claim.partition(".")[0], OBJECTS[claim]())
    with pytest.raises(AnalysisException, match="METASTORE_DAMAGED_OBJECT"):
        spark.sql(f"SELECT * FROM metastore.columns('{analyzed}')").collect()
