"""Statistics that contradict themselves, in sound objects: who looks for a value believes none of them."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import metastore
from metastore.format.data_files import DataFile
from metastore.format.manifest import Manifest, TableIdentity
from metastore.format.table_column import Column
from metastore.reading.candidates import CandidateSearch
from metastore.reading.evidence import gather_evidence
from metastore.reading.lookup_keys import KeyBatch
from metastore.reading.snapshot_files import match_data_files
from metastore.store import Store
from reading.stores import ID, UUID, block, ids, snapshot

X = Column(key="1", path=("id",), type="double", encoding="double")
DOUBLES = {"lo_long": None, "hi_long": None, "lo_double": 0.0, "hi_double": 9.0}
WRONG = {
    "inverted": (ID, ids(1, 9, 0)),
    "a lower NaN": (X, ids(1, None, None, **{**DOUBLES, "lo_double": math.nan})),
    "an upper NaN": (X, ids(1, None, None, **{**DOUBLES, "hi_double": math.nan})),
    "more nulls than rows": (ID, ids(1, 100, 101, nulls=11)),
    "bounds of no value": (ID, ids(1, 0, 9, nulls=10)),
    "negative rows": (ID, ids(1, 100, 101, rows=-10)),
    "a file before the first": (ID, ids(-1, 100, 101)),
    "a file behind the last": (ID, ids(2, 100, 101)),
}


@pytest.fixture(params=WRONG)
def statistics(request, tmp_path):
    """Two data files: what is known of the first says that 7 is not there, what the second has is wrong."""
    column, row = WRONG[request.param]
    sound = ids(0, 50, 60) if column == ID else ids(0, None, None, **{**DOUBLES, "lo_double": 50.0, "hi_double": 60.0})
    store = Store.open(str(tmp_path / "_metastore"), writable=True)
    rows = sorted([sound, row], key=lambda file_row: file_row["file"])
    made = block(store, 1, [("a", 10), ("b", 10)], rows, (column,))
    entry = snapshot(store, 1, [("a", 100, 10, {}), ("b", 101, 10, {})], (column,))
    identity = TableIdentity("iceberg", UUID, str(tmp_path), "cat.db.t")
    store.commit(identity, lambda _: Manifest(table=identity, blocks=(made,), snapshots=(entry,)))
    return store, tmp_path, column


def test_a_value_may_be_where_statistics_are_wrong(statistics):
    store, folder, column = statistics
    value = 7 if column == ID else 7.0
    assert [row["path"] for row in metastore.open(str(folder)).locate("id", value)] == ["b"]
    files = [DataFile(path=path, size=size, rows=10, format="parquet") for path, size in (("a", 100), ("b", 101))]
    search = CandidateSearch(
        gather_evidence(store, match_data_files(store, store.read(), files), [column]), store.open_part
    )
    search.add(
        KeyBatch.from_table(pa.table({"k": pa.array([value], pa.int32() if column == ID else pa.float64())}), [column])
    )
    assert search.candidates.tolist() == [False, True]
