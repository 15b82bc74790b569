from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from metastore._format.manifest import Manifest
from metastore._format.schemas import SKETCHES
from metastore._store import Store
from metastore._store.blobs import open_blobs
from metastore._store.executor import write_object
from metastore._store.replies import Reply
from metastore._store.unreferenced import find_unreferenced_blocks
from metastore.errors import (
    AnalyzeFailed,
    CommitUnknown,
    DamagedObject,
    FormatTooNew,
    StoreNotReadable,
    StoreNotWritable,
    UnsupportedTable,
)
from store.made import TABLE, adding, block, bounds, snapshot

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
    assert store.objects("files") == {}
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
    seen = []
    other = replace(TABLE, uuid="another")
    committed = store.commit(other, lambda old: seen.append(old) or Manifest(other))
    assert (seen, committed.sequence, committed.blocks, committed.table) == ([None], 2, (), other)


def test_the_successor_of_a_dropped_table_is_not_overwritten(store):
    successor = replace(TABLE, uuid="successor")
    first = store.commit(successor, lambda _: Manifest(successor))
    for over in (frozenset(), frozenset({TABLE.uuid})):
        with pytest.raises(AnalyzeFailed, match="another table"):
            store.commit(TABLE, adding(), over=over)
    assert store.read() == first
    assert store.commit(TABLE, adding(), over=frozenset({"successor"})).table == TABLE


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
        store.raw("../log/" + f"{1:020}.json")


def test_a_manifest_never_names_what_is_not_there(store, tmp_path):
    made = block(store, ["a"])
    elsewhere = Store.open(str(tmp_path / "other"), writable=True)
    with pytest.raises(StoreNotWritable, match="share the folder"):
        elsewhere.commit(TABLE, adding(made))
    assert elsewhere.read() is None


def test_absent_objects(store, tmp_path):
    here, gone, cut = (store.put("sketches", SKETCH, [1], {"n": str(i)}) for i in range(3))
    lengths = {ref.name: ref.length for ref in (here, gone, cut)}
    assert store.absent(lengths) == set()
    objects = tmp_path / "t/_metastore/objects"
    (objects / gone.name).unlink()
    (objects / cut.name).write_bytes(b"PAR1")
    assert store.absent(lengths) == {gone.name, cut.name}
    assert Store.open(str(tmp_path / "none")).absent(lengths) == set(lengths)


def test_objects_of_a_kind(store):
    made = block(store, ["a"])
    assert set(store.objects("files")) == {made.files.name}
    assert set(store.objects("summary")) == {made.summary[0].object.name}
    assert store.objects("table-files") == {}
    ref = snapshot(store, "1").table_files
    assert set(store.objects("table-files")) == {ref.name}
    assert set(store.objects("files")) == {made.files.name}


def test_readers_do_not_write(store):
    reader = Store.open(store.uri)
    for write in (partial(reader.put, "sketches", SKETCH, [1]), partial(reader.commit, TABLE, adding())):
        with pytest.raises(StoreNotWritable, match="opened for reading"):
            write()


IMPORTS = """
import os, sys
import metastore._store.store
from dataclasses import replace
from metastore._store import Store
from metastore._format.manifest import Manifest, TableIdentity
from metastore.errors import StoreNotWritable
"""

READ_AND_COMMIT = """
os.getuid() or (os.setgroups([]), os.setgid(65534), os.setuid(65534))  # root may write everywhere: go on as nobody
table = TableIdentity("iceberg", "u", "l", "n")
store = Store.open(sys.argv[1] + "/_metastore", writable=True)
print(store.read())
try:
    store.commit(table, lambda old: Manifest(table))
except StoreNotWritable as e:
    print(e)
"""


def said(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("present", [True, False])
def test_read_only_folders_are_named_with_the_way_out(tmp_path, present):
    folder = tmp_path / "t"
    if present:
        Store.open(str(folder / "_metastore"), writable=True).commit(TABLE, adding())
    folder.mkdir(exist_ok=True)
    for path in [*tmp_path.parents, tmp_path, folder, *folder.rglob("*")]:
        if path.stat().st_uid == os.getuid() and path != Path("/"):
            path.chmod(0o555 if path in (folder, *folder.rglob("*")) else path.stat().st_mode | 0o055)
    found, error = said(IMPORTS + READ_AND_COMMIT, str(folder)).splitlines()
    assert found.startswith("Manifest") if present else found == "None"
    assert error.startswith("[METASTORE_STORE_NOT_WRITABLE]")
    assert "denied" in error
    assert "spark.metastore.store" in error


class Wrapped:
    """Real blobs whose answers to `create` of a manifest are tampered with, once."""

    def __init__(self, uri, tamper):
        self.tamper = tamper
        self.blobs = open_blobs(uri, None, writable=True)
        self.reads = 0

    def __getattr__(self, name):
        return getattr(self.blobs, name)

    def create(self, path, data):
        if path.startswith("log/probe") or self.tamper is None:
            return self.blobs.create(path, data)
        tamper, self.tamper = self.tamper, None
        return tamper(self.blobs, path, data)


def tampered(tmp_path, tamper):
    uri = str(tmp_path / "_metastore")
    return Store(uri, lambda **_: Wrapped(uri, tamper), writable=True)


def stored_and_exists(blobs, path, data):
    blobs.create(path, data)
    return Reply.EXISTS, "412"


def stored_and_lost(blobs, path, data):
    blobs.create(path, data)
    return Reply.UNKNOWN, "connection reset"


def lost_before(_blobs, _path, _data):
    return Reply.UNKNOWN, "503"


def refused_though_absent(_blobs, _path, _data):
    return Reply.EXISTS, "409"


@pytest.mark.parametrize("tamper", [stored_and_exists, stored_and_lost, lost_before, refused_though_absent])
def test_ambiguous_replies_are_read_back(tmp_path, tamper):
    store = tampered(tmp_path, tamper)
    calls = []
    committed = store.commit(TABLE, lambda old: calls.append(old) or adding()(old))
    assert (committed.sequence, len(calls)) == (1, 1)
    assert [path.name for path in (tmp_path / "_metastore/log").iterdir()] == [f"{1:020}.json"]


def test_a_conflict_is_rebased(tmp_path):
    other = Store.open(str(tmp_path / "_metastore"), writable=True)
    theirs, ours = block(other, ["theirs"]), block(other, ["ours"])

    def overtaken(blobs, path, data):
        other.commit(TABLE, adding(theirs))
        return blobs.create(path, data)

    committed = tampered(tmp_path, overtaken).commit(TABLE, adding(ours))
    assert (committed.sequence, committed.blocks) == (2, (theirs, ours))


def test_an_unknown_outcome_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)

    class Silent(Wrapped):
        def create(self, path, data):
            return self.blobs.create(path, data) if "probe" in path else (Reply.UNKNOWN, "timeout")

    uri = str(tmp_path / "_metastore")
    with pytest.raises(CommitUnknown, match="timeout"):
        Store(uri, lambda **_: Silent(uri, None), writable=True).commit(TABLE, adding())


def test_an_outcome_that_cannot_be_read_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: None)

    class Mute(Wrapped):
        def get(self, path, most):
            if self.tamper is None and path.endswith(f"{1:020}.json"):
                raise StoreNotReadable("x", "no route")
            return self.blobs.get(path, most)

    uri = str(tmp_path / "_metastore")
    store = Store(uri, lambda **_: Mute(uri, stored_and_lost), writable=True)
    with pytest.raises(CommitUnknown, match="no route"):
        store.commit(TABLE, adding())
    assert Store.open(uri).read().sequence == 1  # it was there all the time


def test_stores_that_overwrite_are_refused(tmp_path):
    class Overwriting(Wrapped):
        def create(self, path, data):
            self.blobs.put(path, data)
            return Reply.CREATED, ""

    uri = str(tmp_path / "_metastore")
    store = Store(uri, lambda **_: Overwriting(uri, None), writable=True)
    for write in (store.ensure_writable, partial(store.commit, TABLE, adding())):
        with pytest.raises(StoreNotWritable, match="overwrites"):
            write()
    assert list((tmp_path / "_metastore/log").iterdir()) == []


COMMITTER = (
    IMPORTS
    + """
uri, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
table = TableIdentity("iceberg", "u", "l", "n")
store = Store.open(uri, writable=True)
for i in range(count):
    def add(old, mark=f"{name}-{i}"):
        base = old or Manifest(table)
        return replace(base, settings={**base.settings, mark: 1})
    print(store.commit(table, add).sequence, flush=True)
"""
)


def test_eight_processes_lose_nothing(tmp_path):
    uri, each = str(tmp_path / "_metastore"), 6
    started = [
        subprocess.Popen([sys.executable, "-c", COMMITTER, uri, str(i), str(each)], stdout=subprocess.PIPE, text=True)
        for i in range(8)
    ]
    numbers = [int(line) for process in started for line in process.communicate(timeout=100)[0].splitlines()]
    assert [process.returncode for process in started] == [0] * 8
    assert sorted(numbers) == list(range(1, 8 * each + 1))
    manifest = Store.open(uri).read()
    assert set(manifest.settings) == {f"{i}-{j}" for i in range(8) for j in range(each)}
    assert manifest.sequence == 8 * each


def test_a_killed_writer_leaves_whole_manifests(tmp_path):
    uri = str(tmp_path / "_metastore")
    done, torn = 0, []
    for attempt in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMITTER, uri, str(attempt), "100000"], stdout=subprocess.PIPE, text=True
        )
        for _ in range(5 + attempt):
            done = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.communicate()
        manifest = Store.open(uri).read()
        assert manifest.sequence >= done
        for path in (tmp_path / "_metastore/log").glob("*.json"):
            torn += [] if json.loads(path.read_bytes().partition(b"\n")[0])["sequence"] == int(path.stem) else [path]
    assert torn == []


def test_finished_blocks_of_a_killed_run_are_found(store):
    named, lost, of_another = (
        block(store, ["a"]),
        block(store, ["b"]),
        block(store, ["c"], table=replace(TABLE, uuid="x")),
    )
    manifest = store.commit(TABLE, adding(named))
    assert find_unreferenced_blocks(store, TABLE, manifest) == [lost]
    assert find_unreferenced_blocks(store, TABLE, None) == [named, lost]
    assert find_unreferenced_blocks(store, replace(TABLE, uuid="x"), None) == [of_another]
    assert find_unreferenced_blocks(store, TABLE, None, settings={"theta_lgk": 11}) == []
    adopted = store.commit(TABLE, adding(lost))
    assert set(bounds(store, adopted)) == {(path, key) for path in "ab" for key in "01"}
    assert find_unreferenced_blocks(store, TABLE, adopted) == []


def test_old_blocks_are_left_to_collection(store):
    made = block(store, ["a"])
    path = Path(store.uri.removeprefix("file:")) / "objects" / made.files.name
    os.utime(path, (time.time() - 86_500,) * 2)
    assert find_unreferenced_blocks(store, TABLE, None) == []


def test_only_wanted_blocks_are_verified(store):
    first, second = block(store, ["a"]), block(store, ["b"])
    wanted = find_unreferenced_blocks(store, TABLE, None, wanted=lambda _, files: files["path"].to_pylist() == ["b"])
    assert wanted == [second]
    assert first.id != second.id


@pytest.mark.parametrize("kind", ["summary", "files"])
@pytest.mark.parametrize("how", ["missing", "flipped", "cut"])
def test_damaged_blocks_are_not_found(store, kind, how):
    made, whole = block(store, ["a"], 1), block(store, ["b"], 2)
    ref = made.files if kind == "files" else made.summary[0].object
    path = Path(store.uri.removeprefix("file:")) / "objects" / ref.name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(bytes(data) if how == "flipped" else bytes(data[:-9]))
    assert find_unreferenced_blocks(store, TABLE, None) == [whole]


def test_an_executor_leaves_nothing_half_written(tmp_path, monkeypatch):
    def fails(self, data):
        with self.open("wb") as file:
            file.write(data[:7])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fails)
    with pytest.raises(StoreNotWritable, match="No space left"):
        write_object(str(tmp_path), "sketches", SKETCH, [1])
    assert list((tmp_path / "objects").iterdir()) == []


def test_executors_do_not_need_obstore():
    code = "import sys, metastore._store.executor; print({m.partition('.')[0] for m in sys.modules})"
    assert {"obstore", "pyspark"}.isdisjoint(ast.literal_eval(said(code)))
