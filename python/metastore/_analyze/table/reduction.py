"""The first of the three algorithms, and what all of them end with: a column's list and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore._analyze.kernel.parts import order_key
from metastore._analyze.kernel.stored import is_wide
from metastore._analyze.table.cuts import COMPLETE, DUPLICATES, NONE, TOP, Cuts, Lists
from metastore._analyze.table.lists import merged, starts_of
from metastore._format.schemas import TABLE_FREQUENCIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore._analyze.kernel import ColumnStatistics

REDUCE, DUPLICATES_ONLY, SCATTER = "reduce", "duplicates", "scatter"
THRESHOLD = 1_000_000


@dataclass(frozen=True)
class Listed:
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

    def applied(self, known: ColumnStatistics) -> ColumnStatistics:
        """Put it into the statistics of the column."""
        found = replace(
            known,
            frequencies=self.kind,
            frequencies_floor=self.floor,
            frequencies_algorithm=self.algorithm,
            singles=self.singles,
        )
        return found if self.distinct is None else replace(found, distinct=self.distinct, distinct_error=0.0)


def algorithm_of(lists: Lists, threshold: int = THRESHOLD) -> str:
    """Choose by the sums of the files' distinct values and of those that occur more than once.

    Args:
        lists: What the files' lists are.
        threshold: Below it a sum is small.

    Example:
        >>> algorithm_of(lists)  # doctest: +SKIP
        'reduce'
    """
    if int(lists.estimates.sum()) < threshold:
        return REDUCE
    return DUPLICATES_ONLY if int(lists.duplicates.sum()) < threshold else SCATTER


def cuts_of(lists: Lists) -> Cuts:
    """The files of a column whose lists leave values out."""
    places = np.flatnonzero(lists.cut).tolist()
    return Cuts(
        lists.floors[lists.cut],
        [lists.los[place] for place in places],
        [lists.his[place] for place in places],
        order_key(lists.column),
    )


def reduced(rows: pa.Table, columns: Sequence[Lists], top: int) -> tuple[pa.Table, dict[int, Listed]]:
    """Reduce the lists of data files to those of the table.

    Args:
        rows: Of the schema `LISTED`, of these columns, in any order.
        columns: What the files' lists are.
        top: How many values to keep of a column of which some file has its most frequent ones only.

    Returns:
        Rows of `table-frequencies`, ordered by column, decreasing frequency and value; and what is known of each list.
    """
    wide = [lists.ordinal for lists in columns if is_wide(lists.column)]
    rows = merged(rows, wide).combine_chunks()
    starts = starts_of(rows["column"].to_numpy())
    ends = starts + np.diff(starts, append=rows.num_rows)
    ordinals = rows["column"].take(pa.array(starts)).to_pylist()
    spans = dict(zip(ordinals, zip(starts.tolist(), ends.tolist(), strict=True), strict=True))
    parts, found = [], {}
    for lists in columns:
        start, end = spans.get(lists.ordinal, (0, 0))
        part, found[lists.ordinal] = _finished(rows.slice(start, end - start), lists, top)
        parts.append(part)
    kept = [part for part in parts if part.num_rows]
    return (pa.concat_tables(kept) if kept else TABLE_FREQUENCIES.empty_table()), found


def _finished(rows: pa.Table, lists: Lists, top: int) -> tuple[pa.Table, Listed]:
    if not lists.is_known or lists.column.encoding is None:
        return TABLE_FREQUENCIES.empty_table(), Listed(NONE)
    cuts = cuts_of(lists)
    errors = None
    if len(cuts.floors):
        values = rows[f"value_{lists.column.encoding}"]
        possible = cuts.beside(values.to_pylist() if lists.column.encoding == "binary" else values.to_numpy())
        errors = np.maximum(possible - rows["listed"].to_numpy(), 0)
    table = with_errors(rows, errors)
    if errors is None:
        return table, Listed(COMPLETE, 0, REDUCE, rows.num_rows, once(rows))
    if cuts.most <= 1 and not errors.any():
        # All floors are 1 then, and their sums say how many of the cut lists hold a value.
        return _duplicates(table, int(rows["listed"].to_numpy().sum()), lists)
    return _shortened(table, lists, cuts.most, top)


def once(rows: pa.Table) -> int:
    """How many values of a list occur once."""
    return int((rows["frequency"].to_numpy() == 1).sum())


def with_errors(rows: pa.Table, errors: NDArray[np.int64] | None) -> pa.Table:
    """Rows of `table-frequencies`; an error that is zero is null."""
    values: dict[str, Any] = {name: rows[name] for name in TABLE_FREQUENCIES.names if name in rows.column_names}
    if errors is not None:
        values["error"] = pa.array(errors, mask=errors == 0)
    size = rows.num_rows
    arrays = [values[kind.name] if kind.name in values else pa.nulls(size, kind.type) for kind in TABLE_FREQUENCIES]
    return pa.table(arrays, schema=TABLE_FREQUENCIES)


def _duplicates(rows: pa.Table, listed: int, lists: Lists) -> tuple[pa.Table, Listed]:
    """The list of a column where every value that a file's list leaves out occurs once in the table."""
    distincts = lists.distincts[lists.cut]
    frequent = rows.filter(pc.greater(rows["frequency"], 1))
    if (distincts < 0).any():
        return frequent, Listed(DUPLICATES, 1, REDUCE)
    left_out = int(distincts.sum()) - listed
    distinct, singles = rows.num_rows + left_out, rows.num_rows - frequent.num_rows + left_out
    return frequent, Listed(DUPLICATES, 1, REDUCE, distinct, singles)


def _shortened(rows: pa.Table, lists: Lists, floor: int, top: int) -> tuple[pa.Table, Listed]:
    if TOP not in [kind for kind, cut in zip(lists.kinds, lists.cut, strict=True) if cut] or rows.num_rows <= top:
        return rows, Listed(TOP, floor, REDUCE)
    left_out = rows.slice(top)
    errors = left_out["error"].fill_null(0).to_numpy()
    most = int((left_out["frequency"].to_numpy() + errors).max())
    return rows.slice(0, top), Listed(TOP, max(floor, most), REDUCE)
