"""The first of the three algorithms, and what all of them end with: a column's list and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.object_schemas import TABLE_FREQUENCIES, fill_schema
from metastore.format.sortable_values import is_wide_decimal, make_comparison_key
from metastore.table_level.count_bounds import COMPLETE, DUPLICATES, NONE, TOP, FileValueCounts, OmittedCountBounds
from metastore.table_level.value_rows import sum_value_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics

    Longs = NDArray[np.int64]


REDUCE, DUPLICATES_ONLY, SCATTER = "reduce", "duplicates", "scatter"
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
