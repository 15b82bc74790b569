"""Exact quantiles looked up in ranks that several objects hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

import metastore
from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.format.manifest import Manifest, RanksRef, TableIdentity
from metastore.format.object_schemas import TABLE_RANKS
from metastore.store import Store
from reading.stores import ID, NAME, UUID, block, ids, names, rows_of, snapshot


def part(store, before, *rows):
    listed = [dict(zip(("column", "value_long", "value_binary", "rank"), row, strict=True)) for row in rows]
    ref = store.put("table-ranks", rows_of(TABLE_RANKS, *listed), [len(rows)] if rows else [])
    columns = tuple(before)
    return RanksRef(ref, columns, tuple(before.values()))


@pytest.fixture
def location(tmp_path):
    folder = tmp_path / "t"
    store = Store.open(f"{folder}/_metastore", writable=True)
    table = TableIdentity("iceberg", UUID, str(folder), "db.t")
    made = block(store, 1, [("a", 10)], [ids(0, 1, 9), names(0, b"a", b"b")])
    summary = [{**ids(0, 1, 9), "files": 1}, {**names(0, b"a", b"b"), "files": 1}]
    entry = snapshot(store, 1, [("a", 100, 10, {})], columns=(ID, NAME), summary=summary)
    parts = (
        part(store, {0: 0}, (0, 1, None, 1), (0, 3, None, 4)),
        part(store, {0: 4, 1: 0}, (0, 9, None, 10), (1, None, b"a", 7), (1, None, b"b", 8)),
    )
    store.commit(table, lambda _: Manifest(table=table, blocks=(made,), snapshots=(replace(entry, ranks=parts),)))
    return str(folder)


def test_each_rank_is_found_in_its_part(location):
    rows = metastore.open(location).quantiles("id", [0, 0.1, 0.11, 0.4, 0.41, 1])
    assert [row["value"] for row in rows] == ["1", "1", "3", "3", "9", "9"]
    assert all(row["exact"] for row in rows)
    assert [row["value"] for row in metastore.open(location).quantiles("who.`na.me`", [0.875, 0.876])] == ["a", "b"]


def test_probabilities_are_checked(location):
    with pytest.raises(InvalidArgument):
        metastore.open(location).quantiles("id", [0.5, 1.5])


def test_the_view_has_all_values_in_order(location):
    rows = metastore.open(location).view("ranks").to_pylist()
    assert [(row["column_name"], row["value_long"] or row["value_binary"], row["rank"]) for row in rows] == [
        ("id", 1, 1), ("id", 3, 4), ("id", 9, 10), ("who.`na.me`", b"a", 7), ("who.`na.me`", b"b", 8)
    ]  # fmt: skip
    assert metastore.open(location).view("ranks", "id").num_rows == 3
    with pytest.raises(ColumnNotFound):
        metastore.open(location).view("ranks", "tags")
