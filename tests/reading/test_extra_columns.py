"""User-defined statistics as a location shows them."""

from __future__ import annotations

import pyarrow as pa
from typer.testing import CliRunner

import metastore
from metastore.cli.app import app
from metastore.format.extra_value import encode_value
from metastore.format.manifest import Manifest, TableIdentity
from metastore.reading import extra_columns
from metastore.store import Store
from reading.stores import ID, NAME, UUID, block, ids, names, snapshot


def stored(tmp_path, *of_columns):
    folder = tmp_path / "t"
    store = Store.open(f"{folder}/_metastore", writable=True)
    table = TableIdentity("iceberg", UUID, str(folder), "db.t")
    made = block(store, 1, [("a", 10)], [ids(0, 1, 9), names(0, b"a", b"b")])
    rows = [
        {**row, "files": 1, "extra": [(name, data) for name, data in extra.items()]}
        for row, extra in zip((ids(0, 1, 9), names(0, b"a", b"b")), of_columns, strict=True)
    ]
    entry = snapshot(store, 1, [("a", 100, 10, {})], columns=(ID, NAME), summary=rows)
    store.commit(table, lambda _: Manifest(table=table, blocks=(made,), snapshots=(entry,)))
    return str(folder)


def test_each_is_a_column_of_its_common_type(tmp_path):
    location = stored(
        tmp_path,
        {"zeros": encode_value(3), "mix": encode_value(1), "mode": encode_value(7), "none": encode_value(None)},
        {"zeros": encode_value(4), "mix": encode_value(0.5), "mode": encode_value("a")},
    )
    summary = metastore.open(location).summary()
    columns = {name: [row[name] for row in summary] for name in ("zeros", "mix", "mode", "none")}
    assert columns == {"zeros": [3, 4], "mix": [1.0, 0.5], "mode": ["7", "a"], "none": [None, None]}
    assert summary.to_arrow().schema.field("mix").type == pa.float64()
    view = metastore.open(location).view("summary")
    assert view.schema.field("zeros").type == pa.int64()
    assert view.column("user_defined")[0].as_py()[:1] == [("zeros", "3")]
    printed = CliRunner().invoke(app, ["summary", location])
    assert "zeros" in printed.stdout.splitlines()[0] or "zeros" in printed.stdout


def test_a_damaged_one_is_passed_over(tmp_path):
    location = stored(tmp_path, {"zeros": b"\0\1\2", "good": encode_value(1)}, {})
    row = metastore.open(location).summary().column("id")
    assert row["good"] == 1
    assert "zeros" not in row


def test_a_name_never_hides_a_column(tmp_path):
    location = stored(tmp_path, {"min": encode_value("forged")}, {})
    assert metastore.open(location).summary().column("id")["min"] == 1


def test_numbers_that_json_does_not_have():
    values = {"a": pa.scalar(float("nan")), "b": pa.scalar([float("inf")]), "c": pa.scalar("NaN!")}
    decoded = extra_columns.from_json_texts(extra_columns.to_json_texts(values))
    assert decoded["a"] != decoded["a"]
    assert decoded["c"] == "NaN!"
    assert extra_columns.from_json_texts({"x": '"NaN"'})["x"] != extra_columns.from_json_texts({"x": '"NaN"'})["x"]
