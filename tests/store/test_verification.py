"""`verify`: what it finds, and what has to be made again."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pyarrow as pa
import pytest

import metastore
from metastore.format.object_schemas import SCHEMAS, SUMMARY
from metastore.store.verification import Damage, find_damage
from store.small_blocks import TABLE, adding, block, folder, listed

ROW = {"column": 0, "file": 0, "rows": 1, "nulls": 0, "lo_long": 1, "hi_long": 2}


def verify_objects(store):
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
    state, problem = verify_objects(store)[name]
    assert state == ("missing" if damage == "missing" else "damaged")
    assert problem
    assert metastore.verify(store.uri)[0]["object"] == name
    assert sum(state != "ok" for state, _ in verify_objects(store).values()) == 1


def test_verification_says_what_it_cannot_check(store):
    parts = [block(store, [path], detailed=True) for path in "ab"]
    names = [store.get(part.files)["sketches_name"].to_pylist()[0] for part in parts]
    store.commit(TABLE, adding(*parts))
    assert {state for state, _ in verify_objects(store).values()} == {"ok"}
    (folder(store) / "objects" / parts[0].files.name).write_bytes(b"")
    states = verify_objects(store)
    assert states[parts[0].files.name][1].endswith("what it lists cannot be checked")
    assert (states[names[0]][0], states[names[1]][0]) == ("unknown", "ok")
    newest = max((folder(store) / "log").iterdir())
    (newest.parent / newest.name.replace("1.json", "2.json")).write_bytes(newest.read_bytes()[:-1])
    assert verify_objects(store)["log/" + newest.name.replace("1.json", "2.json")] == (
        "unknown",
        "it is not a whole manifest: 1 is used",
    )


@pytest.mark.parametrize("kind", ["files", "summary", "sketches", "frequencies", "histograms", "table-files"])
def test_what_has_to_be_made_again(store, kind):
    intact, hurt = (block(store, [path], detailed=True) for path in "ab")
    earlier, newest = listed(store, "a"), listed(store, "a", "b")
    manifest = store.commit(TABLE, adding(intact, hurt, snapshots=[earlier, newest]))
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
    state, problem = verify_objects(store)[renamed.name]
    assert state == {None: "unknown", "missing": "missing", "flipped": "damaged"}[damage]
    assert problem
    assert find_damage(store, manifest) == (Damage(frozenset({renamed.name})) if damage else Damage())


def test_verification_finds_a_lost_detail(store):
    name = f"sketches-{uuid.UUID(int=1)}.parquet"
    store.commit(TABLE, adding(block(store, ["a"], sketches=name)))
    assert verify_objects(store)[name][0] == "missing"
    (folder(store) / "objects" / name).write_bytes(b"?")
    assert verify_objects(store)[name] == ("damaged", "its name is not that of its bytes")


@pytest.mark.parametrize(
    ("rows", "expected"),
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
def test_verification_finds_contradictions(store, rows, expected):
    ref = store.put("summary", pa.Table.from_pylist(rows, SUMMARY), [len(rows)])
    made = block(store, ["a"])
    files = store.get(made.files).set_column(4, "rows", pa.array([1], pa.int64()))
    listed_ = store.put("files", files, [1])
    replaced = replace(made, files=listed_, summary=(replace(made.summary[0], object=ref, columns=(0,)),))
    store.commit(TABLE, adding(replaced))
    state, problem = verify_objects(store)[ref.name]
    assert state == "contradictory"
    assert expected in problem
