"""Writers that fail, lose replies, race each other and are killed."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from metastore.errors import CommitUnknown, StoreNotReadable, StoreNotWritable
from metastore.store import Store
from metastore.store.credentials import FROM_ENVIRONMENT
from metastore.store.local_blobs import CreateReply
from metastore.store.obstore_blobs import open_blobs
from store.small_blocks import TABLE, adding, block

IMPORTS = """
import os, sys
import metastore.store.table_store
from dataclasses import replace
from metastore.store import Store
from metastore.format.manifest import Manifest, TableIdentity
from metastore.errors import StoreNotWritable
"""

READ_AND_COMMIT = """
os.getuid() or (os.setgroups([]), os.setgid(65534), os.setuid(65534))  # root may write everywhere: go on as nobody
table = TableIdentity("iceberg", "u", "l", "n")
store = Store.open(sys.argv[1] + "/_metastore", writable=True)
print(store.read())
try:
    store.commit(table, lambda old: Manifest(table=table))
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
    answer, error = said(IMPORTS + READ_AND_COMMIT, str(folder)).splitlines()
    assert answer.startswith("Manifest") if present else answer == "None"
    assert error.startswith("[METASTORE_STORE_NOT_WRITABLE]")
    assert "denied" in error
    assert "spark.metastore.store" in error


class Wrapped:
    """Real blobs whose answers to `create` of a manifest are tampered with, once."""

    def __init__(self, uri, tamper):
        self.tamper = tamper
        self.blobs = open_blobs(uri, FROM_ENVIRONMENT, writable=True)
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
    return CreateReply.EXISTS, "412"


def stored_and_lost(blobs, path, data):
    blobs.create(path, data)
    return CreateReply.UNKNOWN, "connection reset"


def lost_before(_blobs, _path, _data):
    return CreateReply.UNKNOWN, "503"


def refused_though_absent(_blobs, _path, _data):
    return CreateReply.EXISTS, "409"


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
            return self.blobs.create(path, data) if "probe" in path else (CreateReply.UNKNOWN, "timeout")

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
            return CreateReply.CREATED, ""

    uri = str(tmp_path / "_metastore")
    store = Store(uri, lambda **_: Overwriting(uri, None), writable=True)
    for write in (store.ensure_writable, partial(store.commit, TABLE, adding())):
        with pytest.raises(StoreNotWritable, match="overwrites"):
            write()
    assert list((tmp_path / "_metastore/log").iterdir()) == []


@pytest.mark.parametrize(
    ("forgets", "problem"), [("get", "what was written cannot be read"), ("list_folder", "is not listed")]
)
def test_stores_that_do_not_show_what_was_written_are_refused(tmp_path, forgets, problem):
    uri = str(tmp_path / "_metastore")
    blobs = Wrapped(uri, None)
    setattr(blobs, forgets, lambda *_: {} if forgets == "list_folder" else None)
    store = Store(uri, lambda **_: blobs, writable=True)
    with pytest.raises(StoreNotWritable, match=problem):
        store.commit(TABLE, adding())


COMMITTER = (
    IMPORTS
    + """
uri, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
table = TableIdentity("iceberg", "u", "l", "n")
store = Store.open(uri, writable=True)
for i in range(count):
    def add(old, mark=f"{name}-{i}"):
        base = old or Manifest(table=table)
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


def test_executors_do_not_need_obstore():
    code = "import sys, metastore.store.arrow_blobs; print({m.partition('.')[0] for m in sys.modules})"
    assert {"obstore", "pyspark"}.isdisjoint(ast.literal_eval(said(code)))
