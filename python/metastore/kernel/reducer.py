"""Table level of many columns with few data files each: what is done column by column, done for all of them at once."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.format.histogram_bins import EQUI_HEIGHT, EQUI_WIDTH, derive_counts
from metastore.format.histogram_bins import Histogram as Bars
from metastore.format.sortable_values import make_comparison_key
from metastore.format.table_column import Column, decimal_type
from metastore.kernel import quantiles
from metastore.kernel.built_in_statistics import COMPUTED, merge_part_numbers
from metastore.kernel.column_histogram import (
    ColumnHistogram,
    merge_equal_width_bins,
)
from metastore.kernel.column_statistics import ColumnStatistics, sketch_fields
from metastore.kernel.distinct_sketch import DistinctSketch, union_sketches
from metastore.kernel.partial_aggregate import PartialAggregate, _cut
from metastore.kernel.value_counts import (
    merge_value_counts,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.kernel.descriptor import DetailLimits
    from metastore.kernel.distinct_sketch import DistinctSketch

    Longs = NDArray[np.int64]
    Bools = NDArray[np.bool_]


def combine_aggregates(parts: Sequence[PartialAggregate], column: Column, detail: DetailLimits) -> PartialAggregate:
    """The whole of at least one part; with several, distinct values, points and histogram are approximate."""
    if len(parts) == 1:
        return parts[0]
    numbers = np.array([part.number for part in parts])
    sketch = union_sketches([part.sketch for part in parts])
    assert sketch is not None  # noqa: S101 - every part has one
    key = make_comparison_key(column)
    totals = None if parts[0].total is None else [part.total or 0 for part in parts]
    mean = m2 = None
    if parts[0].mean is not None:
        means, m2s = (np.array([getattr(part, name) for part in parts]) for name in ("mean", "m2"))
        mean, m2 = pool_moments(column, numbers, m2s, means, totals)
    steps = _merged_points([part.points for part in parts], numbers)
    return PartialAggregate(
        int(numbers.sum()),
        min((part.lo for part in parts), key=key),
        max((part.hi for part in parts), key=key),
        _between(parts, sketch),
        sketch.error,
        sketch,
        steps,
        sum(part.length for part in parts),
        merge_part_numbers([part.numbers for part in parts]),
        None if totals is None else sum(totals),
        None if parts[0].sum is None else add_sums([part.sum or 0.0 for part in parts]),
        mean,
        m2,
        frequencies=None
        if sortable_values.is_wide_decimal(column)
        else merge_value_counts([part.frequencies for part in parts], detail.top),
        histogram=_of_points(steps, int(numbers.sum()), column, detail),
    )


def _of_points(steps: Any, number: int, column: Column, detail: DetailLimits) -> ColumnHistogram:
    """The histogram of merged points, whose counts are no more than near."""
    edges = _cut(steps) if isinstance(steps, list) else sortable_values.sortable_to_arrow(steps, column)
    heights = derive_counts(number, len(edges) - 1)
    if detail.kind == EQUI_WIDTH:
        widths = merge_equal_width_bins([Bars(EQUI_HEIGHT, edges.to_pylist(), heights)], column, detail.bins)
        if widths is not None:
            kept_edges = pa.array(widths[0], pa.binary()) if column.encoding == "binary" else None
            return ColumnHistogram(EQUI_WIDTH, kept_edges, widths[1])
    return ColumnHistogram(EQUI_HEIGHT, edges, heights).merge_bins(detail.bins)


def _between(parts: Sequence[PartialAggregate], sketch: DistinctSketch) -> int:
    """The estimate, within what the parts' own counts leave possible."""
    counts = [part.distinct for part in parts if part.error == 0]
    most = sum(counts) if len(counts) == len(parts) else sum(part.number for part in parts)
    return min(max(round(sketch.estimate), *counts, 0), most)


def _merged_points(rows: Sequence[Any], numbers: NDArray[np.int64]) -> Any:
    """The quantile points of the whole from those of its parts."""
    steps = len(rows[0]) - 1
    if isinstance(rows[0], list):
        return quantiles.merge_text_points(rows, numbers, steps)
    return quantiles.merge_number_points(np.stack(rows), numbers, steps)


def pool_moments(
    column: Column, numbers: NDArray[np.int64], m2s: NDArray[np.float64], means: Any, totals: Sequence[int] | None
) -> tuple[float, float]:
    """Mean and second moment of the whole from those of parts with at least one value (Chan et al.)."""
    whole = int(numbers.sum())
    with np.errstate(invalid="ignore", over="ignore"):
        if totals is None:
            pivot = means[0] if np.isfinite(means[0]) else 0.0  # infinity less infinity is not a number
            offsets = means - pivot
            mean = float(pivot + np.sum(numbers * offsets) / whole)
        else:
            scale = 10 ** (decimal_type(column.type) or (0, 0))[1]
            total = sum(totals)
            middle, counts = total // whole, numbers.tolist()
            offsets = np.array([(t - middle * n) / (n * scale) for t, n in zip(totals, counts, strict=True)])
            mean = total / (whole * scale)
        offsets = offsets - np.sum(numbers * offsets) / whole
        return mean, float(m2s.sum() + np.sum(numbers * offsets**2))


def add_sums(sums: Sequence[float]) -> float:
    """The sum of sums, infinities and overflow included."""
    try:
        return math.fsum(sums)
    except (OverflowError, ValueError):  # beyond doubles, or infinities of both signs
        with np.errstate(invalid="ignore", over="ignore"):
            return float(np.sum(np.array(sums)))


_ROUNDING = 1 + 1e-9
_SAMPLE = 256  # files: of so many that do not lie apart no others matter
_PERCENTILES = quantiles.PERCENT + 1


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
        avg_len=files.average_length(),
        numbers=files.numbers(),
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

    def average_length(self) -> float | None:
        averages = self._doubles("avg_len")
        if self._numbers is None or averages is None or not len(averages):
            return None
        numbers = self._numbers[self._holding]
        return float(np.sum(averages * numbers) / numbers.sum())

    def numbers(self) -> dict[str, int]:
        known = ((one, self._longs(one.name)) for one in COMPUTED)
        return {one.name: one.merge_numbers(values) for one, values in known if values is not None and len(values)}

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
        if self._column.encoding == "binary" and not sortable_values.is_wide_decimal(self._column):
            values = flat.to_pylist()
            rows = [values[at : at + _PERCENTILES] for at in range(0, len(values), _PERCENTILES)]
            return list(quantiles.merge_text_points(rows, numbers, quantiles.PERCENT))
        raw = flat.to_pylist() if sortable_values.is_wide_decimal(self._column) else flat.to_numpy()
        matrix = sortable_values.stored_to_sortable(raw, self._column).reshape(-1, _PERCENTILES)
        merged = quantiles.merge_number_points(matrix, numbers, quantiles.PERCENT)
        return (
            [sortable_values.sortable_to_stored(v, self._column) for v in merged]
            if sortable_values.is_wide_decimal(self._column)
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
        if sortable_values.is_wide_decimal(self._column):
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


_TOTALS = ("rows", "nulls", "nans", "trues", "compressed_bytes", "uncompressed_bytes")
_POINTS = quantiles.PERCENT + 1
_POINTS_AT_ONCE = 1 << 20


def reduce_columns(
    columns: Sequence[Column], rows: Sequence[pa.Table], sketches: Sequence[Sequence[DistinctSketch | None]]
) -> list[ColumnStatistics | None]:
    """Reduce the statistics of columns' files to those of the table; None of those that have to be merged alone."""
    alike: dict[tuple[str, int], list[int]] = defaultdict(list)
    for place, (column, one) in enumerate(zip(columns, rows, strict=True)):
        if column.encoding is not None and not sortable_values.is_wide_decimal(column) and one.num_rows:
            alike[column.encoding, one.num_rows].append(place)
    found: list[ColumnStatistics | None] = [None] * len(columns)
    for (encoding, files), places in alike.items():
        step = max(_POINTS_AT_ONCE // (files * _POINTS), 1)
        for start in range(0, len(places), step):
            some = _Lines(encoding, files, pa.concat_tables(rows[place] for place in places[start : start + step]))
            lines = np.flatnonzero(some.are_plain).tolist()
            chosen = [places[start + line] for line in lines]
            plain = some if len(lines) == some.number else some.only(some.are_plain)
            for line, place in enumerate(chosen):
                found[place] = plain.reduced(line, columns[place], sketches[place])
    return found


class _Lines:
    """The rows of columns of one encoding as arrays: a line for each column, in it a value for each file."""

    def __init__(self, encoding: str, files: int, rows: pa.Table) -> None:
        self._encoding, self._files, self._rows = encoding, files, rows.combine_chunks()
        self.number = rows.num_rows // files

    def only(self, lines: Bools) -> _Lines:
        return _Lines(self._encoding, self._files, self._rows.filter(pa.array(np.repeat(lines, self._files))))

    @property
    def are_plain(self) -> Bools:
        """Of which columns every file surely holds values, with bounds that compare and no estimated counts."""
        counts = [self._longs(name) for name in ("rows", "nulls", "nans")]
        plain: Bools = np.logical_and.reduce([known for _, known in counts])
        rows, nulls, nans = (values for values, _ in counts)
        plain &= (rows - nulls - nans > 0).all(axis=1) & ~self._array("distinct_error", 0.0)[0].any(axis=1)
        if self._encoding == "double":
            for end in ("lo", "hi"):
                plain &= ~np.isnan(self._array(f"{end}_double", 0.0)[0]).any(axis=1)
        return plain

    def reduced(self, line: int, column: Column, sketches: Sequence[DistinctSketch | None]) -> ColumnStatistics:
        """The statistics of a column of which all files hold values."""
        sketch = union_sketches(sketches) if len(sketches) == self._files else None
        totals: dict[str, Any] = {name: sums[line] for name, sums in self._totals.items()}
        return ColumnStatistics(
            encoding=column.encoding,
            **totals,
            **self._bounds_of(line),
            **self._moments(line, column),
            avg_len=self._average_lengths[line],
            numbers={name: numbers[line] for name, (numbers, known) in self._computed.items() if known[line]},
            percentiles=self._percentiles[line],
            **sketch_fields(sketch),
            **self._distinct(line, sketch),
        )

    @cached_property
    def _totals(self) -> dict[str, list[int | None]]:
        found = {}
        for name in _TOTALS:
            values, known = self._longs(name)
            sums = values.sum(axis=1).tolist()
            found[name] = [one if is_known else None for one, is_known in zip(sums, known.tolist(), strict=True)]
        return found

    @cached_property
    def _numbers(self) -> Longs:
        """How many values each file holds, null and NaN excluded."""
        rows, nulls, nans = (self._longs(name)[0] for name in ("rows", "nulls", "nans"))
        return rows - nulls - nans

    def _bounds_of(self, line: int) -> dict[str, Any]:
        return {
            name: value
            for (name, values), is_known in zip(self._bounds.items(), self._are_bounded, strict=True)
            if is_known[line]
            for name, value in ((name, values[0][line]), (f"{name}_exact", values[1][line]))
        }

    @cached_property
    def _are_bounded(self) -> tuple[Bools, Bools]:
        lo, hi = (self._valid(f"{end}_{self._encoding}") for end in ("lo", "hi"))
        return lo, hi

    @cached_property
    def _bounds(self) -> dict[str, tuple[list[Any], list[bool]]]:
        return {"lo": self._ends("lo", min, np.argmin), "hi": self._ends("hi", max, np.argmax)}

    def _ends(self, end: str, choose: Any, place_of: Any) -> tuple[list[Any], list[bool]]:
        """The outermost bound of each column, and whether it is exact."""
        exact = self._column(f"{end}_exact").fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - of pyarrow
        exact = exact.reshape(-1, self._files)
        if self._encoding == "binary":
            lines, known = self._texts[end], self._valid(f"{end}_binary").tolist()
            best = [choose(line) if is_known else None for line, is_known in zip(lines, known, strict=True)]
            is_best = np.array([[value == one for value in line] for line, one in zip(lines, best, strict=True)])
            return best, (exact & is_best).any(axis=1).tolist()
        values = self._array(f"{end}_{self._encoding}", 0)[0]
        outer = values[np.arange(self.number), place_of(values, axis=1)]
        return outer.tolist(), (exact & (values == outer[:, None])).any(axis=1).tolist()

    @cached_property
    def _texts(self) -> dict[str, list[list[Any]]]:
        return {end: _chunks(self._column(f"{end}_binary").to_pylist(), self._files) for end in ("lo", "hi")}

    def _moments(self, line: int, column: Column) -> dict[str, Any]:
        exact = self._sums[line]
        totals = None if None in exact else [int(one) for one in exact]
        found: dict[str, Any] = {} if totals is None else {"sum_exact": sum(totals)}
        arrays = self._doubles
        if not all(known[line] for _, known in arrays):
            return found
        total, means, m2s = (values[line] for values, _ in arrays)
        mean, m2 = pool_moments(column, self._numbers[line], m2s, means, totals)
        return {**found, "sum": add_sums(total.tolist()), "mean": mean, "m2": m2}

    @cached_property
    def _sums(self) -> list[list[Any]]:
        return _chunks(self._column("sum_exact").to_pylist(), self._files)

    @cached_property
    def _doubles(self) -> list[tuple[NDArray[np.float64], Bools]]:
        return [self._array(name, 0.0) for name in ("sum", "mean", "m2")]

    @cached_property
    def _average_lengths(self) -> list[float | None]:
        averages, known = self._array("avg_len", 0.0)
        means = (averages * self._numbers).sum(axis=1) / self._numbers.sum(axis=1)
        return [mean if is_known else None for mean, is_known in zip(means.tolist(), known.tolist(), strict=True)]

    @cached_property
    def _computed(self) -> dict[str, tuple[list[int], Bools]]:
        lines = ((one, *self._longs(one.name)) for one in COMPUTED)
        return {one.name: (one.merge_numbers(values), known) for one, values, known in lines}

    @cached_property
    def _percentiles(self) -> list[list[Any] | None]:
        lists = self._column(f"percentiles_{self._encoding}")
        are_whole = pc.equal(pc.list_value_length(lists), _POINTS).fill_null(False)  # noqa: FBT003 - of pyarrow
        known = are_whole.to_numpy(zero_copy_only=False).reshape(-1, self._files).all(axis=1)
        flat = lists.filter(pa.array(np.repeat(known, self._files))).flatten()
        merged = iter(
            _chunks(flat.to_pylist(), _POINTS) if self._files == 1 else self._merged(flat, self._numbers[known])
        )
        return [next(merged) if is_known else None for is_known in known.tolist()]

    def _merged(self, flat: pa.Array, numbers: Longs) -> list[list[Any]]:
        """The percentiles of each column from those of its files."""
        if not len(flat):
            return []
        if self._encoding != "binary":
            values = flat.to_numpy() + 0
            return list(
                quantiles.merge_point_lines(
                    values.reshape(-1, self._files, _POINTS), numbers, quantiles.PERCENT
                ).tolist()
            )
        encoded = flat.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        codes = ranks[encoded.indices.to_numpy()].reshape(-1, self._files, _POINTS)
        texts = encoded.dictionary.take(pa.array(order)).to_pylist()
        return [
            [texts[code] for code in line]
            for line in quantiles.merge_point_lines(codes, numbers, quantiles.PERCENT).tolist()
        ]

    def _distinct(self, line: int, sketch: DistinctSketch | None) -> dict[str, Any]:
        counts, known = self._longs("distinct")
        has_nan = self._longs("nans")[0][line] > 0
        if known[line] and (self._files == 1 or self._are_apart(line)):
            return {"distinct": int(counts[line].sum() - has_nan.sum() + has_nan.any()), "distinct_error": 0.0}
        if sketch is None:
            return {}
        estimate = sketch.estimate
        if not sketch.is_exact and known[line]:
            estimate = min(max(estimate, int(counts[line].max())), int(counts[line].sum()))
        return {"distinct": round(estimate), "distinct_error": sketch.error}

    def _are_apart(self, line: int) -> bool:
        """Whether no value can lie in two files."""
        if not all(known[line] for known in self._are_bounded):
            return False
        if self._encoding == "binary":
            ranges = sorted(zip(self._texts["lo"][line], self._texts["hi"][line], strict=True))
            return all(hi < lo for (_, hi), (lo, _) in pairwise(ranges))
        los, his = (self._array(f"{end}_{self._encoding}", 0)[0][line] for end in ("lo", "hi"))
        return are_ranges_disjoint(los, his)

    def _longs(self, name: str) -> tuple[Longs, Bools]:
        return self._array(name, 0)

    def _array(self, name: str, missing: Any) -> tuple[NDArray[Any], Bools]:
        """The values of a field, a line for each column, and of which columns all are known."""
        if name not in self._arrays:
            column = self._column(name)
            values = (column.fill_null(missing) if column.null_count else column).to_numpy()
            if pa.types.is_integer(column.type):
                values = values.astype(np.int64)
            self._arrays[name] = values.reshape(-1, self._files), self._valid(name)
        return self._arrays[name]

    @cached_property
    def _arrays(self) -> dict[str, tuple[NDArray[Any], Bools]]:
        return {}

    def _valid(self, name: str) -> Bools:
        """Of which columns the field is known of all files."""
        column = self._column(name)
        if not column.null_count:
            return np.ones(self.number, np.bool_)
        known: Bools = column.is_valid().to_numpy(zero_copy_only=False).reshape(-1, self._files).all(axis=1)
        return known

    def _column(self, name: str) -> pa.Array:
        return self._rows[name].combine_chunks()


def _chunks(values: list[Any], length: int) -> list[list[Any]]:
    return [values[start : start + length] for start in range(0, len(values), length)]
