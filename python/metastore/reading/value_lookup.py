"""Looks up the data files that hold a value in a value index: table-level lists with the files of each value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.value_postings import (
    POSTING_COLUMNS,
    STARTS_KEY,
    choose_part,
    decode_hash_starts,
    hash_column_values,
    read_postings,
)
from metastore.reading.candidates import CandidateFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from metastore.format.hashing import UInt64Array
    from metastore.format.manifest import Snapshot, SummaryRef
    from metastore.format.object_part import ObjectPart
    from metastore.format.table_column import Column
    from metastore.store import Store


_GREATEST_HASH = np.uint64((1 << 64) - 1)
_NO_FILES = np.empty((2, 0), np.int64)


def look_up_value(
    store: Store, snapshot: Snapshot, column: Column, value: Any, distinct_count: int | None, value_count: int | None
) -> CandidateFiles | None:
    """Find the data files that hold a value, and no others.

    Args:
        store: The store.
        snapshot: The analyzed snapshot.
        column: The column.
        value: The value as the format stores it.
        distinct_count: The number of distinct values of the column.
        value_count: The number of values of the column, without nulls.

    Returns:
        The files, or None if the column has no value index, or one of another number of values.
    """
    ordinal = _find_indexed_column(snapshot, column)
    if ordinal is None or value is None:
        return None
    hashes = None
    if snapshot.placed is not None:
        hashes = _hash_value(value, column)
        if _count_indexed_rows(store.open_part(snapshot.placed), ordinal) != value_count:
            return None
    search = _ValueSearch(store, column, ordinal, value, hashes)
    listed_values = 0
    parts = [_NO_FILES]
    for hits in search.read_lists(snapshot.frequencies):
        listed_values += hits.listed_values
        parts.append(hits.files)
    if snapshot.placed is None and listed_values != distinct_count:
        return None
    files, frequencies = np.concatenate(parts, axis=1)
    return CandidateFiles(files, frequencies)


def _find_indexed_column(snapshot: Snapshot, column: Column) -> int | None:
    """Return the ordinal of a column if it has a value index, else None."""
    ordinal = snapshot.find_ordinal(column)
    return ordinal if ordinal in snapshot.distribution else None


def _hash_value(value: Any, column: Column) -> UInt64Array:
    return hash_column_values(pa.table({f"value_{column.encoding}": _to_array(value, column)}), column)


def _count_indexed_rows(part: ObjectPart, ordinal: int) -> int:
    """Count the rows of a column in its value index."""
    rows = part.read_rows(part.groups_of_column(ordinal), ["column", "rows"])
    counts = rows["rows"].filter(pc.equal(rows["column"], ordinal))
    return int(pc.sum(counts).as_py() or 0)


@dataclass(frozen=True)
class _Hits:
    """Result of a search in one row group.

    Attributes:
        listed_values: The number of the column's values in the row group.
        files: The files that hold the searched value, and its frequencies in them.
    """

    listed_values: int
    files: np.ndarray


@dataclass(frozen=True)
class _ValueSearch:
    """A search for one value of a column.

    Attributes:
        ordinal: The column's number.
        value: The value as the format stores it.
        hashes: The value's hash, if lists are cut by hashes.
    """

    store: Store
    column: Column
    ordinal: int
    value: Any
    hashes: UInt64Array | None

    def read_lists(self, lists: Iterable[SummaryRef]) -> Iterator[_Hits]:
        """Search all row groups that may have the value."""
        for ref in lists:
            if self._may_hold(ref):
                part = self.store.open_part(ref.object)
                for group in self._choose_groups(part, ref.object.name):
                    yield self._search_group(part, group)

    def _may_hold(self, ref: SummaryRef) -> bool:
        if self.ordinal not in ref.columns:
            return False
        if self.hashes is None or ref.part is None:
            return True
        number, parts = ref.part
        return bool(choose_part(self.hashes, parts)[0] == number)

    def _choose_groups(self, part: ObjectPart, name: str) -> list[int]:
        groups = part.groups_of_column(self.ordinal)
        text = part.footer_text(STARTS_KEY)
        if self.hashes is None or text is None:
            return groups
        try:
            starts = decode_hash_starts(text)[groups]
        except (ValueError, IndexError) as e:
            raise DamagedObject(name, f"its footer does not say which values row groups have ({e})") from e
        ends = np.append(starts[1:], _GREATEST_HASH)
        chosen = (starts <= self.hashes[0]) & (self.hashes[0] <= ends)
        return [groups[position] for position in np.flatnonzero(chosen)]

    def _search_group(self, part: ObjectPart, group: int) -> _Hits:
        name = f"value_{self.column.encoding}"
        rows = part.read_rows([group], ["column", name])
        is_column = pc.equal(rows["column"], self.ordinal)
        is_hit = pc.and_(is_column, self._compare(rows[name]))
        hits = np.flatnonzero(np.asarray(is_hit))
        listed_values = int(pc.sum(is_column).as_py() or 0)
        if not len(hits):
            return _Hits(listed_values, _NO_FILES)
        postings = part.read_rows([group], POSTING_COLUMNS)
        _, files, frequencies = read_postings(postings.take(pa.array(hits)))
        return _Hits(listed_values, np.array([files, frequencies])[:, frequencies > 0])

    def _compare(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return whether each value is the searched one; NaN is equal to NaN."""
        if isinstance(self.value, float) and np.isnan(self.value):
            is_equal = pc.is_nan(values)
        else:
            is_equal = pc.equal(values, _to_array(self.value, self.column)[0])
        return is_equal.fill_null(False)  # noqa: FBT003 - pyarrow's


def _to_array(value: Any, column: Column) -> pa.Array:
    return pa.array([value], ENCODED_TYPES[str(column.encoding)])
