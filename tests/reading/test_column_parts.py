"""Readers fetch only the needed parts of large objects, and they say the same as the whole."""

import numpy as np

from metastore.format.data_files import DataFile
from metastore.format.manifest import Manifest
from metastore.reading import snapshot_files
from metastore.reading.evidence import gather_evidence
from metastore.reading.snapshot_files import match_data_files, read_statistics
from metastore.store import Store
from store.small_blocks import TABLE, block, columns

LEAVES = columns(40)  # three row groups
FILES = [DataFile(path=f"f{i}", size=1, rows=1, format="parquet") for i in range(5)]


def answers(store, manifest):
    stored = match_data_files(store, manifest, FILES)
    rows = [read_statistics(store, stored, LEAVES, chosen) for chosen in (LEAVES[20:21], LEAVES[15:17], LEAVES)]
    evidence = gather_evidence(store, stored, LEAVES[20:21])
    return rows, [(facts.analyzed.tolist(), facts.lo.tolist(), facts.rows.tolist()) for facts in evidence]


def test_parts_of_objects_say_the_same(tmp_path, monkeypatch):
    store = Store.open(str(tmp_path / "_metastore"), writable=True)
    first, second = block(store, ["f0", "f1", "f2"], 1, LEAVES), block(store, ["f2", "f3"], 2, LEAVES)
    manifest = Manifest(table=TABLE, blocks=(first, second))
    expected = answers(store, manifest)
    monkeypatch.setattr(snapshot_files, "_WHOLE_BYTES", 0)
    assert answers(store, manifest) == expected
    assert expected[1] == [([True] * 4 + [False], [1, 1, 2, 2, 0], [1] * 5)]


def test_columns_of_a_large_object_are_read_by_their_row_groups(tmp_path, monkeypatch):
    store = Store.open(str(tmp_path / "_metastore"), writable=True)
    [ref] = block(store, ["f0", "f1"], 1, LEAVES).summary
    monkeypatch.setattr(snapshot_files, "_WHOLE_BYTES", 0)
    rows = snapshot_files.read_column_rows(store, ref, [20], ["column", "lo_long"])
    assert rows.column_names == ["column", "lo_long"]
    assert np.unique(rows["column"].to_numpy()).tolist() == list(range(16, 32))
