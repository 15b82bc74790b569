"""Reduces the value lists of data files to those of the table: the first of the three algorithms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.object_schemas import TABLE_FREQUENCIES, fill_schema
from metastore.format.sortable_values import is_wide_decimal, make_comparison_key
from metastore.table_level.value_rows import sum_value_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics

    Longs = NDArray[np.int64]
    from collections.abc import Callable


COMPLETE = "complete"
DUPLICATES = "duplicates"
TOP = "top"
NONE = "none"


@dataclass(frozen=True)
class OmittedCountBounds:
    """Bounds of the frequencies of values that the cut lists of a column's data files leave out.

    Attributes:
        floors: The greatest possible frequency of a value that the file's list leaves out.
        los: The lower bound of each file's values, or None if it is unknown.
        his: The upper bound of each file's values, or None if it is unknown.
        key: Maps a stored value to a key that compares in the same way.
    """

    floors: Longs
    los: Sequence[Any]
    his: Sequence[Any]
    key: Callable[[Any], Any]

    @cached_property
    def most_of_unlisted(self) -> int:
        """The greatest possible frequency in the table of a value that every list leaves out."""
        if len(self.floors) < 2 or not self._has_bounds:
            return int(self.floors.sum())
        los, his = self._sums
        # Such a value lies in the ranges of the files that have it: the deepest overlap begins at a lower bound.
        overlaps = los.sum_up_to(los.bounds, "right") - his.sum_up_to(los.bounds, "left")
        return int(overlaps.max())

    def bound_beside_lists(self, values: Sequence[Any] | NDArray[Any]) -> Longs:
        """Return the sum of the floors of the files whose range holds each value; NaN may be in every file."""
        total = int(self.floors.sum())
        if not len(self.floors) or not len(values) or not self._has_bounds:
            return np.full(len(values), total)
        los, his = self._sums
        keys = self._keys(values)
        sums: Longs = los.sum_up_to(keys, "right") - his.sum_up_to(keys, "left")
        if keys.dtype.kind == "f":
            sums = np.where(np.isnan(keys), total, sums)
        return sums

    @property
    def _has_bounds(self) -> bool:
        return None not in self.los and None not in self.his

    @cached_property
    def _sums(self) -> tuple[_FloorSums, _FloorSums]:
        """The floors of the files by their lower bounds, and by their upper bounds."""
        by_lo = _FloorSums.of(self._keys(self.los), self.floors)
        by_hi = _FloorSums.of(self._keys(self.his), self.floors)
        return by_lo, by_hi

    def _keys(self, values: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
        if isinstance(values, np.ndarray):
            return values
        return _make_key_array(list(map(self.key, values)))


@dataclass(frozen=True)
class _FloorSums:
    """Floors added up in the order of their files' bounds."""

    bounds: NDArray[Any]
    sums: Longs

    @classmethod
    def of(cls, bounds: NDArray[Any], floors: Longs) -> _FloorSums:
        order = np.argsort(bounds, kind="stable")
        sums = np.concatenate([[0], np.cumsum(floors[order])])
        return cls(bounds[order], sums)

    def sum_up_to(self, keys: NDArray[Any], side: Any) -> Longs:
        """Sum the floors of the files whose bound is less than each key, or equal to it if `side` is right."""
        sums: Longs = self.sums[np.searchsorted(self.bounds, keys, side=side)]
        return sums


def _make_key_array(keys: list[Any]) -> NDArray[Any]:
    if not keys:
        return np.empty(0, object)
    if isinstance(keys[0], float):
        return np.array(keys, np.float64)
    if all(_is_long(key) for key in keys):
        return np.array(keys, np.int64)
    array = np.empty(len(keys), object)
    array[:] = keys
    return array


def _is_long(key: Any) -> bool:
    return isinstance(key, int) and key in _LONGS


@dataclass(frozen=True, kw_only=True)
class FileValueCounts:
    """The counts of values in one column's data files, and the kinds of their lists.

    Attributes:
        ordinal: The column's ordinal in the snapshot's schema.
        kinds: The kind of each file's list.
        floors: The floor of each list; 0 if the list is complete.
        values: The number of values of each file, without nulls; -1 if it is unknown.
        distincts: The number of distinct values; -1 if it is not known exactly.
        singles: The number of values that occur once; -1 if it is unknown.
        estimates: The number of distinct values, exact or estimated by sketches.
        los: The lower bound of each file's values, or None if it is unknown.
        his: The upper bound of each file's values, or None if it is unknown.
        width: The average bytes of a value.
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
        """For each file, whether it holds values that its list leaves out."""
        is_complete = np.array([kind == COMPLETE for kind in self.kinds], np.bool_)
        is_truncated: NDArray[np.bool_] = ~is_complete & (self.values != 0)
        return is_truncated

    @property
    def truncated_kinds(self) -> list[str]:
        """The kinds of the lists of these files."""
        return [self.kinds[file] for file in np.flatnonzero(self.is_truncated).tolist()]

    @property
    def have_lists(self) -> bool:
        """Return whether every file with values has a list."""
        return NONE not in self.truncated_kinds

    @property
    def duplicates(self) -> Longs:
        """The number of values of each file that occur more than once, or an upper bound of it."""
        upper_bounds = np.minimum(self.estimates, np.maximum(self.values - self.estimates, 0))
        is_exact = (self.distincts >= 0) & (self.singles >= 0)
        return np.where(is_exact, self.distincts - self.singles, upper_bounds)


REDUCE = "reduce"
DUPLICATES_ONLY = "duplicates"
SCATTER = "scatter"
AUTO = "auto"
EXACT = "exact"
THRESHOLD = 1_000_000
_LONGS = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True)
class ListFacts:
    """The kind of a column's list at table level, and the exact counts that follow from it.

    Attributes:
        kind: `complete`, `duplicates`, `top` or `none`.
        floor: The greatest possible frequency of a value that it leaves out.
        algorithm: `reduce`, `duplicates` or `scatter`.
        distinct: The number of distinct values of the table, NaN as one; None if it is not certain.
        singles: The number of values that occur once; None if it is not certain.
    """

    kind: str
    floor: int | None = None
    algorithm: str | None = None
    distinct: int | None = None
    singles: int | None = None

    def apply_to(self, statistics: ColumnStatistics) -> ColumnStatistics:
        """Put the facts into the statistics of the column."""
        with_list = replace(
            statistics,
            frequencies=self.kind,
            frequencies_floor=self.floor,
            frequencies_algorithm=self.algorithm,
            singles=self.singles,
        )
        if self.distinct is None:
            return with_list
        return replace(with_list, distinct=self.distinct, distinct_error=0.0)


def choose_algorithm(lists: FileValueCounts, threshold: int = THRESHOLD) -> str:
    """Choose by the number of distinct values in all files, and of values that occur more than once in a file."""
    if int(lists.estimates.sum()) < threshold:
        return REDUCE
    if int(lists.duplicates.sum()) < threshold:
        return DUPLICATES_ONLY
    return SCATTER


def choose_job_algorithm(lists: FileValueCounts, option: str, threshold: int) -> str:
    """Return the algorithm for a column.

    Cut lists are reduced as they are, unless the option asks for exact frequencies: to complete them, a job reads the
    column again in every data file.
    """
    if option not in (EXACT, AUTO):
        return option
    has_cut_lists = lists.is_truncated.any()
    if option == AUTO and has_cut_lists:
        return REDUCE
    algorithm = choose_algorithm(lists, threshold)
    if algorithm == REDUCE and has_cut_lists:
        return SCATTER
    return algorithm


def bound_omitted_counts(lists: FileValueCounts) -> OmittedCountBounds:
    """Return the bounds of the files whose lists leave values out."""
    files = np.flatnonzero(lists.is_truncated).tolist()
    return OmittedCountBounds(
        floors=lists.floors[lists.is_truncated],
        los=[lists.los[file] for file in files],
        his=[lists.his[file] for file in files],
        key=make_comparison_key(lists.column),
    )


def reduce_lists(rows: pa.Table, columns: Sequence[FileValueCounts], top: int) -> tuple[pa.Table, dict[int, ListFacts]]:
    """Reduce the lists of data files to those of the table."""
    wide = [lists.ordinal for lists in columns if is_wide_decimal(lists.column)]
    rows = sum_value_rows(rows, wide).combine_chunks()
    ordinals = rows["column"].to_numpy()
    frequencies = rows["frequency"].to_numpy()
    floor_sums = rows["listed"].to_numpy()
    errors = np.zeros(len(ordinals), np.int64)
    is_selected = np.zeros(len(ordinals), np.bool_)
    facts = {}
    columns = sorted(columns, key=lambda lists: lists.ordinal)
    column_ordinals = np.array([lists.ordinal for lists in columns], ordinals.dtype)
    starts = ordinals.searchsorted(column_ordinals, "left").tolist()
    ends = ordinals.searchsorted(column_ordinals, "right").tolist()
    for lists, start, end in zip(columns, starts, ends, strict=True):
        reduction = _ColumnReduction(
            rows=rows.slice(start, end - start),
            frequencies=frequencies[start:end],
            floor_sums=floor_sums[start:end],
            errors=errors[start:end],
            is_selected=is_selected[start:end],
        )
        facts[lists.ordinal] = reduction.run(lists, top)
    table = table_frequency_rows(rows, errors)
    if not is_selected.all():
        table = table.filter(pa.array(is_selected))
    return table, facts


@dataclass(frozen=True)
class _ColumnReduction:
    """The reduction of one column; it fills in the errors of values and selects those of the table's list.

    Attributes:
        rows: The values, as `VALUE_ROWS`.
        frequencies: The frequencies of the values.
        floor_sums: For each value the sum of the floors of the cut lists that hold it.
        errors: The greatest possible frequencies of the values beyond `frequencies`.
        is_selected: Whether the table's list has the value.
    """

    rows: pa.Table
    frequencies: Longs
    floor_sums: Longs
    errors: Longs
    is_selected: NDArray[np.bool_]

    def run(self, lists: FileValueCounts, top: int) -> ListFacts:
        if not lists.have_lists or lists.column.encoding is None:
            return ListFacts(NONE)
        omitted = bound_omitted_counts(lists)
        if not len(omitted.floors):
            return self._select_all()
        upper_bounds = omitted.bound_beside_lists(self._take_values(lists.column))
        self.errors[:] = np.maximum(upper_bounds - self.floor_sums, 0)
        if omitted.most_of_unlisted <= 1 and not self.errors.any():
            # All floors are 1 then: their sums are the numbers of cut lists that hold a value.
            return self._select_duplicates(lists)
        return self._select_top(lists, omitted.most_of_unlisted, top)

    def _take_values(self, column: Column) -> Any:
        values = self.rows[f"value_{column.encoding}"]
        if column.encoding == "binary":
            return values.to_pylist()
        return values.to_numpy()

    def _select_all(self) -> ListFacts:
        self.is_selected[:] = True
        singles = int((self.frequencies == 1).sum())
        return ListFacts(COMPLETE, 0, REDUCE, len(self.frequencies), singles)

    def _select_duplicates(self, lists: FileValueCounts) -> ListFacts:
        """Select repeated values; every value that a file's list leaves out occurs once in the table."""
        self.is_selected[:] = self.frequencies > 1
        distincts = lists.distincts[lists.is_truncated]
        if (distincts < 0).any():
            return ListFacts(DUPLICATES, 1, REDUCE)
        omitted = int(distincts.sum()) - int(self.floor_sums.sum())
        singles = int((~self.is_selected).sum()) + omitted
        return ListFacts(DUPLICATES, 1, REDUCE, len(self.frequencies) + omitted, singles)

    def _select_top(self, lists: FileValueCounts, floor: int, top: int) -> ListFacts:
        if TOP not in lists.truncated_kinds or len(self.frequencies) <= top:
            self.is_selected[:] = True
            return ListFacts(TOP, floor, REDUCE)
        self.is_selected[:top] = True
        most = int((self.frequencies[top:] + self.errors[top:]).max())
        return ListFacts(TOP, max(floor, most), REDUCE)


def table_frequency_rows(rows: pa.Table, errors: NDArray[np.int64] | None) -> pa.Table:
    """Return rows of `table-frequencies`; an error that is zero is null."""
    values: dict[str, Any] = {name: rows[name] for name in TABLE_FREQUENCIES.names if name in rows.column_names}
    if errors is not None:
        values["error"] = pa.array(errors, mask=errors == 0)
    return fill_schema(TABLE_FREQUENCIES, values, rows.num_rows)
