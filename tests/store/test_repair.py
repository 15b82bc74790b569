"""The statistics that a repair loses, blocks that get new zones, and what is left of a snapshot's entry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from metastore.format.data_files import DataFile
from metastore.format.manifest import RanksRef, SummaryRef
from metastore.store.block_files import read_block_files
from metastore.store.block_merge import merge_blocks, rewrite_block
from metastore.store.coverage import Coverage
from metastore.store.repair import LostStatistics, find_lost_statistics, repair_snapshot
from metastore.store.verification import verify_manifest
from store.small_blocks import adding, block, bounds, columns, details_of, snapshot


def flip(store, name):
    path = Path(store.uri) / "objects" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def find_lost(store, damaged, *other_blocks, live="abcd", snapshots=()):
    """The statistics that no other block has of the live data files."""
    manifest = adding(damaged, *other_blocks, snapshots=snapshots)(None)
    files = [DataFile(path=path, size=1, rows=1, format="parquet") for path in live]
    return find_lost_statistics(store, manifest, damaged, Coverage(read_block_files(store, other_blocks), files))


def test_statistics_that_others_have_are_not_lost(store):
    damaged = block(store, ["a", "b"])
    assert find_lost(store, damaged, block(store, ["a", "b", "c"], leaves=columns(3))) is None


def test_data_files_and_columns_that_others_lack_are_lost(store):
    damaged = block(store, ["a", "b", "c", "d"], leaves=columns(3))
    first, second = columns(2)
    in_another_type = replace(second, type="int")
    other_blocks = [
        block(store, ["a"], leaves=columns(3)),
        block(store, ["b", "c", "d"], leaves=[first, in_another_type]),
    ]
    assert find_lost(store, damaged, *other_blocks) == LostStatistics(("b", "c", "d"), ("c1", "c2"))
    assert find_lost(store, damaged, *other_blocks, live="abc") == LostStatistics(("b", "c", "d"), ("c0", "c1", "c2"))


def test_statistics_that_others_have_of_the_footers_alone_are_lost(store):
    shallow = block(store, ["a"], computed="footer")
    assert find_lost(store, block(store, ["a"]), shallow) == LostStatistics(("a",), ("c0", "c1"))
    assert find_lost(store, shallow, block(store, ["a"])) is None


def test_a_list_of_files_has_no_statistics_to_lose(store):
    assert find_lost(store, block(store, ["a"], leaves=columns(0), computed="files")) is None


def test_without_its_list_of_files_it_is_unknown_what_is_lost(store):
    damaged, other = block(store, ["a"]), block(store, ["a"])
    flip(store, damaged.files.name)
    entry = snapshot(store, "a")
    assert find_lost(store, damaged) is None
    assert find_lost(store, damaged, snapshots=[entry]) == LostStatistics()
    assert find_lost(store, damaged, other, snapshots=[entry]) is None
    assert find_lost(store, damaged, other, live="b", snapshots=[entry]) == LostStatistics()
    flip(store, entry.table_files.name)
    assert find_lost(store, damaged, other, snapshots=[entry]) == LostStatistics()


@pytest.mark.parametrize("damage", ["missing", "flipped", "another's"])
def test_zones_are_made_again(store, damage):
    blocks = [block(store, [path], i, detailed=True) for i, path in enumerate("abc")]
    manifest = merge_blocks(adding(*blocks)(None), store, at_most=1, zoned=1)
    [made] = manifest.blocks
    [zones] = made.zones
    if damage == "missing":
        (Path(store.uri) / "objects" / zones.object.name).unlink()
    elif damage == "flipped":
        flip(store, zones.object.name)
    else:
        other = merge_blocks(adding(*(block(store, [path], 9) for path in "xyz"))(None), store, at_most=1, zoned=1)
        made = replace(made, zones=other.blocks[0].zones)
    after = replace(manifest, blocks=(rewrite_block(manifest, made, store, zoned=1),))
    assert not [finding for finding in verify_manifest(store, after) if finding.is_wrong]
    assert [ref.columns for ref in after.blocks[0].zones] == [zones.columns]
    assert bounds(store, after) == bounds(store, manifest)
    assert details_of(store, after) == details_of(store, manifest)


def test_an_entry_without_what_is_damaged(store):
    entry = snapshot(store, "s")
    assert repair_snapshot(entry, ()) == entry
    assert repair_snapshot(entry, {entry.table_files.name}) is None
    more = replace(entry, summary=entry.table_files, histograms=snapshot(store, "other").table_files)
    assert repair_snapshot(more, {more.histograms.name}) == replace(more, histograms=None)


def test_ranks_of_other_columns_stay(store):
    entry = snapshot(store, "s")
    refs = [snapshot(store, f"r{i}").table_files for i in range(3)]
    ranks = (RanksRef(refs[0], (0, 1), (0, 0)), RanksRef(refs[1], (1, 2), (5, 0)), RanksRef(refs[2], (2,), (7,)))
    entry = replace(entry, ranks=ranks)
    assert repair_snapshot(entry, {refs[2].name}).ranks == (ranks[0], RanksRef(refs[1], (1,), (5,)))
    assert repair_snapshot(entry, {refs[0].name}).ranks == (RanksRef(refs[1], (2,), (0,)), ranks[2])


def test_lists_of_values_stay_together(store):
    refs = [snapshot(store, f"l{i}").table_files for i in range(3)]
    lists = (SummaryRef(refs[0], (0,), (0, 2)), SummaryRef(refs[1], (0,), (1, 2)))
    entry = replace(snapshot(store, "s"), frequencies=lists, distribution=(0,), placed=refs[2])
    assert repair_snapshot(entry, {refs[2].name}) == replace(entry, placed=None)
    assert repair_snapshot(entry, {refs[1].name}) == replace(entry, frequencies=(), distribution=(), placed=None)
