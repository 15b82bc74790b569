"""Zones change what is read, never which data files are kept."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pyarrow as pa
import pytest

from metastore.format.object_layout import ZONE_FILES, size_row_groups
from metastore.format.object_schemas import ZONES
from metastore.jvm_session import find_shim_package
from metastore.store import Store
from pruning import zoned
from pruning.scala import module

pytestmark = pytest.mark.spark
FILES = 40 * ZONE_FILES + 100
MIDDLE = 18 * ZONE_FILES
NEVER_THERE = -(10**15)
OF_TYPE = {
    "bigint": "{0}L", "double": "{0}D / 8", "string": "'{1:012}'", "decimal(38,2)": "{0}BD / 100",
    "date": "date_from_unix_date({0})", "float": "CAST({0} / 8.0D AS FLOAT)", "binary": "CAST('{1:012}' AS BINARY)",
    "decimal(9,2)": "CAST({0} / 100 AS DECIMAL(9, 2))",
}  # fmt: skip


def literal(ordinal: int, position: int) -> str:
    """Return a literal that the data file at a position may contain."""
    value = position * 10 + 3
    return OF_TYPE[zoned.TYPES[ordinal]].format(value - FILES * 5, value)


def conditions(seed: int) -> list[str]:
    """Of every kind that statistics decide, for few and for many data files."""
    chance = random.Random(seed)
    texts = ["c5", "NOT c5", "c9 IS NULL", "isnan(c1)", "NOT isnan(c6)", "c2 LIKE '0000002%'", "c1 < c6", "c1 >= c6"]
    for ordinal, kind in enumerate(zoned.TYPES):
        texts += [f"c{ordinal} IS NULL", f"c{ordinal} IS NOT NULL"]
        if kind in OF_TYPE:
            a, b = (literal(ordinal, chance.randrange(FILES)) for _ in range(2))
            near = literal(ordinal, MIDDLE + chance.randrange(50))
            texts += [f"c{ordinal} = {near}", f"c{ordinal} < {a}", f"c{ordinal} >= {b}", f"c{ordinal} <> {a}"]
            texts += [f"c{ordinal} IN ({a}, {near})", f"NOT (c{ordinal} < {a} OR c{ordinal} = {b})"]
            texts += [f"c{ordinal} <=> {near} OR c0 = {literal(0, MIDDLE)}", f"c{ordinal} NOT IN ({a}, {b})"]
            texts += [f"c{ordinal} BETWEEN {near} AND {literal(ordinal, MIDDLE + 90)} AND c5"]
            texts += [f"c{ordinal} >= {near} AND c{other} <= {literal(other, MIDDLE + 60)}" for other in (0, 3, 4, 7)]
    texts.append(" AND ".join(f"c{i} = {literal(i, MIDDLE)}" for i in (0, 1, 3, 4, 8)))
    return texts


def probe_of(spark, folder):
    module(spark, "org.metastore.spark.statistics.cache.StatisticsCache").clear()
    probes = find_shim_package(spark).pruning.PruningProbe
    return probes.open(spark._jsparkSession, zoned.DDL, str(folder), zoned.TABLE.uuid)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=[pytest.mark.slow, pytest.mark.campaign])])
def test_zones_keep_what_files_alone_keep(spark, tmp_path, seed):
    files, summary = zoned.random_block(seed, FILES)
    manifest = zoned.write(tmp_path / "zoned", files, summary, zoned.SMALL)
    zoned.write(tmp_path / "plain", files, summary, zoned.NEVER)
    assert manifest.blocks[0].zones
    with_zones, without = probe_of(spark, tmp_path / "zoned"), probe_of(spark, tmp_path / "plain")
    few = 0
    for condition in conditions(seed):
        kept_bits, expected = with_zones.kept(condition), without.kept(condition)
        assert kept_bits == expected, condition
        few += expected.count("1") < FILES // 16
    assert few > 15
    condition = f"c0 = {literal(0, MIDDLE)}"
    assert with_zones.keptWithin(condition, 1_000).split(" ")[1].count("1") < FILES // 16
    for questions in (0, 2):  # none is left for the files
        _, kept_files, reasons = with_zones.keptWithin(condition, questions).split(" ")
        assert (kept_files, set(reasons.split(","))) == ("1" * FILES, {"PLANNING_TIMEOUT"})


@pytest.mark.slow
def test_pages_of_other_files_are_not_read(spark, tmp_path):
    """Damage there does no harm; a reader of the whole column notices it."""
    files, summary = zoned.random_block(1, FILES, few=0)
    block = zoned.write(tmp_path, files, summary, zoned.SMALL).blocks[0]
    condition = f"c0 = {literal(0, MIDDLE)} AND c3 = {literal(3, MIDDLE)}"
    expected = probe_of(spark, tmp_path).kept(condition)
    assert 0 < expected.count("1") < 10
    damage(tmp_path, block, 0.05)
    assert probe_of(spark, tmp_path).kept(condition) == expected
    kept_bits = probe_of(spark, tmp_path).kept(f"c0 < {literal(0, FILES // 2)}")
    assert "0" not in kept_bits


@pytest.mark.slow
def test_where_zones_exclude_all_files_every_conjunct_was_of_use(spark, tmp_path):
    zoned.write(tmp_path, *zoned.random_block(1, FILES, few=0), zoned.SMALL)
    answer = json.loads(probe_of(spark, tmp_path).explain(f"c0 = {NEVER_THERE}L AND c3 > 1"))
    assert answer["unused"] == {}
    assert {file["reason"] for file in answer["files"]} == {"SKIPPED"}


def damage(folder, block, share: float) -> None:
    """Changes bytes of the bounds of the first column, near their beginning."""
    ref = block.summary[0].object
    part = Store.open(str(folder)).open_part(ref)
    path = folder / "objects" / ref.name
    data = bytearray(path.read_bytes())
    for chunk in part._footer.chunks(0):
        if chunk.name in ("lo_long", "hi_long"):
            data[chunk.start + int(chunk.length * share)] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["zones", "summary"])
def test_what_is_damaged_keeps_its_files(spark, tmp_path, kind):
    files, summary = zoned.random_block(1, FILES)
    block = zoned.write(tmp_path, files, summary, zoned.SMALL).blocks[0]
    condition = f"c0 = {literal(0, MIDDLE)}"
    expected = probe_of(spark, tmp_path).kept(condition)
    refs = block.zones if kind == "zones" else block.summary
    for ref in refs:
        path = tmp_path / "objects" / ref.object.name
        data = bytearray(path.read_bytes())
        data[len(data) - ref.object.footer_length + 20] ^= 0xFF
        path.write_bytes(data)
    kept_bits = probe_of(spark, tmp_path).kept(condition)
    if kind == "zones":
        assert kept_bits == expected
    else:
        assert all(e == "0" or f == "1" for f, e in zip(kept_bits, expected, strict=True))
        assert kept_bits.count("1") > expected.count("1")


LIES = {
    "as many rows as the files have": (lambda n: n, True),
    "more rows than the files have": (lambda n: n + 1, False),
    "fewer rows than the files have": (lambda n: n - 1, False),
    "unknown rows": (lambda _: None, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIES)
def test_zones_with_other_rows_than_their_files_say_nothing(spark, tmp_path, name):
    """All zones say that the column holds one value that no file has: who believes them keeps no file."""
    change, believed = LIES[name]
    files, summary = zoned.random_block(1, FILES, few=0)
    manifest = zoned.write(tmp_path, files, summary, zoned.SMALL)
    condition = f"c0 = {literal(0, MIDDLE)}"
    expected = probe_of(spark, tmp_path).kept(condition)
    store = Store.open(str(tmp_path), writable=True)
    zones = store.get(manifest.blocks[0].zones[0].object).to_pylist()
    nowhere = {"lo_long": NEVER_THERE, "hi_long": NEVER_THERE}
    lying = [{**row, "rows": change(row["rows"]), **nowhere} if row["column"] == 0 else row for row in zones]
    ref = store.put("zones", pa.Table.from_pylist(lying, ZONES), size_row_groups([row["column"] for row in lying], 1))
    block = replace(manifest.blocks[0], zones=(replace(manifest.blocks[0].zones[0], object=ref),))
    store.commit(zoned.TABLE, lambda old: replace(old, blocks=(block,)))
    kept_bits = probe_of(spark, tmp_path).kept(condition)
    assert (kept_bits == expected) is not believed
    assert ("1" in kept_bits) is not believed
