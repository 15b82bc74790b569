"""The files added after a snapshot, compared with the table at it, without Spark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import metastore
from metastore.format.manifest import Manifest
from metastore.reading.added_files import UnknownAddedFilesError, find_added_files
from table_level import columns

ROWS, BATCH = 1_900, 100


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    """Nineteen files of usual rows, and one of 5 % of all rows that is shifted; and what all of them are."""
    random = np.random.default_rng(4)
    usual = [pa.table({"x": random.normal(0, 1, BATCH), "i": random.integers(0, 50, BATCH)}) for _ in range(19)]
    shifted = pa.table({"x": random.normal(1.6, 1, BATCH), "i": random.integers(0, 50, BATCH)})
    folder = tmp_path_factory.mktemp("night")
    opened = columns.analyze(folder, [*usual, shifted], {"x": "double", "i": "bigint"})
    return opened, usual, shifted


def _list_snapshots(opened, *lists):
    """The table's snapshot with other lists of files: rows of `table-files`, by their paths."""
    store, newest = opened._table.store, opened._table.snapshots[-1]
    rows = store.get(newest.table_files)
    made = []
    writable = type(store).open(store.uri, writable=True)
    for number, paths in enumerate(lists):
        chosen = pa.Table.from_pylist(
            [{**row, **paths[row["path"]]} for row in rows.to_pylist() if row["path"] in paths], rows.schema
        )
        made.append(replace(newest, id=str(number), table_files=writable.put("table-files", chosen, [chosen.num_rows])))
    return store, made


def _find(opened, *lists):
    store, made = _list_snapshots(opened, *({path: {} for path in paths} for paths in lists))
    return [key.path for key in find_added_files(store, made)]


def test_which_files_were_added(night):
    opened, _, _ = night
    paths = sorted(row["path"] for row in opened.files())
    a, b, c, d, e = paths[:5]
    assert _find(opened, [a, b], [a, b]) == []
    assert _find(opened, [a, b], [a, b, c]) == [c]
    assert _find(opened, [a, b], [a, b, c], [a, b, c, d]) == [c, d]
    assert _find(opened, [a], [b]) == [], "rewritten: as many rows"
    assert _find(opened, [a], [a, c], [b, c]) == [c], "what was there was rewritten"
    assert _find(opened, [a], [a, c], [a, d]) == [d], "what was added was rewritten"
    for steps in ([[a, b], [c]], [[a], [b, c]], [[a], [a, c], [d, e]]):
        with pytest.raises(UnknownAddedFilesError):
            _find(opened, *steps)


def test_a_bad_night_shows_undiluted(tmp_path):
    random = np.random.default_rng(4)
    usual = [pa.table({"x": random.normal(0, 1, BATCH)}) for _ in range(19)]
    shifted = pa.table({"x": random.normal(1.6, 1, BATCH)})
    opened = _analyze_two_snapshots(tmp_path, usual, shifted)
    diluted = {(row["column_name"], row["measure"]): row for row in opened.diff("0", "1", distributions=True)}
    assert diluted["x", "psi"]["change"] < 0.1
    differences = opened.diff("0", "1", distributions=True, added=True)
    by_measure = {(row["column_name"], row["measure"]): row for row in differences}
    assert by_measure["x", "psi"]["change"] > 1
    assert by_measure[None, "count"]["before"] == "1900"
    assert by_measure[None, "count"]["after"] == "100"
    values = shifted["x"].to_numpy()
    assert float(by_measure["x", "avg"]["after"]) == pytest.approx(values.mean())
    assert float(by_measure["x", "std"]["after"]) == pytest.approx(values.std(ddof=1))
    assert [row["column_name"] for row in differences][:2] == [None, None]
    assert opened.diff("1", "1", added=True)[0]["after"] == "0"


def _analyze_two_snapshots(folder, usual, shifted):
    """One store: snapshot 0 is of the usual files, snapshot 1 of all."""
    opened = columns.analyze(folder, [*usual, shifted], {"x": "double"})
    renamed = replace(opened._table.snapshots[-1], id="1")
    first = columns.analyze(folder / "first", usual, {"x": "double"})
    store, former = type(opened._table.store).open(str(folder), writable=True), first._table.snapshots[-1]
    paths = {row["path"].rpartition("/")[2]: row["path"] for row in opened.files()}
    rows = first._table.store.get(former.table_files)
    moved = pa.Table.from_pylist(
        [{**row, "path": paths[row["path"].rpartition("/")[2]], "block": None} for row in rows.to_pylist()], rows.schema
    )
    refs = {}
    for name, kind in (("summary", "table-summary"), ("histograms", "table-histograms")):
        stored = first._table.store.get(getattr(former, name))
        refs[name] = store.put(kind, stored, [stored.num_rows])
    before = replace(
        former,
        id="0",
        table_files=store.put("table-files", moved, [moved.num_rows]),
        sketches=None,
        frequencies=(),
        **refs,
    )
    manifest = opened._table.manifest
    store.commit(
        manifest.table, lambda _: Manifest(table=manifest.table, blocks=manifest.blocks, snapshots=(before, renamed))
    )
    return metastore.open(str(folder))
