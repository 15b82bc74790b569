"""Table level: the statistics of many data files reduced to those of the table, column by column."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore._analyze.kernel import points, stored
from metastore._analyze.kernel.parts import add_sums, make_comparison_key, pool_moments
from metastore._analyze.kernel.sketch import DistinctSketch, parse_sketches, union_sketches
from metastore._analyze.kernel.statistics import ColumnStatistics, sketch_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore._format.columns import Column


_ROUNDING = 1 + 1e-9
_SAMPLE = 256  # files: of so many that do not lie apart no others matter
_PERCENTILES = points.PERCENT + 1


def reduce_column(column: Column, rows: pa.Table, thetas: Sequence[bytes | None]) -> ColumnStatistics:
    """Reduce the statistics of a column's files to those of the table.

    What is unknown of one file is unknown of the table. Bounds, counts, sums and moments are exact when the files'
    are. Distinct values are exact when no sketch estimates, when the files' ranges do not overlap, or when there is
    one file; percentiles are merged from those of the files.
    """
    found = merge_column(column, rows, parse_sketches(thetas))
    return replace(found, **count_distinct(column, rows, found.sketch))


def merge_column(column: Column, rows: pa.Table, sketches: Sequence[DistinctSketch | None]) -> ColumnStatistics:
    """Reduce the statistics of a column's files, or of groups of them, but for the number of distinct values."""
    files = _Files(column, rows)
    common: dict[str, Any] = {
        "encoding": column.encoding,
        **{name: files.total(name) for name in ("rows", "nulls", "nans", "trues", "compressed_bytes")},
        "uncompressed_bytes": files.total("uncompressed_bytes"),
    }
    if column.encoding is None:
        return ColumnStatistics(**common)
    sketch = union_sketches(sketches) if len(sketches) == rows.num_rows else None
    return ColumnStatistics(
        **common,
        **files.bounds(),
        **files.moments(),
        **files.lengths(),
        percentiles=files.percentiles(),
        **sketch_fields(sketch),
    )


def count_distinct(column: Column, rows: pa.Table, sketch: DistinctSketch | None) -> dict[str, Any]:
    """The number of distinct values, and its error: exact when no sketch estimates, or the files lie apart."""
    if column.encoding is None:
        return {}
    return _Files(column, rows).distinct(sketch)


class _Files:
    """The rows of a column's files as numpy arrays."""

    def __init__(self, column: Column, rows: pa.Table) -> None:
        self._column = column
        self._table, self._names = rows, frozenset(rows.column_names)

    @cached_property
    def _numbers(self) -> NDArray[np.int64] | None:
        """How many values each file holds, null and NaN excluded."""
        count, nulls, nans = (self._known(name) for name in ("rows", "nulls", "nans"))
        return None if count is None or nulls is None or nans is None else count - nulls - nans

    @cached_property
    def _holding(self) -> NDArray[np.bool_]:
        """Which files may hold a value: others say nothing of values."""
        return np.ones(self._table.num_rows, np.bool_) if self._numbers is None else self._numbers > 0

    @cached_property
    def _held(self) -> pa.Table:
        return self._table if self._holding.all() else self._table.filter(pa.array(self._holding))

    def total(self, name: str) -> int | None:
        values = self._known(name)
        return None if values is None else int(values.sum())

    def bounds(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, choose in (("lo", min), ("hi", max)):
            values = self._values(name)
            if not values or None in values:
                continue
            key = make_comparison_key(self._column)
            best = choose(values, key=key)
            exact = self._of_holding(f"{name}_exact")
            found[name] = best
            found[f"{name}_exact"] = any(e for v, e in zip(values, exact, strict=True) if v == best)
        return found

    def distinct(self, sketch: DistinctSketch | None) -> dict[str, Any]:
        alone = self._apart()
        if alone or sketch is None:
            return alone
        estimate = sketch.estimate
        counts = None if sketch.is_exact else self._exact_counts()
        if counts is not None:
            estimate = min(max(estimate, pc.max(counts).as_py()), pc.sum(counts).as_py())
        return {"distinct": round(estimate), "distinct_error": sketch.error}

    def _apart(self) -> dict[str, Any]:
        """What follows if no value can lie in two files; seen in a few of many where it is not so."""
        if self._table.num_rows > _SAMPLE and not _Files(self._column, self._table.slice(0, _SAMPLE)).are_apart():
            return {}
        counts, nans = self._longs("distinct"), self._known("nans")
        if nans is None or counts is None or not self.are_apart():
            return {}
        errors = self._held_errors()
        alone = int(counts.sum()) - int((nans[self._holding] > 0).sum()) + bool((nans > 0).any())
        spread = float(np.linalg.norm(counts * errors))
        return {"distinct": alone, "distinct_error": spread / alone if spread else 0.0}

    def _exact_counts(self) -> pa.ChunkedArray | None:
        """The distinct values of each file, if all are counted; those of files without values do no harm."""
        if not {"distinct", "distinct_error"} <= self._names or pc.max(self._table.column("distinct_error")).as_py():
            return None
        counts = self._table.column("distinct")
        if counts.null_count:
            counts = self._held.column("distinct")
        return None if counts.null_count else counts

    def moments(self) -> dict[str, Any]:
        exact = self._of_holding("sum_exact")
        totals = [int(one) for one in exact] if exact and None not in exact else None
        found: dict[str, Any] = {} if totals is None else {"sum_exact": sum(totals)}
        sums = [self._doubles(name) for name in ("sum", "mean", "m2")]
        if self._numbers is None or any(one is None or not len(one) for one in sums):
            return found
        total, means, m2s = (one for one in sums if one is not None)
        mean, m2 = pool_moments(self._column, self._numbers[self._holding], m2s, means, totals)
        return {**found, "sum": add_sums(total.tolist()), "mean": mean, "m2": m2}

    def lengths(self) -> dict[str, Any]:
        averages, longest = self._doubles("avg_len"), self._longs("max_len")
        if self._numbers is None or averages is None or longest is None or not len(longest):
            return {}
        numbers = self._numbers[self._holding]
        return {"avg_len": float(np.sum(averages * numbers) / numbers.sum()), "max_len": int(longest.max())}

    def percentiles(self) -> list[Any] | None:
        name = f"percentiles_{self._column.encoding}"
        if self._numbers is None or name not in self._names:
            return None
        lists = self._held.column(name).combine_chunks()
        if not len(lists) or lists.null_count or (np.diff(lists.offsets.to_numpy()) != _PERCENTILES).any():
            return None
        if len(lists) == 1:
            return list(lists[0].as_py())
        return self._merged(lists.flatten())

    def _merged(self, flat: pa.Array) -> list[Any]:
        numbers = self._numbers[self._holding] if self._numbers is not None else np.empty(0, np.int64)
        if self._column.encoding == "binary" and not stored.is_wide_decimal(self._column):
            values = flat.to_pylist()
            rows = [values[at : at + _PERCENTILES] for at in range(0, len(values), _PERCENTILES)]
            return list(points.merge_text_points(rows, numbers, points.PERCENT))
        raw = flat.to_pylist() if stored.is_wide_decimal(self._column) else flat.to_numpy()
        matrix = stored.stored_to_sortable(raw, self._column).reshape(-1, _PERCENTILES)
        merged = points.merge_number_points(matrix, numbers, points.PERCENT)
        return (
            [stored.sortable_to_stored(v, self._column) for v in merged]
            if stored.is_wide_decimal(self._column)
            else merged.tolist()
        )

    def are_apart(self) -> bool:
        """Whether no value can lie in two files."""
        if self._held.num_rows <= 1:
            return True
        ends = [f"{name}_{self._column.encoding}" for name in ("lo", "hi")]
        if not set(ends) <= set(self._names) or any(self._held.column(end).null_count for end in ends):
            return False
        los, his = map(self._held.column, ends)
        if self._column.encoding != "binary":
            return are_ranges_disjoint(los.to_numpy(), his.to_numpy())
        if stored.is_wide_decimal(self._column):
            key = make_comparison_key(self._column)
            ranges = sorted((key(lo), key(hi)) for lo, hi in zip(los.to_pylist(), his.to_pylist(), strict=True))
            return all(hi < lo for (_, hi), (lo, _) in itertools.pairwise(ranges))
        order = pc.sort_indices(los)
        return bool(pc.all(pc.less(his.take(order).slice(0, len(order) - 1), los.take(order).slice(1))).as_py())

    def _values(self, name: str) -> list[Any]:
        return self._of_holding(f"{name}_{self._column.encoding}")

    def _of_holding(self, name: str) -> list[Any]:
        if name not in self._names:
            return [None] * int(self._holding.sum())
        return list(self._held.column(name).to_pylist())

    def _longs(self, name: str) -> NDArray[np.int64] | None:
        if name not in self._names or self._held.column(name).null_count:
            return None
        return np.asarray(self._held.column(name).to_numpy(), dtype=np.int64)

    def _held_errors(self) -> NDArray[np.float64]:
        if "distinct_error" not in self._names:
            return np.zeros(self._held.num_rows)
        errors = self._held.column("distinct_error")
        return np.asarray((errors.fill_null(0.0) if errors.null_count else errors).to_numpy(), dtype=np.float64)

    def _known(self, name: str) -> NDArray[np.int64] | None:
        if name not in self._names or self._table.column(name).null_count:
            return None
        return np.asarray(self._table.column(name).to_numpy(), dtype=np.int64)

    def _doubles(self, name: str) -> NDArray[np.float64] | None:
        if name not in self._names:
            return None
        values = self._held.column(name)
        return None if values.null_count else np.asarray(values.to_numpy(), dtype=np.float64)


def are_ranges_disjoint(los: NDArray[Any], his: NDArray[Any]) -> bool:
    """Whether no number can lie in two of these ranges."""
    with np.errstate(over="ignore", invalid="ignore"):  # of infinities
        widths = (his.astype(np.float64) - los).sum()
        if widths > (float(his.max()) - float(los.min())) * _ROUNDING:
            return False
    order = np.argsort(los, kind="stable")
    return bool((his[order][:-1] < los[order][1:]).all())
