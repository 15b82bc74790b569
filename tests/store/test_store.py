from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from metastore.errors import AnalyzeFailed, DamagedObject, FormatTooNew, StoreNotWritable, UnsupportedTable
from metastore.format.manifest import Manifest
from metastore.format.object_schemas import SKETCHES
from metastore.store import Store, stored_objects
from metastore.store.arrow_blobs import write_object
from metastore.store.local_blobs import LocalBlobs
from metastore.store.repair import find_orphan_blocks
from store.small_blocks import TABLE, adding, block, bounds, snapshot

SKETCH = pa.Table.from_pylist([{"column": 0, "file": 0, "theta": b"x"}], SKETCHES)


@pytest.fixture
def store(tmp_path):
    return Store.open(f"file:{tmp_path}/t/_metastore", writable=True)


def log_of(store):
    return Path(store.uri.removeprefix("file:")) / "log"


def manifest_file(store, sequence):
    return log_of(store) / f"{sequence:020}.json"


def test_nothing_is_there_and_nothing_is_made_by_asking(store, tmp_path):
    assert store.read() is None
    assert store.list_objects("files") == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["t", "a b", "50%", "a%20b", "x#y", "q?z", "p+q", "é😀", "k=v"])
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_locations(tmp_path, scheme, name):
    store = Store.open(f"{scheme}{tmp_path}/{name}/_metastore", writable=True)
    ref = store.put("sketches", SKETCH, [1])
    written = write_object(store.uri, "sketches", SKETCH, [1])
    committed = store.commit(TABLE, adding(block(store, ["f"])))
    again = Store.open(f"{tmp_path}/{name}/_metastore")
    assert again.read() == committed
    assert again.get(ref).equals(SKETCH)
    assert again.get(written).equals(SKETCH)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("uri", ["hdfs://nn:8020/t", "dbfs:/t", "http://x/t", "file://other/t", "s3:/no-bucket"])
def test_locations_out_of_reach(uri):
    with pytest.raises(UnsupportedTable, match="is not supported"):
        Store.open(uri, writable=True)


def test_commits_follow_each_other(store):
    first = store.commit(TABLE, adding(block(store, ["a"])))
    second = store.commit(TABLE, adding(block(store, ["b"])))
    assert (first.sequence, second.sequence) == (1, 2)
    assert second.previous == first.digest == manifest_file(store, 1).read_text().rpartition("sha256:")[2].strip()
    assert first.commit != second.commit
    assert set(bounds(store, store.read())) == {(path, key) for path in "ab" for key in "01"}


def test_nothing_to_commit(store):
    assert store.commit(TABLE, lambda _: None) is None
    first = store.commit(TABLE, adding())
    assert store.commit(TABLE, lambda _: None) == first
    assert len(list(log_of(store).iterdir())) == 1


def test_a_table_made_again_starts_anew(store):
    store.commit(TABLE, adding(block(store, ["a"])))
    sequences = []
    other = replace(TABLE, uuid="another")
    committed = store.commit(other, lambda old: sequences.append(old) or Manifest(table=other))
    assert (sequences, committed.sequence, committed.blocks, committed.table) == ([None], 2, (), other)


def test_the_successor_of_a_dropped_table_is_not_overwritten(store):
    successor = replace(TABLE, uuid="successor")
    first = store.commit(successor, lambda _: Manifest(table=successor))
    for replaced in (frozenset(), frozenset({TABLE.uuid})):
        with pytest.raises(AnalyzeFailed, match="another table"):
            store.commit(TABLE, adding(), replaceable=replaced)
    assert store.read() == first
    assert store.commit(TABLE, adding(), replaceable=frozenset({"successor"})).table == TABLE


def test_a_renamed_table_keeps_its_statistics(store):
    store.commit(TABLE, adding(block(store, ["a"])))
    renamed = replace(TABLE, name="cat.db.u")
    committed = store.commit(renamed, adding())
    assert (committed.table.name, len(committed.blocks)) == ("cat.db.u", 1)


def test_a_torn_manifest_gives_way_to_the_one_before(store):
    first = store.commit(TABLE, adding(block(store, ["a"])))
    store.commit(TABLE, adding(block(store, ["b"])))
    manifest_file(store, 2).write_bytes(manifest_file(store, 2).read_bytes()[:-20])
    assert store.read() == first
    third = store.commit(TABLE, adding(block(store, ["c"])))
    assert (third.sequence, third.previous) == (3, first.digest)
    assert set(bounds(store, store.read())) == {(path, key) for path in "ac" for key in "01"}


def test_what_is_larger_than_any_manifest_is_not_read(store):
    first = store.commit(TABLE, adding(block(store, ["a"])))
    with manifest_file(store, 2).open("wb") as file:
        file.truncate(1 << 40)  # a hole: more than any memory
    assert store.read() == first
    assert store.commit(TABLE, adding(block(store, ["b"]))).sequence == 3


def test_an_object_that_grew_is_not_read(store, tmp_path):
    ref = store.put("sketches", SKETCH, [1])
    with (tmp_path / "t/_metastore/objects" / ref.name).open("ab") as file:
        file.truncate(1 << 40)
    with pytest.raises(DamagedObject, match="bytes"):
        store.get(ref)


def test_no_manifest_is_whole(store):
    store.commit(TABLE, adding())
    manifest_file(store, 1).write_bytes(b"")
    with pytest.raises(DamagedObject):
        store.read()
    assert store.commit(TABLE, adding()).sequence == 2
    assert store.read().sequence == 2


def test_a_manifest_under_another_number_is_damaged(store):
    first = store.commit(TABLE, adding())
    manifest_file(store, 2).write_bytes(manifest_file(store, 1).read_bytes())
    assert store.read() == first


def test_later_formats_are_neither_read_nor_written_over(store):
    store.commit(TABLE, adding())
    manifest = replace(store.read(), sequence=2, requires=("zones",))
    manifest_file(store, 2).write_bytes(manifest.to_bytes())
    with pytest.raises(FormatTooNew):
        store.read()
    with pytest.raises(FormatTooNew):
        store.commit(TABLE, adding())


def test_other_files_in_the_log_are_ignored(store):
    first = store.commit(TABLE, adding())
    for name in (f"{7:020}.json.tmp", f"{8:020}.json#1", "9.json", f"{9:021}.json", "probe-x"):
        (log_of(store) / name).write_bytes(b"?")
    assert store.read() == first


def test_missing_objects(store, tmp_path):
    ref = store.put("sketches", SKETCH, [1])
    (tmp_path / "t/_metastore/objects" / ref.name).unlink()
    with pytest.raises(DamagedObject, match="missing"):
        store.get(ref)
    with pytest.raises(DamagedObject, match="no name"):
        store.read_bytes("../log/" + f"{1:020}.json")


def test_a_manifest_never_names_what_is_not_there(store, tmp_path):
    made = block(store, ["a"])
    elsewhere = Store.open(str(tmp_path / "other"), writable=True)
    with pytest.raises(StoreNotWritable, match="share the folder"):
        elsewhere.commit(TABLE, adding(made))
    assert elsewhere.read() is None


def test_absent_objects(store, tmp_path):
    here, gone, cut = (store.put("sketches", SKETCH, [1], {"n": str(i)}) for i in range(3))
    lengths = {ref.name: ref.length for ref in (here, gone, cut)}
    assert store.find_absent(lengths) == set()
    objects = tmp_path / "t/_metastore/objects"
    (objects / gone.name).unlink()
    (objects / cut.name).write_bytes(b"PAR1")
    assert store.find_absent(lengths) == {gone.name, cut.name}
    assert Store.open(str(tmp_path / "none")).find_absent(lengths) == set(lengths)


def test_of_many_objects_the_folder_is_listed_once(store, monkeypatch):
    refs = [store.put("sketches", SKETCH, [1], {"n": str(i)}) for i in range(5)]
    folder = log_of(store).parent / "objects"
    (folder / refs[0].name).unlink()
    (folder / refs[1].name).write_bytes(b"cut")
    sizes, size = [], LocalBlobs.size
    monkeypatch.setattr(stored_objects, "_MOST_LOCAL_REQUESTS", 4)
    monkeypatch.setattr(LocalBlobs, "size", lambda self, path: sizes.append(path) or size(self, path))
    assert store.find_absent({ref.name: ref.length for ref in refs}) == {refs[0].name, refs[1].name}
    assert sorted(sizes) == sorted(f"objects/{ref.name}" for ref in refs[:2])


def test_objects_of_a_kind(store):
    made = block(store, ["a"])
    assert set(store.list_objects("files")) == {made.files.name}
    assert set(store.list_objects("summary")) == {made.summary[0].object.name}
    assert store.list_objects("table-files") == {}
    ref = snapshot(store, "1").table_files
    assert set(store.list_objects("table-files")) == {ref.name}
    assert set(store.list_objects("files")) == {made.files.name}


def test_readers_do_not_write(store):
    reader = Store.open(store.uri)
    for write in (partial(reader.put, "sketches", SKETCH, [1]), partial(reader.commit, TABLE, adding())):
        with pytest.raises(StoreNotWritable, match="opened for reading"):
            write()


def test_finished_blocks_of_a_killed_run_are_found(store):
    named, lost, of_another = (
        block(store, ["a"]),
        block(store, ["b"]),
        block(store, ["c"], table=replace(TABLE, uuid="x")),
    )
    manifest = store.commit(TABLE, adding(named))
    assert find_orphan_blocks(store, TABLE, manifest) == [lost]
    assert find_orphan_blocks(store, TABLE, None) == [named, lost]
    assert find_orphan_blocks(store, replace(TABLE, uuid="x"), None) == [of_another]
    assert find_orphan_blocks(store, TABLE, None, settings={"theta_lgk": 11}) == []
    adopted = store.commit(TABLE, adding(lost))
    assert set(bounds(store, adopted)) == {(path, key) for path in "ab" for key in "01"}
    assert find_orphan_blocks(store, TABLE, adopted) == []


def test_old_blocks_are_left_to_collection(store):
    made = block(store, ["a"])
    path = Path(store.uri.removeprefix("file:")) / "objects" / made.files.name
    os.utime(path, (time.time() - 86_500,) * 2)
    assert find_orphan_blocks(store, TABLE, None) == []


def test_only_wanted_blocks_are_verified(store):
    first, second = block(store, ["a"]), block(store, ["b"])
    orphans = find_orphan_blocks(store, TABLE, None, is_useful=lambda _, files: files["path"].to_pylist() == ["b"])
    assert orphans == [second]
    assert first.id != second.id


@pytest.mark.parametrize("kind", ["summary", "files"])
@pytest.mark.parametrize("how", ["missing", "flipped", "cut"])
def test_damaged_blocks_are_not_found(store, kind, how):
    made, intact = block(store, ["a"], 1), block(store, ["b"], 2)
    ref = made.files if kind == "files" else made.summary[0].object
    path = Path(store.uri.removeprefix("file:")) / "objects" / ref.name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(bytes(data) if how == "flipped" else bytes(data[:-9]))
    assert find_orphan_blocks(store, TABLE, None) == [intact]


def test_an_executor_leaves_nothing_half_written(tmp_path, monkeypatch):
    def fails(number, mode):
        os.write(number, b"PAR1")
        os.close(number)
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fdopen", fails)
    with pytest.raises(StoreNotWritable, match="No space left"):
        write_object(str(tmp_path), "sketches", SKETCH, [1])
    assert list((tmp_path / "objects").iterdir()) == []
