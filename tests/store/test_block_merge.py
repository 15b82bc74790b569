from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from metastore.errors import UnsupportedTable
from metastore.format.manifest import MAX_BLOCKS, MAX_MANIFEST_BYTES, Manifest
from metastore.format.table_column import Column
from metastore.store import block_merge, manifest_limits
from metastore.store.block_merge import compact_blocks, merge_blocks
from metastore.store.verification import verify_manifest
from store.small_blocks import TABLE, adding, block, bounds, columns, details_of, snapshot


def of(*blocks, snapshots=()):
    return adding(*blocks, snapshots=snapshots)(None)


def only(values):
    assert all(len(values) == 1 for values in values.values())
    return {key: values[0] for key, values in values.items()}


def test_many_commits_keep_few_blocks_and_all_statistics(store):
    for i in range(MAX_BLOCKS + 10):
        manifest = store.commit(TABLE, adding(block(store, [f"f{i}", f"g{i}"], i)))
        assert len(manifest.blocks) <= MAX_BLOCKS
    values = only(bounds(store, manifest))
    assert values == {(f"{name}{i}", key): i for name in "fg" for i in range(MAX_BLOCKS + 10) for key in "01"}
    assert all(block_.files.rows >= 2 for block_ in manifest.blocks)


def test_merged_objects_are_ordered_as_the_format_says(store):
    manifest = merge_blocks(of(*(block(store, [f"{i}", f"{i}x"], i, columns(40)) for i in range(5))), store, at_most=1)
    [only_block] = manifest.blocks
    files = store.get(only_block.files)
    assert files["file"].to_pylist() == list(range(10))
    [ref] = only_block.summary
    rows = store.get(ref.object, ["column", "file"]).to_pylist()
    assert rows == [{"column": c, "file": f} for c in range(40) for f in range(10)]


def test_the_smallest_are_merged(store):
    big, small = block(store, [f"b{i}" for i in range(50)]), [block(store, [f"s{i}"], i) for i in range(3)]
    manifest = merge_blocks(of(small[0], big, *small[1:]), store, at_most=2)
    assert len(manifest.blocks) == 2
    assert manifest.blocks[0] == big
    assert manifest.blocks[1].files.rows == 3


def test_of_a_file_described_twice_the_later_statistics_stay(store):
    manifest = merge_blocks(of(block(store, ["a", "b"], 1), block(store, ["b", "c"], 2)), store, at_most=1)
    assert only(bounds(store, manifest)) == {
        **{("a", key): 1 for key in "01"},
        **{(path, key): 2 for path in "bc" for key in "01"},
    }


def test_columns_analyzed_one_after_the_other(store):
    blocks = [block(store, ["a"], i, columns(3), ordinals=[i]) for i in range(3)]
    manifest = merge_blocks(of(*blocks), store, at_most=1)
    assert len(manifest.blocks) == 1
    assert only(bounds(store, manifest)) == {("a", str(i)): i for i in range(3)}


def test_columns_added_later(store):
    manifest = merge_blocks(
        of(block(store, ["a"], 1, columns(2)), block(store, ["b"], 2, columns(4))), store, at_most=1
    )
    assert [len(each.columns) for each in manifest.blocks] == [4]
    assert set(bounds(store, manifest)) == {("a", "0"), ("a", "1"), *(("b", str(i)) for i in range(4))}


def test_renamed_columns_share_a_block_and_have_the_later_name(store):
    renamed = (replace(columns(2)[0], path=("new",)), columns(2)[1])
    manifest = merge_blocks(of(block(store, ["a"]), block(store, ["b"], 0, renamed)), store, at_most=1)
    assert [each.columns for each in manifest.blocks] == [renamed]


@pytest.mark.parametrize(
    "other",
    [
        (Column(key="0", path=("c0",), type="int", encoding="long"), columns(2)[1]),
        (Column(key="0", path=("c0",), type="string", encoding="binary", collation="UTF8_LCASE"),),
    ],
)
def test_blocks_with_a_column_of_two_types_stay_apart(store, other):
    manifest = of(block(store, ["a"]), block(store, ["b"], 0, other))
    assert merge_blocks(manifest, store, at_most=1) is manifest


def test_blocks_computed_differently_stay_apart(store):
    manifest = of(
        block(store, ["a"]), block(store, ["b"], computed="footer"), block(store, ["c"], 0, (), computed="files")
    )
    assert merge_blocks(manifest, store, at_most=1) is manifest


def test_blocks_without_columns_are_merged(store):
    parts = [block(store, [path], 0, (), computed="files") for path in "ab"]
    manifest = merge_blocks(of(*parts), store, at_most=1)
    assert [(each.files.rows, each.summary) for each in manifest.blocks] == [(2, ())]


def test_sketches_of_a_file_are_not_lost(store):
    name = "sketches-0d61fbb2-3f3c-4b2a-9c0e-6b8f0c7b0a1%d.parquet"
    sketched, plain = block(store, ["a"], 1, sketches=name % 1), block(store, ["a", "b"], 2)
    [merged] = merge_blocks(of(sketched, plain), store, at_most=1).blocks
    assert store.get(merged.files)["sketches_name"].to_pylist() == [name % 1, None]
    other = block(store, ["a"], 3, sketches=name % 2)
    manifest = of(sketched, other)
    assert merge_blocks(manifest, store, at_most=1) is manifest  # they cannot be read, so they cannot become one


def one_by_one(store, paths, leaves, **how):
    return [block(store, paths, i, [leaf], detailed=True, **how) for i, leaf in enumerate(leaves)]


def said(newest):
    """Return the details of columns with these lower bounds."""
    lists = {("frequencies", *key): list(range(value, value + 12)) for key, value in newest.items()}
    return lists | {(kind, *key): value for kind in ("sketches", "histograms") for key, value in newest.items()}


@pytest.mark.slow
def test_one_column_after_the_other_keeps_few_blocks_and_all_statistics(store):
    leaves = columns(MAX_BLOCKS + 10)
    for block_ in one_by_one(store, ["a", "b"], leaves):
        manifest = store.commit(TABLE, adding(block_))
        assert len(manifest.blocks) <= MAX_BLOCKS
    newest = {(path, leaf.key): i for path in "ab" for i, leaf in enumerate(leaves)}
    for _ in range(2):
        assert only(bounds(store, manifest)) == newest
        assert details_of(store, manifest) == said(newest)
        assert {row.state for row in verify_manifest(store, manifest)} == {"ok"}
        manifest = compact_blocks(manifest, store, None)
    assert len(manifest.blocks) == 1


@pytest.mark.parametrize("seed", range(5))
def test_random_columns_of_random_files_keep_their_newest_statistics_and_details(store, seed):
    numbers = random.Random(seed)
    blocks, newest = [], {}
    for i in range(10):
        paths = numbers.sample("abcdef", numbers.randint(1, 4))
        leaves = numbers.sample(columns(6), numbers.randint(1, 4))
        ordinals = sorted(numbers.sample(range(len(leaves)), numbers.randint(1, len(leaves))))
        blocks.append(block(store, paths, i, leaves, ordinals=ordinals, detailed=True))
        newest.update({(path, leaves[c].key): i for path in paths for c in ordinals})
    manifest = compact_blocks(of(*blocks), store, None)
    assert len(manifest.blocks) == 1
    assert only(bounds(store, manifest)) == newest
    assert details_of(store, manifest) == said(newest)
    assert {row.state for row in verify_manifest(store, manifest)} == {"ok"}


def test_details_that_stay_right_are_not_written_again(store):
    wide, other = (
        block(store, ["a"], 1, columns(3), detailed=True),
        block(store, ["b"], 2, columns(3)[2:], detailed=True),
    )
    before = store.get(wide.files).to_pylist()[0]
    [merged] = merge_blocks(of(wide, other), store, at_most=1).blocks
    first, second = store.get(merged.files).to_pylist()
    assert first == before
    assert second["sketches_name"] != store.get(other.files)["sketches_name"][0].as_py()


def test_blocks_with_much_to_write_again_stay_apart(store, monkeypatch):
    manifest = of(*one_by_one(store, ["a"], columns(3)))
    monkeypatch.setattr(block_merge, "JOINED_BYTES", sum(row.size for row in verify_manifest(store, manifest)) // 6)
    assert compact_blocks(manifest, store, None) == manifest


def test_blocks_with_many_columns_of_many_files_stay_apart(store, monkeypatch):
    blocks = one_by_one(store, ["a", "b"], columns(3))
    monkeypatch.setattr(block_merge, "JOINED_CELLS", 2 * 2)
    assert len(compact_blocks(of(*blocks), store, None).blocks) == 2
    monkeypatch.setattr(block_merge, "JOINED_CELLS", 2 * 3)
    assert len(compact_blocks(of(*blocks), store, None).blocks) == 1
    monkeypatch.setattr(block_merge, "JOINED_CELLS", 1)
    plain = [block(store, ["a", "b"], i, [leaf]) for i, leaf in enumerate(columns(3))]
    assert len(compact_blocks(of(*plain), store, None).blocks) == 1  # there are no details to write again


@pytest.mark.parametrize("kind", ["sketches", "frequencies", "histograms"])
def test_a_block_with_damaged_details_is_left_out_of_joining(store, tmp_path, kind):
    blocks = one_by_one(store, ["a"], columns(3))
    name = store.get(blocks[1].files)[f"{kind}_name"][0].as_py()
    stored = tmp_path / "_metastore/objects" / name
    data = stored.read_bytes()
    stored.write_bytes(data[:50] + bytes([data[50] ^ 1]) + data[51:])
    manifest = compact_blocks(of(*blocks), store, None)
    assert blocks[1] in manifest.blocks
    assert len(manifest.blocks) == 2


@pytest.mark.parametrize("seed", range(3))
def test_random_blocks_keep_their_newest_statistics(store, seed):
    numbers = random.Random(seed)
    blocks, newest = [], {}
    for i in range(12):
        paths = numbers.sample("abcdefgh", numbers.randint(1, 5))
        ordinals = sorted(numbers.sample(range(5), numbers.randint(1, 5)))
        blocks.append(block(store, paths, i, columns(5), ordinals=ordinals))
        newest.update({(path, str(c)): i for path in paths for c in ordinals})
    assert only(bounds(store, merge_blocks(of(*blocks), store, at_most=1))) == newest


def test_the_last_snapshots_are_kept(store):
    for i in range(5):
        manifest = store.commit(TABLE, adding(snapshots=[snapshot(store, str(i))]), keep=3)
    assert [each.id for each in manifest.snapshots] == ["2", "3", "4"]
    manifest = store.commit(TABLE, adding(snapshots=[snapshot(store, "3")]), keep=3)
    assert [each.id for each in manifest.snapshots] == ["2", "4", "3"]


def test_wide_tables_stay_below_a_megabyte(store):
    for i in range(5):
        wide = tuple(
            Column(key=str(n), path=(f"a_rather_long_name_{i}_{n}",), type="bigint", encoding="long")
            for n in range(3000)
        )
        added = adding(block(store, [f"f{i}"], i, wide, ordinals=[0]), snapshots=[snapshot(store, str(i), wide)])
        manifest = store.commit(TABLE, added)
        assert len(manifest.to_bytes()) <= MAX_MANIFEST_BYTES
    assert len(manifest.blocks) < 5
    assert only(bounds(store, manifest)) == {(f"f{i}", "0"): i for i in range(5)}
    assert manifest.snapshots[-1].id == "4"


def test_schemas_beyond_all_limits_are_refused(store, monkeypatch):
    monkeypatch.setattr(manifest_limits, "MAX_MANIFEST_BYTES", 1000)
    monkeypatch.setattr(manifest_limits, "MAX_READ_BYTES", 5000)
    with pytest.raises(UnsupportedTable, match="schema needs a manifest"):
        store.commit(TABLE, adding(block(store, ["a"], 0, columns(100))))
    assert store.read() is None


def test_more_blocks_than_readers_take_are_refused(store, monkeypatch):
    monkeypatch.setattr(manifest_limits, "MAX_BLOCKS", 2)
    monkeypatch.setattr(manifest_limits, "MAX_READ_BLOCKS", 3)
    monkeypatch.setattr(block_merge, "JOINED_BYTES", 1)
    blocks = one_by_one(store, ["a"], columns(4))
    assert len(store.commit(TABLE, adding(*blocks[:3])).blocks) == 3
    with pytest.raises(UnsupportedTable, match="4 blocks"):
        store.commit(TABLE, adding(blocks[3]))


def test_an_empty_manifest_is_small_enough(store):
    assert store.commit(TABLE, lambda _: Manifest(table=TABLE)).blocks == ()


@pytest.mark.parametrize("kind", ["files", "summary"])
def test_a_damaged_block_is_left_out_of_merging(store, tmp_path, kind):
    blocks = [block(store, [f"f{i}"], i) for i in range(4)]
    ref = blocks[1].files if kind == "files" else blocks[1].summary[0].object
    (tmp_path / "_metastore/objects" / ref.name).unlink()
    manifest = merge_blocks(of(*blocks), store, at_most=1)
    assert [block_.files.rows for block_ in manifest.blocks] == [1, 3]
    assert manifest.blocks[0] == blocks[1]


@pytest.mark.parametrize("kind", ["files", "summary"])
@pytest.mark.parametrize("ordinal", [-1, 1, 2**31 - 1])
def test_ordinals_that_lie_leave_a_block_out_of_merging(store, kind, ordinal):
    made, other_blocks = block(store, ["a"]), [block(store, [path]) for path in "bc"]
    ref = made.files if kind == "files" else made.summary[0].object
    rows = store.get(ref)
    position = rows.schema.get_field_index("file")
    lying = rows.set_column(position, rows.schema.field(position), pa.array([ordinal] * rows.num_rows, pa.int32()))
    wrong = store.put(kind, lying, [rows.num_rows])
    changed = {"files": wrong} if kind == "files" else {"summary": (replace(made.summary[0], object=wrong),)}
    manifest = merge_blocks(of(replace(made, **changed), *other_blocks), store, at_most=1)
    assert sorted(block_.files.rows for block_ in manifest.blocks) == [1, 2]


def test_blocks_that_stay_apart_cost_no_snapshots(store, monkeypatch):
    monkeypatch.setattr(block_merge, "JOINED_BYTES", 1)
    monkeypatch.setattr(manifest_limits, "MAX_BLOCKS", 9)
    for i, block_ in enumerate(one_by_one(store, ["a"], columns(12))):
        manifest = store.commit(TABLE, adding(block_, snapshots=[snapshot(store, str(i))]), keep=5)
    assert len(manifest.blocks) == 12
    assert [each.id for each in manifest.snapshots] == ["7", "8", "9", "10", "11"]


def test_joined_blocks_have_one_object_of_each_kind(store):
    apart = [block(store, [path], 0, columns(1), detailed=True) for path in "abcd"]
    complete = block(store, list("abcd"), 1, [columns(2)[1]], detailed=True)
    manifest = compact_blocks(of(*apart, complete), store, None)
    [merged] = manifest.blocks
    for kind in ("sketches", "frequencies", "histograms"):
        assert len(set(store.get(merged.files)[f"{kind}_name"].to_pylist())) == 1
