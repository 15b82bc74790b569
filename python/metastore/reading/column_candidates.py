"""Comparison of keys with the statistics of one column in each data file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject, StoreNotReadable
from metastore.format.bloom_filter import bloom_hashes, error_rate, may_hold
from metastore.reading.evidence import UNKNOWN, ColumnEvidence, DetailObjects
from metastore.reading.lookup_keys import KeyBatch, KeyColumn
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.object_part import ObjectPart
    from metastore.format.objects import ObjectRef
    from metastore.reading.lookup_keys import Mask, Places

    OpenObject = Callable[[ObjectRef], ObjectPart]
    ReadRows = Callable[[ObjectRef, int, Sequence[str]], pa.Table]
    """Reads fields of the rows of a column in an object; no rows if the object cannot be read."""


_LOG = get_logger(__name__)
_MOST_FALSE_POSITIVES = 1
"""A filter is not read for so many keys that more false positives are expected: it would hardly exclude a file."""
_ROWS_PER_VALUE = 8
"""A list is short if the file has at least this many rows for each value of it; reading a longer list does not pay."""


@dataclass(frozen=True)
class KeysWithinBounds:
    """The ordered keys within the bounds of each file: from `starts` to before `ends`."""

    starts: Places
    ends: Places

    @property
    def counts(self) -> Places:
        """The number of keys within the bounds of each file, 0 or less for none."""
        return self.ends - self.starts


class ColumnCandidates:
    """Decides by the statistics of one column which keys data files may hold.

    An object with the lists or filters of several files is read when one of them is needed.

    Attributes:
        most_keys: For each file, the greatest number of keys that are compared with its list or filter.
    """

    def __init__(self, evidence: ColumnEvidence, read_rows: ReadRows, *, with_frequencies: bool = False) -> None:
        self._evidence = evidence
        self._read_rows = read_rows
        self._with_frequencies = with_frequencies
        self._lists: dict[int, _ValueList] = {}
        self._filters: dict[int, bytes] = {}
        self._objects_read: set[tuple[str, int]] = set()
        self.most_keys = _limit_keys(evidence)

    def find_keys_within_bounds(self, keys: KeyBatch) -> KeysWithinBounds:
        """Find for each file the ordered keys within its bounds."""
        evidence = self._evidence
        ordered = keys.columns[0].values[: keys.ordered]
        first = np.searchsorted(ordered, evidence.lo, "left")
        behind_last = np.searchsorted(ordered, evidence.hi, "right")
        starts = np.where(evidence.analyzed & evidence.has_lo, first, 0)
        ends = np.where(evidence.analyzed & evidence.has_hi, behind_last, keys.ordered)
        ends = np.where(evidence.analyzed & evidence.empty, starts, ends)
        return KeysWithinBounds(starts, ends)

    def select_by_bounds(self, file: int, keys: KeyColumn, positions: Places) -> Mask:
        """Select the keys that counts and bounds of a file do not exclude."""
        evidence = self._evidence
        if not evidence.analyzed[file]:
            return np.ones(len(positions), bool)
        values = keys.values[positions]
        within = np.full(len(positions), not evidence.empty[file])
        if evidence.has_lo[file]:
            within &= values >= evidence.lo[file]
        if evidence.has_hi[file]:
            within &= values <= evidence.hi[file]
        may_have_nulls = evidence.nulls[file] != 0
        may_have_nans = evidence.nans[file] != 0
        counted = np.where(keys.null[positions], may_have_nulls, may_have_nans)
        return np.where(keys.plain[positions], within, counted)

    def select_by_values(self, file: int, keys: KeyColumn, positions: Places) -> Mask:
        """Select the keys that a file's complete list of values, or else its filter, does not exclude."""
        selected = np.ones(len(positions), bool)
        plain = keys.plain[positions]
        if not self._evidence.analyzed[file] or not plain.any():
            return selected
        hashes = keys.hashes[positions[plain]]
        values = self._find_complete_list(file)
        if values is None:
            selected[plain] = self._filter_hashes(file, hashes)
        else:
            selected[plain] = values.has_hashes(hashes)
        return selected

    def list_values(self, file: int) -> pa.Array | None:
        """Return the stored values of a file without null and NaN, or None if unknown; needs `with_frequencies`."""
        if not self._evidence.analyzed[file]:
            return None
        values = self._find_complete_list(file)
        if values is None or values.rows is None:
            return None
        return values.rows["value"].combine_chunks()

    def may_hold(self, file: int, values: pa.Array) -> bool:
        """Return whether a file's filter allows any of some stored values."""
        if not self._evidence.analyzed[file]:
            return True
        allowed = self._filter_hashes(file, bloom_hashes(values))
        return bool(allowed.any())

    def count(self, key: KeyColumn) -> Places:
        """Count the rows of each file with a single plain value: 0 if it has none, -1 if unknown."""
        is_within = self.find_keys_within_bounds(KeyBatch((key,), 1)).counts > 0
        counts = np.where(is_within, UNKNOWN, 0)
        for file in np.flatnonzero(is_within & self._evidence.analyzed).tolist():
            values = self._read_list(file)
            if values is not None:
                counts[file] = values.count(key)
            if counts[file] == UNKNOWN and not self._filter_hashes(file, key.hashes)[0]:
                counts[file] = 0
        return counts

    def _filter_hashes(self, file: int, hashes: UInt64Array) -> Mask:
        """Select the hashes that the filter of a file allows."""
        bloom = self._read_filter(file)
        if bloom is None:
            return np.ones(len(hashes), bool)
        return may_hold(bloom, hashes)

    def _read_filter(self, file: int) -> bytes | None:
        details = None
        if file not in self._filters:
            details = self._read_details(self._evidence.filters, file, ["bloom"])
        if details is not None:
            self._add_filters(details)
        return self._filters.get(file)

    def _add_filters(self, details: _ObjectRows) -> None:
        for row in details.rows.to_pylist():
            file = details.files.get(row["file"])
            if file is not None and row["bloom"]:
                self._filters[file] = row["bloom"]

    def _find_complete_list(self, file: int) -> _ValueList | None:
        if not self._evidence.complete[file]:
            return None
        values = self._read_list(file)
        if values is None or not values.is_complete:
            return None
        return values

    def _read_list(self, file: int) -> _ValueList | None:
        value = f"value_{self._evidence.column.encoding}"
        names = [value, "frequency"] if self._with_frequencies else [value]
        details = None
        if file not in self._lists:
            details = self._read_details(self._evidence.lists, file, names)
        if details is not None:
            self._add_lists(details.rows.rename_columns({value: "value"}), details.files)
        return self._lists.get(file)

    def _read_details(self, details: DetailObjects, file: int, names: list[str]) -> _ObjectRows | None:
        """Read the column's rows in the object of a data file; None if there is no object, or if it was read before."""
        number = details.object_index[file]
        column = int(details.column[file])
        if number < 0:
            return None
        ref = details.objects[number]
        if (ref.name, column) in self._objects_read:
            return None
        self._objects_read.add((ref.name, column))
        rows = self._read_rows(ref, column, names)
        in_object = np.flatnonzero((details.object_index == number) & (details.column == column))
        files = dict(zip(details.file[in_object].tolist(), in_object.tolist(), strict=True))
        return _ObjectRows(rows.filter(pc.is_valid(rows[names[0]])), files)

    def _add_lists(self, rows: pa.Table, files: dict[int, int]) -> None:
        numbers = rows["file"].to_numpy()
        hashes = bloom_hashes(rows["value"].combine_chunks())
        order = np.lexsort((hashes, numbers))
        numbers = numbers[order]
        hashes = hashes[order]
        ordered_rows = rows.take(pa.array(order)) if self._with_frequencies else None
        for number, file in files.items():
            start, end = np.searchsorted(numbers, [number, number + 1])
            count = end - start
            # A list with fewer values than were counted has lost some, and proves nothing.
            has_all = count == self._evidence.distinct[file]
            is_complete = bool(self._evidence.complete[file] and has_all)
            list_rows = None if ordered_rows is None else ordered_rows.slice(start, count)
            self._lists[file] = _ValueList(hashes[start:end], is_complete, list_rows)


@dataclass(frozen=True)
class _ObjectRows:
    """Rows of a column in an object.

    Attributes:
        files: The data file by its number in the object.
    """

    rows: pa.Table
    files: dict[int, int]


@dataclass(frozen=True)
class _ValueList:
    """Values of a data file in the order of their hashes.

    Attributes:
        is_complete: Whether no value is missing.
        rows: `value` and `frequency`, or None if frequencies are not read.
    """

    hashes: UInt64Array
    is_complete: bool
    rows: pa.Table | None

    def has_hashes(self, hashes: UInt64Array) -> Mask:
        """Return whether each hash is the hash of a listed value."""
        if not len(self.hashes):
            return np.zeros(len(hashes), bool)
        positions = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        is_hit: Mask = self.hashes[positions] == hashes
        return is_hit

    def count(self, key: KeyColumn) -> int:
        """Return the frequency of a value; the value itself is compared, since another may have the same hash."""
        if self.rows is not None:
            start = int(np.searchsorted(self.hashes, key.hashes[0], "left"))
            end = int(np.searchsorted(self.hashes, key.hashes[0], "right"))
            value = key.stored[0].as_py()
            for row in self.rows.slice(start, end - start).to_pylist():
                if row["value"] == value:
                    return int(row["frequency"])
        if self.is_complete:
            return 0
        return UNKNOWN


def _limit_keys(evidence: ColumnEvidence) -> NDArray[np.float64]:
    """Return for each file the greatest number of keys that its filter can exclude without an error.

    A short list makes no errors: it can be compared with any number of keys.
    """
    errors = np.maximum(error_rate(np.maximum(evidence.distinct, 0)), np.finfo(float).tiny)
    most_keys = _MOST_FALSE_POSITIVES / errors
    has_short_list = evidence.complete & (evidence.distinct * _ROWS_PER_VALUE <= evidence.rows)
    return np.where(has_short_list, np.maximum(most_keys, evidence.rows), most_keys)


def read_object_rows(open_object: OpenObject, ref: ObjectRef, column: int, names: Sequence[str]) -> pa.Table:
    """Read fields of the rows of a column in an object."""
    part = open_object(ref)
    rows = part.read_rows(part.groups_of_column(column), ["column", "file", *names])
    return rows.filter(pc.equal(rows["column"], column))


def read_sound_rows(open_object: OpenObject, ref: ObjectRef, column: int, names: Sequence[str]) -> pa.Table:
    """Read fields of the rows of a column in an object; no rows if the object cannot be read."""
    try:
        return read_object_rows(open_object, ref, column, names)
    except (DamagedObject, StoreNotReadable) as e:
        _LOG.warning("keys are looked for without %s: %s", ref.name, e)
        return pa.table({name: pa.array([], pa.int64()) for name in ("column", "file", *names)})
