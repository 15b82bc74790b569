"""`gc`: what is garbage, what is left alone."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

import metastore
from metastore.errors import CollectionRefused, FormatTooNew, NoStatistics, StoreNotWritable
from metastore.format.manifest import Manifest
from metastore.store import Store, retention
from metastore.store.local_blobs import LocalBlobs
from metastore.store.repair import find_orphan_blocks
from store.small_blocks import TABLE, adding, block, folder, listed

DAY = 86_400


def age(store, days, *names):
    """Makes files look as if they had been written days ago: all, or those of these names."""
    then = time.time() - days * DAY
    for path in folder(store).rglob("*.*"):
        if not names or path.name in names:
            os.utime(path, (then, then))


def garbage(store, **options):
    return {row["path"] for row in metastore.gc(store.uri, **options)}


def objects(manifest):
    object_names = {ref.object.name for block_ in manifest.blocks for ref in block_.summary}
    object_names |= {block_.files.name for block_ in manifest.blocks} | {
        snapshot.table_files.name for snapshot in manifest.snapshots
    }
    return {f"objects/{name}" for name in object_names}


def replacing(*blocks):
    return lambda old: replace(old, blocks=blocks)


def test_what_is_named_or_young_is_no_garbage(store):
    store.commit(TABLE, adding(block(store, ["a"]), snapshots=[listed(store, "a")]))
    lost = block(store, ["b"])
    assert garbage(store) == set()
    age(store, 8)
    assert garbage(store) == {f"objects/{lost.files.name}", f"objects/{lost.summary[0].object.name}"}
    assert garbage(store, grace_days=9) == set()


def test_asking_changes_nothing_and_deleting_deletes_only_garbage(store):
    manifest = store.commit(TABLE, adding(block(store, ["a"]), snapshots=[listed(store, "a")]))
    block(store, ["b"])
    age(store, 8)
    before = set(folder(store).rglob("*"))
    collected = garbage(store)
    assert set(folder(store).rglob("*")) == before
    assert garbage(store, delete=True) == collected
    assert {str(path.relative_to(folder(store))) for path in before - set(folder(store).rglob("*"))} == collected
    assert garbage(store) == set()
    assert store.read() == manifest
    assert {row["state"] for row in metastore.verify(store.uri)} == {"ok"}


@pytest.fixture
def slow_clock(monkeypatch):
    """The store's clock is thirty days behind that of this machine."""
    names = LocalBlobs.list_folder

    def late(self, folder):
        entries = names(self, folder)
        return {name: replace(entry, modified=entry.modified - timedelta(days=30)) for name, entry in entries.items()}

    monkeypatch.setattr(LocalBlobs, "list_folder", late)


def test_ages_are_by_the_clock_of_the_store(store, slow_clock):
    store.commit(TABLE, adding(block(store, ["a"])))
    lost = block(store, ["b"])
    assert garbage(store) == set()
    assert garbage(store, delete=True) == set()
    assert find_orphan_blocks(store, TABLE, store.read()) == [lost]


def test_who_may_not_write_is_told_of_garbage_too(store, monkeypatch, caplog):
    store.commit(TABLE, adding(block(store, ["a"])))
    lost = block(store, ["b"])
    age(store, 8)

    def refuse(*_):
        raise StoreNotWritable(store.uri, "read-only")

    monkeypatch.setattr(LocalBlobs, "create", refuse)
    assert f"objects/{lost.files.name}" in garbage(store)
    assert "ages are by the clock of this machine" in caplog.text
    with pytest.raises(StoreNotWritable):
        garbage(store, delete=True)


def test_a_manifest_is_needed_until_it_was_replaced_for_the_grace_period(store):
    first = store.commit(TABLE, adding(block(store, ["a"]), snapshots=[listed(store, "a")]))
    for path in "bcd":
        last = store.commit(TABLE, replacing(block(store, [path])))
    age(store, 8)
    age(store, 1, "00000000000000000002.json")  # so number 1 was the newest until a day ago
    assert garbage(store) == set()
    age(store, 8)
    old = garbage(store)
    assert {path for path in old if path.startswith("log/")} == {f"log/{n:020}.json" for n in (1, 2)}
    assert objects(first) - objects(last) <= old
    assert objects(last).isdisjoint(old)


def test_the_log_loses_its_oldest_first(store, monkeypatch):
    for path in "abcde":
        store.commit(TABLE, adding(block(store, [path])))
    age(store, 8)
    order = [row["path"] for row in metastore.gc(store.uri)]
    assert order == [f"log/{n:020}.json" for n in (1, 2, 3)]
    metastore.gc(store.uri, delete=True)
    assert Store.open(store.uri, writable=True).commit(TABLE, adding()).sequence == 6


@pytest.fixture
def read_numbers(monkeypatch):
    """The numbers of the manifests that are read."""
    numbers = []
    read = Store._read_log

    def noted(self, request):
        numbers.append(request.sequence)
        return read(self, request)

    monkeypatch.setattr(Store, "_read_log", noted)
    return numbers


def commit_some(store, paths):
    """Commits a block in place of all others, and again; returns the objects that each of the manifests names."""
    committed = []
    for path in paths:
        replace_all = replacing(block(store, [path]))
        manifest = store.commit(TABLE, lambda old, replace_all=replace_all: replace_all(old or Manifest(table=TABLE)))
        committed.append(objects(manifest))
    return committed


def searched(store, days=7):
    return {blob.path for blob in store.find_garbage(days * DAY, delete=False).blobs}


def searched_anew(store, days=7):
    return {blob.path for blob in store.run(retention.find_garbage(days * DAY)).blobs}


def test_a_process_reads_each_manifest_once_to_find_garbage(store, read_numbers):
    commit_some(store, "abcd")
    assert searched(store) == set()
    commit_some(store, "ef")
    read_numbers.clear()
    assert searched(store) == set()
    assert read_numbers == [4, 5, 6]
    age(store, 8)
    age(store, 1, *(f"{number:020}.json" for number in (4, 5, 6)))  # so number 3 was the newest until a day ago
    read_numbers.clear()
    answer = searched(store)
    assert read_numbers == [6]
    assert len(answer) == 6  # two manifests, each with a block of two objects
    assert answer == searched_anew(store)
    assert searched(store, days=0) == searched_anew(store, days=0)
    assert searched(store) == answer


def test_a_log_in_place_of_another_is_read_anew(store, read_numbers):
    commit_some(store, "abc")
    assert searched(store) == set()
    shutil.rmtree(folder(store))
    again = Store.open(store.uri, writable=True)
    *_, last = commit_some(again, "abc")
    age(store, 8)
    read_numbers.clear()
    answer = searched(again)
    assert read_numbers == [3, 2, 3]
    assert answer.isdisjoint(last)
    assert answer == searched_anew(again)


def test_details_are_needed_by_the_data_files_that_name_them(store):
    named, other = (f"sketches-{uuid.UUID(int=i)}.parquet" for i in (1, 2))
    store.commit(TABLE, adding(block(store, ["a"], sketches=named)))
    for name in (named, other):
        (folder(store) / "objects" / name).write_bytes(b"?")
    age(store, 8)
    assert garbage(store) == {f"objects/{other}"}


def test_what_is_not_ours_is_left_alone(store):
    store.commit(TABLE, adding())
    keep = ["objects/notes.txt", "objects/later-kind-" + str(uuid.uuid4()) + ".parquet", "log/README.md", "x.parquet"]
    for name in keep:
        (folder(store) / name).parent.mkdir(exist_ok=True)
        (folder(store) / name).write_bytes(b"?")
    left_behind = f"objects/.{uuid.uuid4()}.tmp"
    (folder(store) / left_behind).write_bytes(b"half")
    age(store, 80)
    assert garbage(store, delete=True) == {left_behind}
    assert all((folder(store) / name).exists() for name in keep)


def test_names_in_a_manifest_never_lead_elsewhere(store, tmp_path):
    manifest = store.commit(TABLE, adding(block(store, ["../../precious.parquet"])))
    precious = tmp_path / "precious.parquet"
    precious.write_bytes(b"!")
    store.commit(TABLE, replacing())
    store.commit(TABLE, adding())
    age(store, 80)
    assert objects(manifest) <= garbage(store, delete=True)
    assert precious.exists()


@pytest.mark.parametrize("sequence", [2, 3])
def test_nothing_is_deleted_when_a_manifest_is_unreadable(store, sequence):
    for path in "abc":
        store.commit(TABLE, adding(block(store, [path])))
    block(store, ["lost"])
    age(store, 8)
    torn = folder(store) / "log" / f"{sequence:020}.json"
    torn.write_bytes(torn.read_bytes()[:-9])
    before = set(folder(store).rglob("*"))
    with pytest.raises(CollectionRefused, match=f"{sequence:020}.json is damaged"):
        garbage(store, delete=True, grace_days=0)
    assert set(folder(store).rglob("*")) == before


def test_nothing_is_deleted_when_a_list_of_files_is_unreadable(store):
    made = block(store, ["a"])
    store.commit(TABLE, adding(made))
    age(store, 8)
    (folder(store) / "objects" / made.files.name).unlink()
    with pytest.raises(CollectionRefused, match="missing"):
        garbage(store, delete=True)


def test_nothing_is_deleted_under_a_later_format(store):
    store.commit(TABLE, adding(block(store, ["a"])))
    later = replace(store.read(), sequence=2, requires=("later",))
    (folder(store) / "log" / f"{2:020}.json").write_bytes(later.to_bytes())
    with pytest.raises(FormatTooNew):
        garbage(store, delete=True)


def test_there_is_nothing_to_look_after(tmp_path):
    for verb in (metastore.verify, metastore.gc, metastore.compact):
        with pytest.raises(NoStatistics):
            verb(str(tmp_path))
