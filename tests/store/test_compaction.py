"""`compact`: one block of what is live."""

from __future__ import annotations

import uuid

import metastore
from metastore.store import Store
from store.small_blocks import TABLE, adding, block, bounds, columns, folder, listed


def test_equal_rows_are_never_one_object(store):
    assert block(store, ["a"]).summary[0].object.name != block(store, ["a"]).summary[0].object.name


def test_compaction_leaves_one_block_and_all_live_statistics(store):
    for i, path in enumerate("abcd"):
        store.commit(TABLE, adding(block(store, [path, f"{path}x"], i), snapshots=[listed(store, "a", "b", "bx", "c")]))
    done = metastore.compact(store.uri)
    assert (done["blocks_before"], done["blocks_after"], done["files_before"], done["files_after"]) == (4, 1, 8, 4)
    manifest = store.read()
    assert {path: value for (path, _), [value] in bounds(store, manifest).items()} == {"a": 0, "b": 1, "bx": 1, "c": 2}
    assert store.get(manifest.blocks[0].files)["file"].to_pylist() == [0, 1, 2, 3]
    assert {row["state"] for row in metastore.verify(store.uri)} == {"ok"}
    again = metastore.compact(store.uri)
    assert (again["committed"], store.read().sequence) == (False, 5)


def test_compaction_drops_blocks_without_live_files(store):
    gone, stays = block(store, ["a"]), block(store, ["b"], leaves=columns(1), computed="footer")
    store.commit(TABLE, adding(gone, stays, snapshots=[listed(store, "b")]))
    metastore.compact(store.uri)
    assert store.read().blocks == (stays,)


def test_files_of_any_kept_snapshot_are_live(store):
    made = block(store, ["a", "b", "c"])
    store.commit(TABLE, adding(made, snapshots=[listed(store, "a"), listed(store, "b")]), keep=5)
    assert metastore.compact(store.uri)["files_after"] == 2


def test_without_a_readable_list_all_files_are_kept(store):
    newest = listed(store, "a")
    store.commit(TABLE, adding(block(store, ["a", "b"]), block(store, ["c"]), snapshots=[newest]))
    (folder(store) / "objects" / newest.table_files.name).unlink()
    writer = Store.open(store.uri, writable=True)
    from metastore.store.compaction import compact_store  # noqa: PLC0415

    assert sum(each.files.rows for each in compact_store(writer).after.blocks) == 3


def test_details_of_both_blocks_survive(store):
    names = [f"sketches-{uuid.UUID(int=i)}.parquet" for i in (1, 2)]
    parts = [block(store, [path], i, sketches=names[i]) for i, path in enumerate("ab")]
    store.commit(TABLE, adding(*parts, snapshots=[listed(store, "a", "b")]))
    metastore.compact(store.uri)
    [merged] = store.read().blocks
    assert store.get(merged.files)["sketches_name"].to_pylist() == names


def test_a_compaction_is_made_again_on_top_of_what_was_committed_meanwhile(store, monkeypatch):
    for path in "ab":
        store.commit(TABLE, adding(block(store, [path]), snapshots=[listed(store, "a", "b", "c")]))
    other, late = Store.open(store.uri, writable=True), block(store, ["c"])
    from metastore.store import compaction as module  # noqa: PLC0415

    merge, calls = module.compact_blocks, []

    def overtaken(manifest, *arguments):
        calls.append(manifest.sequence)
        if len(calls) == 1:
            other.commit(TABLE, adding(late))
        return merge(manifest, *arguments)

    monkeypatch.setattr(module, "compact_blocks", overtaken)
    assert len(module.compact_store(store).after.blocks) == 1
    assert calls == [2, 3]
    assert {path for path, _ in bounds(store, store.read())} == set("abc")
