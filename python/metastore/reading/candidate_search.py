"""Looks for keys in what is known of data files. What is not known keeps the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from metastore.errors import DamagedObject, StoreNotReadable
from metastore.format.bloom_filter import bloom_hashes, error_rate, may_hold
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.object_part import ObjectPart
    from metastore.format.objects import ObjectRef
    from metastore.reading.evidence import ColumnEvidence, DetailObjects
    from metastore.reading.lookup_keys import KeyBatch, KeyColumn, Mask, Places

    Open = Callable[[ObjectRef], ObjectPart]
    Test = Callable[[UInt64Array], Mask]


_LOG = get_logger(__name__)
_AT_ONCE = 1 << 14
_ERRORS = 1
"""So many errors of a filter are expected of as many keys as are looked for: of more it tells little."""
_SHORT = 8
"""A list is short if it has one value for so many rows; a longer one takes as long to read as the rows."""


class CandidateSearch:
    """Which of some data files may hold any of the keys that it is given.

    Attributes:
        found: Whether each of the files may.
    """

    def __init__(self, evidence: Sequence[ColumnEvidence], open_object: Open) -> None:
        """Begin with no file found."""
        self._known = [_Known(one, open_object) for one in evidence]
        self.found = np.zeros(len(evidence[0].known), bool)

    def crowd(self, keys: KeyBatch) -> None:
        """Take the files within whose bounds are so many keys that looking closer would hardly leave them out."""
        if len(self._known) == 1:  # of several columns only together they tell
            first, behind = self._known[0].reach(keys)
            self.found |= behind - first > self._known[0].most

    def add(self, keys: KeyBatch) -> None:
        """Look for more keys in the files that were not found yet."""
        self.crowd(keys)
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
                at = at[known.held(file, part, at)]
        return len(at) > 0


def _batches(first: int, behind: int, special: Places) -> Iterator[Places]:
    for start in range(first, behind, _AT_ONCE):
        yield np.arange(start, min(start + _AT_ONCE, behind))
    for start in range(0, len(special), _AT_ONCE):
        yield special[start : start + _AT_ONCE]


@dataclass(frozen=True)
class _List:
    """A complete list of values: their hashes in order."""

    hashes: UInt64Array

    def __call__(self, asked: UInt64Array) -> Mask:
        if not len(self.hashes):
            return np.zeros(len(asked), bool)
        place = np.minimum(np.searchsorted(self.hashes, asked), len(self.hashes) - 1)
        listed: Mask = self.hashes[place] == asked
        return listed


@dataclass(frozen=True)
class _Filter:
    bloom: bytes

    def __call__(self, asked: UInt64Array) -> Mask:
        return may_hold(self.bloom, asked)


def _most(known: ColumnEvidence) -> NDArray[np.float64]:
    """For each file, how many keys may be looked for: of more, its filter nearly always takes one for present.

    A short list of its values is right however many they are.
    """
    most = _ERRORS / np.maximum(error_rate(np.maximum(known.distinct, 0)), np.finfo(float).tiny)
    short = known.complete & (known.distinct * _SHORT <= known.rows)
    return np.where(short, np.maximum(most, known.rows), most)


class _Known:
    """The evidence of one column, its lists and filters read when they are first asked for."""

    def __init__(self, evidence: ColumnEvidence, open_object: Open) -> None:
        self._evidence = evidence
        self._open = open_object
        self._tests: dict[int, Test | None] = {}
        self._seen: set[tuple[str, int, int]] = set()
        self.most = _most(evidence)

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

    def held(self, file: int, part: KeyColumn, at: Places) -> Mask:
        """Which keys the list of the file's values, or its filter, leaves."""
        plain = part.plain[at]
        test = self._test(file) if self._evidence.known[file] and plain.any() else None
        if test is None:
            return np.ones(len(at), bool)
        may = ~plain
        may[plain] = test(part.hashes[at[plain]])
        return may

    def _test(self, file: int) -> Test | None:
        if file not in self._tests:
            for kind, details in (("list", self._evidence.lists), ("filter", self._evidence.filters)):
                self._read(kind, details, file)
                if self._tests.get(file) is not None:
                    break
            self._tests.setdefault(file, None)
        return self._tests[file]

    def _read(self, kind: str, details: DetailObjects, file: int) -> None:
        """Read an object's lists or filters of all files that are in it."""
        which, column = details.which[file], int(details.column[file])
        if which < 0 or (kind == "list" and not self._evidence.complete[file]) or (kind, which, column) in self._seen:
            return
        self._seen.add((kind, which, column))
        inside = np.flatnonzero((details.which == which) & (details.column == column))
        place = dict(zip(details.file[inside].tolist(), inside.tolist(), strict=True))
        try:
            part = self._open(details.objects[which])
            self._take(part, kind, column, place)
        except (DamagedObject, StoreNotReadable) as e:
            _LOG.warning("keys are looked for without the %ss of %s: %s", kind, details.objects[which].name, e)

    def _take(self, part: ObjectPart, kind: str, column: int, place: dict[int, int]) -> None:
        wanted = f"value_{self._evidence.column.encoding}" if kind == "list" else "bloom"
        rows = part.read_rows(part.groups_of_column(column), ["column", "file", wanted])
        rows = rows.filter(pc.and_(pc.equal(rows["column"], column), pc.is_valid(rows[wanted])))
        if kind == "filter":
            for file, bloom in zip(rows["file"].to_pylist(), rows[wanted].to_pylist(), strict=True):
                if file in place and bloom:
                    self._tests[place[file]] = _Filter(bloom)
            return
        files, hashes = rows["file"].to_numpy(), bloom_hashes(rows[wanted].combine_chunks())
        order = np.lexsort((hashes, files))
        files, hashes = files[order], hashes[order]
        for file, one in place.items():
            start, end = np.searchsorted(files, [file, file + 1])
            if end - start == self._evidence.distinct[one]:  # a list that lost values proves nothing
                self._tests[one] = _List(hashes[start:end])
