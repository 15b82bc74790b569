"""Every odd thing in a store x every verb without Spark: nothing hangs, nothing outside is touched, ANALYZE goes on."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

import metastore
from metastore.cli import doctor_store_checks
from metastore.errors import (
    CollectionRefused,
    DamagedObject,
    MetastoreError,
    NoStatistics,
    StoreNotReadable,
    StoreNotWritable,
    TableNotFound,
)
from metastore.store import Store
from metastore.store.arrow_blobs import open_object_part, read_object, write_object
from metastore.store.commit_log import FARTHEST, log_name, parse_log_names
from metastore.store.repair import find_orphan_blocks
from patience import ends_within
from store.small_blocks import TABLE, adding, block
from store.tampering import KINDS, TAMPERINGS, tree


@pytest.fixture(autouse=True)
def impatient():
    with ends_within(60):
        yield


def made(folder: Path) -> Path:
    store = Store.open(str(folder / "_metastore"), writable=True)
    for i in range(3):
        store.commit(TABLE, adding(block(store, [f"{i}.parquet"])))
    return Path(store.uri)


@pytest.fixture
def two_stores(tmp_path):
    """A store, and the one of another table."""
    return made(tmp_path / "t"), made(tmp_path / "other")


def commit(folder: Path) -> None:
    """Commit a block, as ANALYZE does at its end."""
    store = Store.open(str(folder), writable=True)
    new_block = block(store, [f"{os.urandom(4).hex()}.parquet"])
    store.commit(TABLE, adding(new_block))


def write(folder: Path) -> None:
    """Write objects, as a task of ANALYZE does."""
    store = Store.open(str(folder))
    manifest = store.read()
    rows = store.get(manifest.blocks[0].files)
    ref = write_object(str(folder), "files", rows, [rows.num_rows])
    assert read_object(str(folder), ref.name)
    open_object_part(str(folder), ref)


VERBS = {
    "open": lambda folder: metastore.open(str(folder)),
    "of its table": lambda folder: metastore.open(str(folder.parent)),
    "files": lambda folder: metastore.open(str(folder)).files(),
    "columns": lambda folder: metastore.open(str(folder)).columns(),
    "snapshots": lambda folder: metastore.open(str(folder)).snapshots(),
    "verify": lambda folder: metastore.verify(str(folder)),
    "gc": lambda folder: metastore.gc(str(folder), grace_days=0),
    "gc --delete": lambda folder: metastore.gc(str(folder), grace_days=0, delete=True),
    "compact": lambda folder: metastore.compact(str(folder)),
    "unreferenced": lambda folder: find_orphan_blocks(Store.open(str(folder)), TABLE, None),
    "is empty": lambda folder: Store.open(str(folder)).is_empty(),
    "commit": commit,
    "write": write,
    "doctor": lambda folder: doctor_store_checks.check_store(str(folder.parent)),
}


NEEDED = dict.fromkeys(VERBS, ("", "log", "objects")) | {
    **dict.fromkeys(("open", "of its table", "files", "columns", "snapshots", "is empty"), ("", "log")),
    "unreferenced": ("", "objects"),
    "doctor": (),  # which says it instead
}
"""Which folders a verb cannot do without."""


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("odd", TAMPERINGS, ids=lambda odd: odd.name)
def test_it_is_refused_by_name_or_passed_over(two_stores, odd, verb):
    folder, other = two_stores
    odd.make(folder, other)
    before = tree(other)
    if odd.refused in NEEDED[verb]:
        refusals = (StoreNotReadable, StoreNotWritable, *([TableNotFound] if odd.refused == "" else []))
        with pytest.raises(refusals, match=r"is a (symbolic link|FIFO|socket|device)|There is no table"):
            VERBS[verb](folder)
    else:
        with suppress(CollectionRefused, NoStatistics):  # of a manifest whose number may be in use; of columns
            VERBS[verb](folder)
    assert tree(other) == before


@pytest.mark.parametrize(
    "odd", [tampering for tampering in TAMPERINGS if tampering.refused is None], ids=lambda odd: odd.name
)
def test_statistics_go_on(two_stores, odd):
    folder, other = two_stores
    odd.make(folder, other)
    before = Store.open(str(folder)).read()
    assert len(before.blocks) == 3
    for _ in range(3):
        commit(folder)
    after = Store.open(str(folder)).read()
    assert len(after.blocks) == 6
    assert before.sequence + 3 <= after.sequence <= before.sequence + 2000
    assert parse_log_names(path.name for path in (folder / "log").iterdir())[after.sequence]
    assert not list((folder / "log").glob("[0-9]" * 21 + ".json"))
    assert {row["state"] for row in metastore.verify(str(folder))} <= {"ok", "unknown"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_manifest_that_is_none_is_named(two_stores, kind, caplog):
    folder, _ = two_stores
    newest = folder / "log" / log_name(Store.open(str(folder)).read().sequence)
    newest.unlink()
    KINDS[kind](newest)
    with caplog.at_level("WARNING", logger="metastore"):
        Store.open(str(folder)).read()
    assert re.search(rf"{newest.name}.* it is a (symbolic link|FIFO|socket|device|folder)", caplog.text)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_is_none_is_named(two_stores, kind):
    folder, _ = two_stores
    gone = folder / "objects" / Store.open(str(folder)).read().blocks[0].files.name
    gone.unlink()
    KINDS[kind](gone)
    assert [row["object"] for row in metastore.verify(str(folder)) if row["state"] == "damaged"] == [gone.name]
    with pytest.raises(DamagedObject, match=gone.name):
        read_object(str(folder), gone.name)
    with pytest.raises(DamagedObject, match=gone.name):
        Store.open(str(folder)).read_bytes(gone.name)
    commit(folder)
    assert gone.name in {row["object"] for row in metastore.verify(str(folder))}


@pytest.mark.parametrize(
    "odd", [tampering for tampering in TAMPERINGS if tampering.refused is None], ids=lambda odd: odd.name
)
def test_verify_names_what_it_passes_over(two_stores, odd):
    folder, other = two_stores
    before = {path.relative_to(folder) for path in folder.rglob("*")}
    odd.make(folder, other)
    put = {path.relative_to(folder) for path in folder.rglob("*")} - before
    expected = {str(path).removeprefix("objects/") for path in put if len(path.parts) > 1}
    if odd.name == "thousands of junk entries":  # named as objects are: for `gc`
        expected = {name for name in expected if not name.startswith("files-0")}
    passed = {row["object"]: row["problem"] for row in metastore.verify(str(folder)) if row["state"] == "unknown"}
    assert passed.keys() == expected
    if odd.name == "FIFO beside objects":
        assert set(passed.values()) == {"it is a FIFO: only plain files are read"}


@pytest.mark.skipif(os.getuid() == 0, reason="root reads everything")
def test_what_may_not_be_read_is_named(two_stores):
    (folder, _) = two_stores
    newest = max((folder / "log").iterdir())
    newest.chmod(0)
    with pytest.raises(MetastoreError, match=newest.name):
        metastore.open(str(folder))


def test_the_way_to_a_store_may_be_a_link(two_stores, tmp_path):
    folder, _ = two_stores
    (tmp_path / "data").symlink_to(folder.parent)
    (tmp_path / "disk").symlink_to(tmp_path)
    for location in (tmp_path / "data", tmp_path / "disk" / "data"):
        assert len(metastore.open(str(location)).files()) == len(metastore.open(str(folder.parent)).files())
        commit(location / "_metastore")
        assert metastore.gc(str(location), grace_days=0, delete=True) is not None
    assert len(Store.open(str(folder)).read().blocks) == 5


def test_numbers_are_those_of_one_log():
    def of(*numbers):
        return list(parse_log_names(f"{number:020}.json" for number in numbers))

    assert of(1, 2, 3) == of(3, 2, 1) == [1, 2, 3]
    assert of(7, 9) == [7, 9]  # collected before, lost between
    assert of(1, 2, FARTHEST + 2) == [1, 2, FARTHEST + 2]
    assert of(1, 2, FARTHEST + 3) == [1, 2]
    assert of(0, 10**20 - 1) == []
    assert parse_log_names(["\u0660" * 19 + "\u0661.json", "1.json", "000000000000000000001.json", "x"]) == {}


def test_a_manifest_that_says_another_number_is_none(two_stores):
    folder, _ = two_stores
    last = max((folder / "log").iterdir())
    shutil.copy(last, folder / "log" / f"{9:020}.json")
    store = Store.open(str(folder))
    assert store.read().sequence == 3
    commit(folder)
    assert (store.read().sequence, len(store.read().blocks)) == (10, 4)


def test_a_store_is_not_of_another_tables_name(two_stores):
    folder, _ = two_stores
    store = Store.open(str(folder), writable=True)
    with pytest.raises(DamagedObject):
        store.get(replace(store.read().blocks[0].files, name="../log/00000000000000000001.json"))
