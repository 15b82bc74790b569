"""Data files that may hold given values: by counts and bounds, then by value lists and bloom filters.

A file is only left out if this is proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.reading.column_candidates import ColumnCandidates, read_object_rows, read_sound_rows
from metastore.reading.evidence import UNKNOWN, ColumnEvidence, gather_evidence
from metastore.reading.lookup_keys import KeyBatch, KeyColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from metastore.format.table_column import Column
    from metastore.reading.column_candidates import OpenObject
    from metastore.reading.lookup_keys import Places
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store


SLICE = "slice"
"""The column that names a slice of the data files."""
_KEYS_AT_ONCE = 1 << 18
"""The number of keys that are collected for one search: every search visits each file."""
_BATCH = 1 << 14
"""The number of keys that are compared with a file at once."""


@dataclass(frozen=True)
class CandidateFiles:
    """The data files that may hold a value.

    Attributes:
        files: Their numbers in the snapshot's list.
        frequencies: The number of rows with the value in each file, deleted rows included; -1 if unknown.
    """

    files: Places
    frequencies: Places


def find_candidate_files(store: Store, stored: SnapshotFiles, column: Column, value: Any) -> CandidateFiles:
    """Find the data files that may hold a value; files without statistics may."""
    (evidence,) = gather_evidence(store, stored, [column])
    key = KeyColumn.from_stored([value], column)
    if key.plain[0]:
        read_rows = partial(read_object_rows, store.open_part)
        counts = ColumnCandidates(evidence, read_rows, with_frequencies=True).count(key)
    elif key.null[0]:
        counts = np.where(evidence.analyzed, evidence.nulls, UNKNOWN)
    else:
        counts = np.where(evidence.analyzed, evidence.nans, UNKNOWN)
    files = np.flatnonzero(counts)
    return CandidateFiles(files, counts[files])


class CandidateSearch:
    """A search for the data files that may hold any of some keys.

    Attributes:
        candidates: Whether each file may.
    """

    def __init__(self, evidence: Sequence[ColumnEvidence], open_object: OpenObject) -> None:
        read_rows = partial(read_sound_rows, open_object)
        self._columns = [ColumnCandidates(column_evidence, read_rows) for column_evidence in evidence]
        self._key_columns = [column_evidence.column for column_evidence in evidence]
        self.candidates = np.zeros(len(evidence[0].analyzed), bool)

    def add_crowded_files(self, keys: KeyBatch) -> None:
        """Add files whose bounds contain so many keys that their list or filter would hardly exclude them."""
        if len(self._columns) > 1:  # a key of several columns may be excluded by another column
            return
        (column,) = self._columns
        within = column.find_keys_within_bounds(keys)
        self.candidates |= within.counts > column.most_keys

    def add_table(self, keys: pa.Table) -> None:
        """Search for the keys in a table, which has a column for each column of the search."""
        self.add(KeyBatch.from_table(keys, self._key_columns))

    def add(self, keys: KeyBatch) -> None:
        """Search for more keys in the files that are not candidates yet."""
        self.add_crowded_files(keys)
        within = self._columns[0].find_keys_within_bounds(keys)
        unordered = np.arange(keys.ordered, len(keys))
        for file in np.flatnonzero(~self.candidates).tolist():
            batches = _cut_batches(within.starts[file], within.ends[file], unordered)
            self.candidates[file] = any(map(partial(self._may_hold, file, keys), batches))

    def _may_hold(self, file: int, keys: KeyBatch, positions: Places) -> bool:
        """Return whether a file may hold any of the keys at some positions."""
        for column, part in zip(self._columns, keys.columns, strict=True):
            positions = positions[column.select_by_bounds(file, part, positions)]
        for column, part in zip(self._columns, keys.columns, strict=True):
            if 0 < len(positions) <= column.most_keys[file]:
                positions = positions[column.select_by_values(file, part, positions)]
        return len(positions) > 0


def _cut_batches(start: int, end: int, unordered: Places) -> Iterator[Places]:
    """Cut into batches the positions of the ordered keys from start to end, then those of the unordered keys."""
    for first in range(start, end, _BATCH):
        yield np.arange(first, min(first + _BATCH, end))
    for first in range(0, len(unordered), _BATCH):
        yield unordered[first : first + _BATCH]


def search_slices(
    open_object: OpenObject, slices: Sequence[Sequence[ColumnEvidence]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Search for keys in slices of the data files; this runs in a task, which has only numpy and pyarrow."""
    searches: dict[int, CandidateSearch] = {}
    for keys in _combine_batches(batches):
        for number in keys[SLICE].unique().to_pylist():
            if number not in searches:
                searches[number] = CandidateSearch(slices[number], open_object)
            slice_keys = keys.filter(pc.equal(keys[SLICE], number)).drop_columns([SLICE])
            searches[number].add_table(slice_keys)
    masks = [np.packbits(search.candidates).tobytes() for search in searches.values()]
    numbers = pa.array(list(searches), pa.int64())
    yield pa.record_batch([numbers, pa.array(masks, pa.binary())], [SLICE, "found"])


def _combine_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Combine batches into fewer and larger ones."""
    collected: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        collected.append(batch)
        rows += batch.num_rows
        if rows >= _KEYS_AT_ONCE:
            yield pa.Table.from_batches(collected)
            collected = []
            rows = 0
    if collected:
        yield pa.Table.from_batches(collected)
