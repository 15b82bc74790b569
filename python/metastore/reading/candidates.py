"""Which data files may hold given values: by counts and bounds, then by value lists and bloom filters.

What is not known keeps the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject, StoreNotReadable
from metastore.format.bloom_filter import bloom_hashes, error_rate, may_hold
from metastore.reading.evidence import UNKNOWN, ColumnEvidence, DetailObjects, gather_evidence
from metastore.reading.lookup_keys import KeyBatch, KeyColumn
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.object_part import ObjectPart
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.reading.lookup_keys import Mask, Places
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store

    OpenObject = Callable[[ObjectRef], ObjectPart]
    ReadRows = Callable[[ObjectRef, int, Sequence[str]], pa.Table]
    """Of an object and a column the column's rows, without any where the object cannot be read."""


_LOG = get_logger(__name__)
_AT_ONCE = 1 << 14
_ERRORS = 1
"""So many errors of a filter are expected of as many keys as are looked for: of more it tells little."""
SLICE = "slice"
"""The column that names a slice of the data files."""
_KEYS_AT_ONCE = 1 << 18
_SHORT = 8
"""A list is short if it has one value for so many rows; a longer one takes as long to read as the rows."""


@dataclass(frozen=True)
class CandidateFiles:
    """The data files that may hold a value.

    Attributes:
        files: Their places in the snapshot's list.
        frequencies: How many of the file's rows, deleted ones included, have the value; -1: not known, perhaps none.
    """

    files: Places
    frequencies: Places


def find_candidate_files(store: Store, stored: SnapshotFiles, column: Column, value: Any) -> CandidateFiles:
    """Find the data files that may hold a value. A file of which nothing is known may."""
    (evidence,) = gather_evidence(store, stored, [column])
    key = KeyColumn.from_stored(value, column)
    if key.plain[0]:
        candidates = ColumnCandidates(evidence, partial(_read_rows, store.open_part), with_frequencies=True)
        counts = candidates.count(key)
    else:
        counts = np.where(evidence.known, evidence.nulls if key.null[0] else evidence.nans, UNKNOWN)
    files = np.flatnonzero(counts)
    return CandidateFiles(files, counts[files])


class CandidateSearch:
    """Which of some data files may hold any of the keys that it is given.

    Attributes:
        found: Whether each of the files may.
    """

    def __init__(self, evidence: Sequence[ColumnEvidence], open_object: OpenObject) -> None:
        """Begin with no file found."""
        self._known = [ColumnCandidates(one, partial(read_sound_rows, open_object)) for one in evidence]
        self.found = np.zeros(len(evidence[0].known), bool)

    def add_crowded_files(self, keys: KeyBatch) -> None:
        """Take the files within whose bounds are so many keys that looking closer would hardly leave them out."""
        if len(self._known) == 1:  # of several columns only together they tell
            first, behind = self._known[0].reach(keys)
            self.found |= behind - first > self._known[0].most

    def add(self, keys: KeyBatch) -> None:
        """Look for more keys in the files that were not found yet."""
        self.add_crowded_files(keys)
        first, behind = self._known[0].reach(keys)
        special = np.arange(keys.ordered, len(keys))
        for file in np.flatnonzero(~self.found).tolist():
            self.found[file] = any(
                self._may_hold(file, keys, at) for at in _batches(first[file], behind[file], special)
            )

    def _may_hold(self, file: int, keys: KeyBatch, at: Places) -> bool:
        for known, part in zip(self._known, keys.columns, strict=True):
            at = at[known.bounded(file, part, at)]
        for known, part in zip(self._known, keys.columns, strict=True):
            if 0 < len(at) <= known.most[file]:
                at = at[known.listed(file, part, at)]
        return len(at) > 0


def search_slices(
    open_object: OpenObject, slices: Sequence[Sequence[ColumnEvidence]], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Look for keys in slices of the data files, in a task, which has numpy and pyarrow alone."""
    searches: dict[int, CandidateSearch] = {}
    for keys in _large(batches):
        numbers = keys[SLICE]
        for number in numbers.unique().to_pylist():
            if number not in searches:
                searches[number] = CandidateSearch(slices[number], open_object)
            part = keys.filter(pc.equal(numbers, number)).drop_columns([SLICE])
            searches[number].add(KeyBatch.from_table(part, [one.column for one in slices[number]]))
    found = [np.packbits(search.found).tobytes() for search in searches.values()]
    yield pa.record_batch([pa.array(list(searches), pa.int64()), pa.array(found, pa.binary())], [SLICE, "found"])


def _large(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches in fewer and larger ones: a step a file is made for each."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= _KEYS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


class ColumnCandidates:
    """The evidence of one column; the lists and filters of all files in an object are read when one is asked for."""

    def __init__(self, evidence: ColumnEvidence, read_rows: ReadRows, *, with_frequencies: bool = False) -> None:
        self._evidence = evidence
        self._read_rows = read_rows
        self._with_frequencies = with_frequencies
        self._lists: dict[int, _ValueList] = {}
        self._filters: dict[int, bytes] = {}
        self._seen: set[tuple[str, int]] = set()
        self.most = _most_keys(evidence)

    def reach(self, keys: KeyBatch) -> tuple[Places, Places]:
        """For each file, which of the ordered keys lie within its bounds: the first, and the first behind them."""
        known, ordered = self._evidence, keys.columns[0].values[: keys.ordered]
        first = np.where(known.known & known.has_lo, np.searchsorted(ordered, known.lo, "left"), 0)
        behind = np.where(known.known & known.has_hi, np.searchsorted(ordered, known.hi, "right"), keys.ordered)
        return first, np.where(known.known & known.empty, first, behind)

    def bounded(self, file: int, part: KeyColumn, at: Places) -> Mask:
        """Which keys counts and bounds leave."""
        known = self._evidence
        if not known.known[file]:
            return np.ones(len(at), bool)
        values = part.values[at]
        within = np.full(len(at), not known.empty[file])
        if known.has_lo[file]:
            within &= values >= known.lo[file]
        if known.has_hi[file]:
            within &= values <= known.hi[file]
        counted = np.where(part.null[at], known.nulls[file] != 0, known.nans[file] != 0)
        return np.where(part.plain[at], within, counted)

    def listed(self, file: int, part: KeyColumn, at: Places) -> Mask:
        """Which keys the whole list of the file's values, or else its filter, leaves."""
        may = np.ones(len(at), bool)
        plain = part.plain[at]
        if self._evidence.known[file] and plain.any():
            values = self._list(file) if self._evidence.complete[file] else None
            hashes = part.hashes[at[plain]]
            may[plain] = (
                values.holds(hashes) if values is not None and values.is_whole else self._filtered(file, hashes)
            )
        return may

    def list_values(self, file: int) -> pa.Array | None:
        """All values of a file but null and NaN, stored; None where they are not known. Needs frequencies."""
        found = self._list(file) if self._evidence.known[file] and self._evidence.complete[file] else None
        return found.rows["value"].combine_chunks() if found and found.is_whole and found.rows is not None else None

    def may_hold(self, file: int, values: pa.Array) -> bool:
        """Whether the filter of a file leaves any of some stored values."""
        return not self._evidence.known[file] or bool(self._filtered(file, bloom_hashes(values)).any())

    def count(self, key: KeyColumn) -> Places:
        """How often each file has a single plain value: 0 where it has none, -1 where that is not known."""
        first, behind = self.reach(KeyBatch((key,), 1))
        counts = np.where(behind > first, UNKNOWN, 0)
        for file in np.flatnonzero((behind > first) & self._evidence.known).tolist():
            values = self._list(file)
            counts[file] = UNKNOWN if values is None else values.count(key)
            if counts[file] == UNKNOWN and not self._filtered(file, key.hashes)[0]:
                counts[file] = 0
        return counts

    def _filtered(self, file: int, hashes: UInt64Array) -> Mask:
        if file not in self._filters:
            for rows, places in self._read(self._evidence.filters, file, ["bloom"]):
                for row in rows.to_pylist():
                    if row["file"] in places and row["bloom"]:
                        self._filters[places[row["file"]]] = row["bloom"]
        bloom = self._filters.get(file)
        return np.ones(len(hashes), bool) if bloom is None else may_hold(bloom, hashes)

    def _list(self, file: int) -> _ValueList | None:
        if file not in self._lists:
            value = f"value_{self._evidence.column.encoding}"
            for rows, places in self._read(
                self._evidence.lists, file, [value, "frequency"] if self._with_frequencies else [value]
            ):
                self._take_lists(rows.rename_columns({value: "value"}), places)
        return self._lists.get(file)

    def _read(self, details: DetailObjects, file: int, names: list[str]) -> Iterator[tuple[pa.Table, dict[int, int]]]:
        """A data file's detail object, the first time: rows of the column, and the places of the files in it."""
        which, column = details.which[file], int(details.column[file])
        if which < 0 or (details.objects[which].name, column) in self._seen:
            return
        self._seen.add((details.objects[which].name, column))
        inside = np.flatnonzero((details.which == which) & (details.column == column))
        rows = self._read_rows(details.objects[which], column, names)
        yield (
            rows.filter(pc.is_valid(rows[names[0]])),
            dict(zip(details.file[inside].tolist(), inside.tolist(), strict=True)),
        )

    def _take_lists(self, rows: pa.Table, places: dict[int, int]) -> None:
        files, hashes = rows["file"].to_numpy(), bloom_hashes(rows["value"].combine_chunks())
        order = np.lexsort((hashes, files))
        files, hashes = files[order], hashes[order]
        counted = rows.take(pa.array(order)) if self._with_frequencies else None
        for file, place in places.items():
            start, end = np.searchsorted(files, [file, file + 1])
            # As many values as were counted: a list that lost some proves nothing.
            whole = bool(self._evidence.complete[place] and end - start == self._evidence.distinct[place])
            some = None if counted is None else counted.slice(start, end - start)
            self._lists[place] = _ValueList(hashes[start:end], whole, some)


@dataclass(frozen=True)
class _ValueList:
    """Values of a data file in the order of their hashes.

    Attributes:
        is_whole: Whether no value is missing.
        rows: `value` and `frequency`, where frequencies are asked for.
    """

    hashes: UInt64Array
    is_whole: bool
    rows: pa.Table | None

    def holds(self, wanted: UInt64Array) -> Mask:
        """Which hashes are those of values."""
        if not len(self.hashes):
            return np.zeros(len(wanted), bool)
        place = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        found: Mask = self.hashes[place] == wanted
        return found

    def count(self, key: KeyColumn) -> int:
        """The frequency of a single value itself: another one may have its hash."""
        start, end = (int(np.searchsorted(self.hashes, key.hashes[0], side)) for side in ("left", "right"))
        for row in self.rows.slice(start, end - start).to_pylist() if self.rows is not None else ():
            if row["value"] == key.stored[0].as_py():
                return int(row["frequency"])
        return 0 if self.is_whole else UNKNOWN


def _most_keys(known: ColumnEvidence) -> NDArray[np.float64]:
    """For each file, how many keys may be looked for: of more, its filter nearly always takes one for present.

    A short list of its values is right however many they are.
    """
    most = _ERRORS / np.maximum(error_rate(np.maximum(known.distinct, 0)), np.finfo(float).tiny)
    short = known.complete & (known.distinct * _SHORT <= known.rows)
    return np.where(short, np.maximum(most, known.rows), most)


def _batches(first: int, behind: int, special: Places) -> Iterator[Places]:
    for start in range(first, behind, _AT_ONCE):
        yield np.arange(start, min(start + _AT_ONCE, behind))
    for start in range(0, len(special), _AT_ONCE):
        yield special[start : start + _AT_ONCE]


def _read_rows(open_object: OpenObject, ref: ObjectRef, column: int, names: Sequence[str]) -> pa.Table:
    part = open_object(ref)
    rows = part.read_rows(part.groups_of_column(column), ["column", "file", *names])
    return rows.filter(pc.equal(rows["column"], column))


def read_sound_rows(open_object: OpenObject, ref: ObjectRef, column: int, names: Sequence[str]) -> pa.Table:
    """Of an object and a column the column's rows, without any where the object cannot be read."""
    try:
        return _read_rows(open_object, ref, column, names)
    except (DamagedObject, StoreNotReadable) as e:
        _LOG.warning("keys are looked for without %s: %s", ref.name, e)
        return pa.table({name: pa.array([], pa.int64()) for name in ("column", "file", *names)})
