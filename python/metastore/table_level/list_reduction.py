"""The first of the three algorithms, and what all of them end with: a column's list and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.object_schemas import TABLE_FREQUENCIES, fill_schema
from metastore.format.sortable_values import identity_key, is_wide_decimal, make_comparison_key
from metastore.table_level.value_rows import sum_value_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics

    Longs = NDArray[np.int64]
    from collections.abc import Callable


COMPLETE, DUPLICATES, TOP, NONE = "complete", "duplicates", "top", "none"


@dataclass(frozen=True)
class OmittedCountBounds:
    """The data files whose list of a column is cut: between which bounds they may hold how much more of a value.

    Attributes:
        floors: No value that the file's list leaves out is more frequent.
        los: Lower bound of each file's values; None where it is not known.
        his: Upper bound, likewise.
        key: Maps a stored value to what compares as it does.
    """

    floors: Longs
    los: Sequence[Any]
    his: Sequence[Any]
    key: Callable[[Any], Any]

    @cached_property
    def most_of_unlisted(self) -> int:
        """No value that every list leaves out is more frequent in the table."""
        if len(self.floors) < 2 or not self._bounded:
            return int(self.floors.sum())
        los, his = self._reached
        # A value in no list lies inside of some files' ranges: the deepest overlap begins at a lower bound.
        return int((los.at(los.ends, "right") - his.at(los.ends, "left")).max())

    def bound_beside_lists(self, values: Sequence[Any] | NDArray[Any]) -> Longs:
        """How often values may occur in these files all told, listed or not; NaN may be in any of them."""
        total = int(self.floors.sum())
        if not len(self.floors) or not len(values) or not self._bounded:
            return np.full(len(values), total)
        los, his = self._reached
        keys = values if isinstance(values, np.ndarray) else self._keys(values)
        found: Longs = los.at(keys, "right") - his.at(keys, "left")
        return np.where(np.isnan(keys), total, found) if keys.dtype.kind == "f" else found

    @property
    def _bounded(self) -> bool:
        return all(bound is not None for bound in (*self.los, *self.his))

    @cached_property
    def _reached(self) -> tuple[_Sums, _Sums]:
        """The floors of the files by where their values begin, and by where they end."""
        return _Sums.of(self._keys(self.los), self.floors), _Sums.of(self._keys(self.his), self.floors)

    def _keys(self, values: Sequence[Any]) -> NDArray[Any]:
        return _array(list(values) if self.key is identity_key else [self.key(value) for value in values])


@dataclass(frozen=True)
class _Sums:
    """Floors added up in the order of their files' bounds."""

    ends: NDArray[Any]
    sums: Longs

    @classmethod
    def of(cls, ends: NDArray[Any], floors: Longs) -> _Sums:
        order = np.argsort(ends, kind="stable")
        return cls(ends[order], np.concatenate([[0], np.cumsum(floors[order])]))

    def at(self, keys: NDArray[Any], side: Any) -> Longs:
        """The floors of the files whose bound is passed at each key."""
        found: Longs = self.sums[np.searchsorted(self.ends, keys, side=side)]
        return found


def _array(values: list[Any]) -> NDArray[Any]:
    if values and isinstance(values[0], float):
        return np.array(values, np.float64)
    if values and all(isinstance(value, int) and -(1 << 63) <= value < 1 << 63 for value in values):
        return np.array(values, np.int64)
    found = np.empty(len(values), object)
    found[:] = values
    return found


@dataclass(frozen=True)
class FileValueCounts:
    """What is known of the lists of one column's data files.

    Attributes:
        ordinal: Its place in the snapshot's schema.
        kinds: What each file's list is.
        floors: The floor of each; 0 where the list is complete.
        values: How many values each file has, null excluded; -1 where that is not known.
        distincts: How many distinct ones; -1 where that is not known exactly.
        singles: How many of them occur once; -1 where not known.
        estimates: As `distincts`, or else what sketches estimate.
        width: Bytes of a value, on average.
    """

    column: Column
    ordinal: int
    kinds: tuple[str, ...]
    floors: Longs
    values: Longs
    distincts: Longs
    singles: Longs
    estimates: Longs
    los: tuple[Any, ...]
    his: tuple[Any, ...]
    width: float

    @cached_property
    def is_truncated(self) -> NDArray[np.bool_]:
        """Which files hold values that their list leaves out."""
        is_cut: NDArray[np.bool_] = np.array([kind != COMPLETE for kind in self.kinds], np.bool_)
        found: NDArray[np.bool_] = is_cut & (self.values != 0)
        return found

    @property
    def is_known(self) -> bool:
        """Whether every file with values has a list."""
        return not any(kind == NONE for kind, cut in zip(self.kinds, self.is_truncated, strict=True) if cut)

    @property
    def duplicates(self) -> Longs:
        """How many values of each file occur more than once, at most."""
        at_most = np.minimum(self.estimates, np.maximum(self.values - self.estimates, 0))
        known = (self.distincts >= 0) & (self.singles >= 0)
        return np.where(known, self.distincts - self.singles, at_most)


REDUCE, DUPLICATES_ONLY, SCATTER = "reduce", "duplicates", "scatter"
AUTO, EXACT = "auto", "exact"
THRESHOLD = 1_000_000


@dataclass(frozen=True)
class ListFacts:
    """What is known of a column's list at table level.

    Attributes:
        kind: `complete`, `duplicates`, `top` or `none`.
        floor: No value that it leaves out is more frequent.
        algorithm: `reduce`, `duplicates` or `scatter`.
        distinct: How many distinct values the table has, NaN as one; None where that is not certain.
        singles: How many of them occur once, likewise.
    """

    kind: str
    floor: int | None = None
    algorithm: str | None = None
    distinct: int | None = None
    singles: int | None = None

    def apply_to(self, known: ColumnStatistics) -> ColumnStatistics:
        """Put it into the statistics of the column."""
        found = replace(
            known,
            frequencies=self.kind,
            frequencies_floor=self.floor,
            frequencies_algorithm=self.algorithm,
            singles=self.singles,
        )
        return found if self.distinct is None else replace(found, distinct=self.distinct, distinct_error=0.0)


def choose_algorithm(lists: FileValueCounts, threshold: int = THRESHOLD) -> str:
    """Choose by the sums of the files' distinct values and of those that occur more than once."""
    if int(lists.estimates.sum()) < threshold:
        return REDUCE
    return DUPLICATES_ONLY if int(lists.duplicates.sum()) < threshold else SCATTER


def choose_job_algorithm(lists: FileValueCounts, option: str, threshold: int) -> str:
    """The algorithm for a column.

    Lists that are cut are reduced as they are, unless exact frequencies are asked for: finding what they lack means
    to read the column again in every data file.
    """
    if option == EXACT:
        found = choose_algorithm(lists, threshold)
        return SCATTER if found == REDUCE and lists.is_truncated.any() else found
    if option == AUTO:
        return REDUCE if lists.is_truncated.any() else choose_algorithm(lists, threshold)
    return option


def bound_omitted_counts(lists: FileValueCounts) -> OmittedCountBounds:
    """The files of a column whose lists leave values out."""
    places = np.flatnonzero(lists.is_truncated).tolist()
    return OmittedCountBounds(
        lists.floors[lists.is_truncated],
        [lists.los[place] for place in places],
        [lists.his[place] for place in places],
        make_comparison_key(lists.column),
    )


def reduce_lists(rows: pa.Table, columns: Sequence[FileValueCounts], top: int) -> tuple[pa.Table, dict[int, ListFacts]]:
    """Reduce the lists of data files to those of the table."""
    wide = [lists.ordinal for lists in columns if is_wide_decimal(lists.column)]
    rows = sum_value_rows(rows, wide).combine_chunks()
    ordinals, frequencies, listed = (rows[name].to_numpy() for name in ("column", "frequency", "listed"))
    errors, kept = np.zeros(len(ordinals), np.int64), np.zeros(len(ordinals), np.bool_)
    found = {}
    columns = sorted(columns, key=lambda one: one.ordinal)
    wanted = np.array([lists.ordinal for lists in columns], ordinals.dtype)
    starts, ends = (ordinals.searchsorted(wanted, side).tolist() for side in ("left", "right"))
    for lists, start, end in zip(columns, starts, ends, strict=True):
        at = slice(start, end)
        one = _Merged(rows.slice(start, end - start), frequencies[at], listed[at], errors[at], kept[at])
        found[lists.ordinal] = one.finished(lists, top)
    table = table_frequency_rows(rows, errors)
    return table if kept.all() else table.filter(pa.array(kept)), found


@dataclass(frozen=True)
class _Merged:
    """The values of one column.

    Attributes:
        rows: Of the schema `VALUE_ROWS`.
        frequencies: Of the values.
        listed: The sum of the floors of those cut lists that hold each value.
        errors: To be filled: by how much more frequent each may be.
        kept: To be filled: whether each belongs to the list.
    """

    rows: pa.Table
    frequencies: Longs
    listed: Longs
    errors: Longs
    kept: NDArray[np.bool_]

    def finished(self, lists: FileValueCounts, top: int) -> ListFacts:
        if not lists.is_known or lists.column.encoding is None:
            return ListFacts(NONE)
        cuts = bound_omitted_counts(lists)
        if not len(cuts.floors):
            self.kept[:] = True
            return ListFacts(COMPLETE, 0, REDUCE, len(self.kept), int((self.frequencies == 1).sum()))
        self.errors[:] = np.maximum(cuts.bound_beside_lists(self._values(lists.column)) - self.listed, 0)
        if cuts.most_of_unlisted <= 1 and not self.errors.any():
            # All floors are 1 then, and their sums say how many of the cut lists hold a value.
            return self._duplicates(lists)
        return self._shortened(lists, cuts.most_of_unlisted, top)

    def _values(self, column: Column) -> Any:
        values = self.rows[f"value_{column.encoding}"]
        return values.to_pylist() if column.encoding == "binary" else values.to_numpy()

    def _duplicates(self, lists: FileValueCounts) -> ListFacts:
        """The list of a column where every value that a file's list leaves out occurs once in the table."""
        self.kept[:] = self.frequencies > 1
        distincts = lists.distincts[lists.is_truncated]
        if (distincts < 0).any():
            return ListFacts(DUPLICATES, 1, REDUCE)
        left_out = int(distincts.sum()) - int(self.listed.sum())
        singles = int((~self.kept).sum()) + left_out
        return ListFacts(DUPLICATES, 1, REDUCE, len(self.kept) + left_out, singles)

    def _shortened(self, lists: FileValueCounts, floor: int, top: int) -> ListFacts:
        kinds = [kind for kind, cut in zip(lists.kinds, lists.is_truncated, strict=True) if cut]
        if TOP not in kinds or len(self.kept) <= top:
            self.kept[:] = True
            return ListFacts(TOP, floor, REDUCE)
        self.kept[:top] = True
        most = int((self.frequencies[top:] + self.errors[top:]).max())
        return ListFacts(TOP, max(floor, most), REDUCE)


def table_frequency_rows(rows: pa.Table, errors: NDArray[np.int64] | None) -> pa.Table:
    """Rows of `table-frequencies`; an error that is zero is null."""
    values: dict[str, Any] = {name: rows[name] for name in TABLE_FREQUENCIES.names if name in rows.column_names}
    if errors is not None:
        values["error"] = pa.array(errors, mask=errors == 0)
    return fill_schema(TABLE_FREQUENCIES, values, rows.num_rows)
