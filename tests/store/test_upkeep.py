"""`verify`, `gc` and `compact`: what they find, what they leave alone."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import metastore
from metastore.errors import CollectionRefused, FormatTooNew, NoStatistics, StoreNotWritable
from metastore.format.manifest import Snapshot
from metastore.format.object_schemas import SCHEMAS, SUMMARY, TABLE_FILES
from metastore.store import Store
from metastore.store.local_blobs import LocalBlobs
from metastore.store.orphan_blocks import find_orphan_blocks
from metastore.store.verification import Damage, find_damage
from store.made import TABLE, adding, block, bounds, columns

DAY = 86_400


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "_metastore"), writable=True)


def folder(store):
    return Path(store.uri)


def age(store, days, *names):
    """Makes files look as if they had been written days ago: all, or those of these names."""
    then = time.time() - days * DAY
    for path in folder(store).rglob("*.*"):
        if not names or path.name in names:
            os.utime(path, (then, then))


def listed(store, *paths):
    """A snapshot whose live data files are these."""
    rows = pa.Table.from_pylist([{"path": path, "size": 1, "rows": 1} for path in paths], TABLE_FILES)
    ref = store.put("table-files", rows, [len(paths)])
    count = len(paths)
    facts = dict.fromkeys(("files", "files_total", "rows", "physical_rows", "size_bytes", "live_size_bytes"), count)
    when = "2026-01-31T12:00:00Z"
    return Snapshot("s" + "".join(paths), when, "full", exact=True, columns=columns(2), table_files=ref, **facts)


def garbage(store, **options):
    return {row["path"] for row in metastore.gc(store.uri, **options)}


def objects(manifest):
    found = {ref.object.name for block_ in manifest.blocks for ref in block_.summary}
    found |= {block_.files.name for block_ in manifest.blocks} | {one.table_files.name for one in manifest.snapshots}
    return {f"objects/{name}" for name in found}


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
    found = garbage(store)
    assert set(folder(store).rglob("*")) == before
    assert garbage(store, delete=True) == found
    assert {str(path.relative_to(folder(store))) for path in before - set(folder(store).rglob("*"))} == found
    assert garbage(store) == set()
    assert store.read() == manifest
    assert {row["state"] for row in metastore.verify(store.uri)} == {"ok"}


@pytest.fixture
def slow_clock(monkeypatch):
    """The store's clock is thirty days behind that of this machine."""
    names = LocalBlobs.list_folder

    def late(self, folder):
        found = names(self, folder)
        return {name: replace(one, modified=one.modified - timedelta(days=30)) for name, one in found.items()}

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
    one = listed(store, "a")
    store.commit(TABLE, adding(block(store, ["a", "b"]), block(store, ["c"]), snapshots=[one]))
    (folder(store) / "objects" / one.table_files.name).unlink()
    writer = Store.open(store.uri, writable=True)
    writer._with_objects = lambda manifest: manifest  # the commit would refuse to name what is missing
    from metastore.store.compaction import compact_store  # noqa: PLC0415

    assert sum(each.files.rows for each in compact_store(writer).after.blocks) == 3


def test_details_of_both_blocks_survive(store):
    names = [f"sketches-{uuid.UUID(int=i)}.parquet" for i in (1, 2)]
    parts = [block(store, [path], i, sketches=names[i]) for i, path in enumerate("ab")]
    store.commit(TABLE, adding(*parts, snapshots=[listed(store, "a", "b")]))
    metastore.compact(store.uri)
    [one] = store.read().blocks
    assert store.get(one.files)["sketches_name"].to_pylist() == names


def test_a_compaction_is_made_again_on_top_of_what_was_committed_meanwhile(store, monkeypatch):
    for path in "ab":
        store.commit(TABLE, adding(block(store, [path]), snapshots=[listed(store, "a", "b", "c")]))
    other, late = Store.open(store.uri, writable=True), block(store, ["c"])
    from metastore.store import compaction as module  # noqa: PLC0415

    merge, calls = module.compact_blocks, []

    def overtaken(manifest, *rest):
        calls.append(manifest.sequence)
        if len(calls) == 1:
            other.commit(TABLE, adding(late))
        return merge(manifest, *rest)

    monkeypatch.setattr(module, "compact_blocks", overtaken)
    assert len(module.compact_store(store).after.blocks) == 1
    assert calls == [2, 3]
    assert {path for path, _ in bounds(store, store.read())} == set("abc")


def found(store):
    return {row["object"]: (row["state"], row["problem"]) for row in metastore.verify(store.uri)}


def test_verification_of_what_is_whole(store):
    store.commit(TABLE, adding(block(store, ["a", "b"]), snapshots=[listed(store, "a")]))
    rows = metastore.verify(store.uri)
    assert sorted(row["kind"] for row in rows) == ["files", "summary", "table-files"]
    assert {row["state"] for row in rows} == {"ok"}


@pytest.mark.parametrize("damage", ["missing", "flipped", "cut", "empty"])
def test_verification_finds_damage(store, damage):
    made = block(store, ["a"])
    store.commit(TABLE, adding(made, block(store, ["b"])))
    name = made.summary[0].object.name
    path = folder(store) / "objects" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"flipped": bytes(data), "cut": bytes(data[:-1]), "empty": b""}[damage])
    state, problem = found(store)[name]
    assert state == ("missing" if damage == "missing" else "damaged")
    assert problem
    assert metastore.verify(store.uri)[0]["object"] == name
    assert sum(state != "ok" for state, _ in found(store).values()) == 1


def test_verification_says_what_it_cannot_check(store):
    parts = [block(store, [path], detailed=True) for path in "ab"]
    names = [store.get(part.files)["sketches_name"].to_pylist()[0] for part in parts]
    store.commit(TABLE, adding(*parts))
    assert {state for state, _ in found(store).values()} == {"ok"}
    (folder(store) / "objects" / parts[0].files.name).write_bytes(b"")
    told = found(store)
    assert told[parts[0].files.name][1].endswith("what it lists cannot be checked")
    assert (told[names[0]][0], told[names[1]][0]) == ("unknown", "ok")
    newest = max((folder(store) / "log").iterdir())
    (newest.parent / newest.name.replace("1.json", "2.json")).write_bytes(newest.read_bytes()[:-1])
    assert found(store)["log/" + newest.name.replace("1.json", "2.json")] == (
        "unknown",
        "it is no whole manifest: 1 is used",
    )


@pytest.mark.parametrize("kind", ["files", "summary", "sketches", "frequencies", "histograms", "table-files"])
def test_what_has_to_be_made_again(store, kind):
    whole, hurt = (block(store, [path], detailed=True) for path in "ab")
    earlier, newest = listed(store, "a"), listed(store, "a", "b")
    manifest = store.commit(TABLE, adding(whole, hurt, snapshots=[earlier, newest]))
    assert not find_damage(store, manifest)
    files = store.get(hurt.files).to_pylist()[0]
    named = {"files": hurt.files.name, "summary": hurt.summary[0].object.name, "table-files": earlier.table_files.name}
    stored = folder(store) / "objects" / named.get(kind, files.get(f"{kind}_name"))
    data = bytearray(stored.read_bytes())
    data[len(data) // 3] ^= 1
    stored.write_bytes(data)
    blocks = frozenset() if kind == "table-files" else frozenset({hurt.id})
    assert find_damage(store, manifest) == Damage(frozenset({stored.name}), blocks)


@pytest.mark.parametrize("damage", [None, "missing", "flipped"])
def test_objects_of_a_later_kind_are_unknown_and_not_damaged(store, damage):
    later = store.put("sketches", pa.Table.from_pylist([{"column": 0, "file": 0}], SCHEMAS["sketches"]), [1])
    renamed = replace(later, name=later.name.replace("sketches", "table-later-nodes"))
    path = folder(store) / "objects" / renamed.name
    path.write_bytes((folder(store) / "objects" / later.name).read_bytes())
    manifest = store.commit(TABLE, lambda old: replace(adding()(old), nodes=(renamed,)))
    if damage == "missing":
        path.unlink()
    elif damage == "flipped":
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    state, problem = found(store)[renamed.name]
    assert state == {None: "unknown", "missing": "missing", "flipped": "damaged"}[damage]
    assert problem
    assert find_damage(store, manifest) == (Damage(frozenset({renamed.name})) if damage else Damage())


def test_verification_finds_a_lost_detail(store):
    name = f"sketches-{uuid.UUID(int=1)}.parquet"
    store.commit(TABLE, adding(block(store, ["a"], sketches=name)))
    assert found(store)[name][0] == "missing"
    (folder(store) / "objects" / name).write_bytes(b"?")
    assert found(store)[name] == ("damaged", "its name is not that of its bytes")


ROW = {"column": 0, "file": 0, "rows": 1, "nulls": 0, "lo_long": 1, "hi_long": 2}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{**ROW, "lo_long": 3}], "an upper bound below the lower (1)"),
        ([{**ROW, "nulls": 2}], "more nulls and NaN than rows (1)"),
        ([{**ROW, "nulls": 1}], "bounds where there is no value (1)"),
        ([{**ROW, "rows": 7}], "another number of rows than the data file (1)"),
        ([{**ROW, "rows": -1}], "negative counts (1)"),
        ([{**ROW, "file": 9}], "a data file that the block does not have (1)"),
        ([ROW, ROW], "two rows for one column and data file (1)"),
        ([{**ROW, "column": 1}], "a column that the object does not hold (1)"),
        ([{**ROW, "lo_double": float("nan")}], "NaN as a bound (1)"),
        ([{**ROW, "lo_binary": b"b"}], "bounds of another encoding"),
        ([{**ROW, "distinct": 2, "distinct_error": 0.0}], "more exact distinct values than rows (1)"),
        (
            [{**ROW, "distinct": 1, "frequencies": "complete"}],
            "all values of a data file of which no object has any (1)",
        ),
    ],
)
def test_verification_finds_contradictions(store, rows, told):
    ref = store.put("summary", pa.Table.from_pylist(rows, SUMMARY), [len(rows)])
    made = block(store, ["a"])
    files = store.get(made.files).set_column(4, "rows", pa.array([1], pa.int64()))
    listed_ = store.put("files", files, [1])
    held = replace(made, files=listed_, summary=(replace(made.summary[0], object=ref, columns=(0,)),))
    store.commit(TABLE, adding(held))
    state, problem = found(store)[ref.name]
    assert state == "contradictory"
    assert told in problem


def test_there_is_nothing_to_look_after(tmp_path):
    for verb in (metastore.verify, metastore.gc, metastore.compact):
        with pytest.raises(NoStatistics):
            verb(str(tmp_path))
