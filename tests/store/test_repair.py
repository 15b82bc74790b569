"""What is left of a damaged block, and what is said to be lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from metastore.format.data_files import list_detail_objects
from metastore.format.manifest import RanksRef, SummaryRef
from metastore.store import Store
from metastore.store.block_merge import merge_blocks
from metastore.store.repair import LostStatistics, repair_snapshot, salvage_block
from metastore.store.verification import verify_manifest
from store.made import TABLE, adding, block, bounds, columns, details_of, snapshot

KINDS = ("sketches", "frequencies", "histograms")


def flip(store, name):
    path = Path(store.uri) / "objects" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def nowhere(_key):
    return None


def left_of(store, made, elsewhere=nowhere, snapshots=(), **how):
    """What is left of a block, as the only one of a manifest, and what is lost."""
    manifest = adding(made, snapshots=snapshots)(None)
    found = salvage_block(store, manifest, made, elsewhere, **how)
    after = replace(manifest, blocks=(found.block,) if found.block else ())
    assert not [one for one in verify_manifest(store, after) if one.is_wrong]
    return after, found.lost


def test_a_sound_block_is_kept_as_it_is(store):
    made = block(store, ["a", "b"], 7, detailed=True)
    after, lost = left_of(store, made)
    assert lost is None
    assert after.blocks[0].summary == made.summary
    assert details_of(store, after) == details_of(store, adding(made)(None))


def test_files_of_which_others_tell_all_are_left_out(store):
    made = block(store, ["a", "b", "c"], 7)
    own = frozenset((column.key, column.type) for column in made.columns)
    known = {"a": own, "b": own - {("0", "bigint")}, "c": None}
    after, lost = left_of(store, made, lambda key: known[key.path])
    assert lost is None
    assert bounds(store, after) == {(path, key): [7] for path in "bc" for key in "01"}
    assert left_of(store, made, lambda _: own)[0].blocks == ()


@pytest.mark.parametrize("kind", KINDS)
def test_of_damaged_details_only_their_kind_is_lost(store, kind):
    manifest = merge_blocks(adding(*(block(store, [path], 3, detailed=True) for path in "ab"))(None), store, at_most=1)
    [made] = manifest.blocks
    whole = details_of(store, manifest)
    name = store.get(made.files).sort_by("path")[f"{kind}_name"][0].as_py()
    flip(store, name)
    after, lost = left_of(store, made)
    assert lost == LostStatistics(("a",), (), (kind,))
    assert details_of(store, after) == {key: value for key, value in whole.items() if key[:2] != (kind, "a")}
    assert len(bounds(store, after)) == 4


def test_a_lost_list_is_said_to_be_none(store):
    made = block(store, ["a"], detailed=True)
    rows = store.get(made.summary[0].object)
    rows = rows.set_column(rows.schema.names.index("frequencies"), "frequencies", [["complete"] * rows.num_rows])
    made = replace(made, summary=(SummaryRef(store.put("summary", rows, [rows.num_rows]), (0, 1)),))
    [(name, *_)] = list_detail_objects(store.get(made.files), "frequencies")
    flip(store, name)
    after, _ = left_of(store, made)
    assert store.get(after.blocks[0].summary[0].object)["frequencies"].to_pylist() == ["none", "none"]


def test_of_a_damaged_summary_sound_row_groups_stay(store):
    made = block(store, ["a", "b"], 5, columns(40))
    [ref] = made.summary
    assert store.open_part(ref.object).groups == 3
    flip(store, ref.object.name)
    after, lost = left_of(Store.open(store.uri, writable=True), made)
    assert lost.files == ("a", "b")
    assert 0 < len(lost.columns) < 40
    told = {key for _, key in bounds(store, after)}
    assert {f"c{key}" for key in told}.isdisjoint(lost.columns)
    assert len(told) + len(lost.columns) == 40


def test_a_summary_that_is_missing_loses_its_columns(store):
    parts = [block(store, ["a"], 1, columns(2), ordinals=[i]) for i in range(2)]
    made = replace(parts[0], summary=(*parts[0].summary, *parts[1].summary))
    (Path(store.uri) / "objects" / parts[0].summary[0].object.name).unlink()
    after, lost = left_of(store, made)
    assert lost == LostStatistics(("a",), ("c0",), ())
    assert bounds(store, after) == {("a", "1"): [1]}


def test_without_its_list_of_files_nothing_is_left(store):
    made = block(store, ["a"])
    flip(store, made.files.name)
    after, lost = left_of(store, made)
    assert (after.blocks, lost) == ((), None)
    after, lost = left_of(store, made, snapshots=[snapshot(store, "a")])
    assert (after.blocks, lost) == ((), LostStatistics())
    assert left_of(store, made, lambda _: frozenset(), [snapshot(store, "a")])[1] is None


def test_what_is_known_to_be_damaged_is_not_looked_for_again(store, monkeypatch):
    made = block(store, ["a"], 5, detailed=True)
    [(name, *_)] = list_detail_objects(store.get(made.files), "histograms")
    flip(store, name)
    read, raw = [], Store.read_bytes
    monkeypatch.setattr(Store, "read_bytes", lambda self, name, *more: read.append(name) or raw(self, name, *more))
    found = salvage_block(store, adding(made)(None), made, nowhere, wrong={name})
    assert found.lost == LostStatistics(("a",), (), ("histograms",))
    assert sorted(read) == sorted([made.files.name, made.summary[0].object.name])


@pytest.mark.parametrize("damage", ["missing", "flipped", "another's"])
def test_zones_are_made_again(store, damage):
    manifest = merge_blocks(
        adding(*(block(store, [path], i) for i, path in enumerate("abc")))(None), store, at_most=1, zoned=1
    )
    [made] = manifest.blocks
    [zones] = made.zones
    if damage == "missing":
        (Path(store.uri) / "objects" / zones.object.name).unlink()
    elif damage == "flipped":
        flip(store, zones.object.name)
    else:
        other = merge_blocks(adding(*(block(store, [path], 9) for path in "xyz"))(None), store, at_most=1, zoned=1)
        made = replace(made, zones=other.blocks[0].zones)
    after, lost = left_of(store, made, zoned=1)
    assert lost is None
    assert after.blocks[0].summary == made.summary
    assert [ref.columns for ref in after.blocks[0].zones] == [zones.columns]


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


def test_a_commit_of_what_is_left(store):
    made = block(store, ["a", "b"], 2, detailed=True)
    manifest = store.commit(TABLE, adding(made))
    [(name, *_)] = list_detail_objects(store.get(made.files), "histograms")
    flip(store, name)
    left = salvage_block(store, manifest, made, nowhere).block
    store.commit(TABLE, lambda old: replace(old, blocks=(left,)))
    assert not [one for one in verify_manifest(store, store.read()) if one.is_wrong]
