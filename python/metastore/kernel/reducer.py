"""The reducer: merges statistics of data files, or of groups of them, into those of the table, many columns at once.

The rows of a column are a segment of the rows of all columns of its kind. A field that is unknown of one file is
unknown of the table. Bounds, counts, sums and moments are exact when the files' are. Distinct values are exact when no
sketch estimates, when the files' ranges do not overlap, or when there is one file; percentiles are merged from those of
the files.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format import sortable_values
from metastore.kernel import quantiles
from metastore.kernel.binary_values import rank_values
from metastore.kernel.built_in_statistics import COMPUTED
from metastore.kernel.column_statistics import ColumnStatistics, sketch_fields
from metastore.kernel.distinct_sketch import DistinctSketch, union_sketches
from metastore.kernel.moments import add_sums, pool_moments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column

    Longs = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Sketches = Sequence[DistinctSketch | None]

_T = TypeVar("_T")
_TOTALS = ("rows", "nulls", "nans", "trues", "compressed_bytes", "uncompressed_bytes")
_INFINITIES = ("negative_infinities", "positive_infinities")
_POINTS = quantiles.PERCENT + 1
_POINTS_AT_ONCE = 1 << 20
_ROUNDING = 1 + 1e-9
_PLACEHOLDER = bytes(16)
_SAMPLE = 256  # files: if these overlap, no further ones have to be compared


def reduce_columns(
    columns: Sequence[Column], rows: Sequence[pa.Table], sketches: Sequence[Sketches]
) -> list[ColumnStatistics]:
    """Reduce the statistics of columns' files to those of the table."""
    reduced: dict[int, ColumnStatistics] = {}
    for batch in _batches(columns, rows):
        segments = _Segments(_select(columns, batch), _select(rows, batch))
        statistics = segments.reduce(_select(sketches, batch))
        reduced.update(zip(batch, statistics, strict=True))
    return _select(reduced, range(len(columns)))


def _select(values: Mapping[int, _T] | Sequence[_T], numbers: Iterable[int]) -> list[_T]:
    return list(map(values.__getitem__, numbers))


def merge_column(column: Column, rows: pa.Table, sketches: Sketches) -> ColumnStatistics:
    """Reduce the statistics of a column's files, or of groups of them, but for the number of distinct values."""
    return _Segments([column], [rows]).merge([sketches])[0][0]


def count_distinct(column: Column, rows: pa.Table, sketch: DistinctSketch | None) -> dict[str, Any]:
    """Count the distinct values, and return the error: exact if no sketch estimates, or the files lie disjoint."""
    return _Segments([column], [rows]).count_distinct([sketch])[0]


def are_ranges_disjoint(los: NDArray[Any], his: NDArray[Any]) -> bool:
    """Return whether no number can lie in two of these ranges."""
    if len(los) <= 1:
        return True
    with np.errstate(over="ignore", invalid="ignore"):  # of infinities
        widths = (his.astype(np.float64) - los).sum()
        if widths > (float(his.max()) - float(los.min())) * _ROUNDING:
            return False
    order = np.argsort(los, kind="stable")
    return bool((his[order][:-1] < los[order][1:]).all())


def _batches(columns: Sequence[Column], rows: Sequence[pa.Table]) -> Iterator[list[int]]:
    """Yield the numbers of columns that are reduced at once: of one kind, and not too many points."""
    by_kind: dict[tuple[str | None, bool], list[int]] = defaultdict(list)
    for number, column in enumerate(columns):
        by_kind[column.encoding, sortable_values.is_wide_decimal(column)].append(number)
    for numbers in by_kind.values():
        sums = np.cumsum([rows[number].num_rows * _POINTS for number in numbers]) // _POINTS_AT_ONCE
        ends = np.flatnonzero(np.diff(sums, append=sums[-1] + 1)) + 1
        for batch in np.split(numbers, ends[:-1]):
            yield batch.tolist()


class _Rows:
    """Rows one behind the other, and the segment of each."""

    def __init__(self, rows: pa.Table, owners: Longs, number: int) -> None:
        self.rows = rows
        self.owners = owners
        self._number = number
        self.ends = np.searchsorted(owners, np.arange(number + 1))
        self.sizes = np.diff(self.ends)
        self._filled = np.flatnonzero(self.sizes)
        self._names = frozenset(rows.column_names)
        self._arrays: dict[str, NDArray[Any]] = {}

    def filter(self, chosen: Bools) -> _Rows:
        if chosen.all():
            return self
        return _Rows(self.rows.filter(pa.array(chosen)), self.owners[chosen], self._number)

    def column(self, name: str) -> pa.Array:
        return self.rows[name].combine_chunks()

    def cut(self, values: Any, segment: int) -> Any:
        """Return the values of one segment."""
        return values[self.ends[segment] : self.ends[segment + 1]]

    def reduce(self, ufunc: np.ufunc, values: NDArray[Any], empty: Any) -> NDArray[Any]:
        """Return one value for each segment."""
        if len(self._filled) == self._number:
            return ufunc.reduceat(values, self.ends[:-1])
        reduced = np.full(self._number, empty, values.dtype)
        if len(self._filled):
            reduced[self._filled] = ufunc.reduceat(values, self.ends[self._filled])
        return reduced

    def are_known(self, *names: str) -> Bools:
        """Return whether all rows of each segment have these fields."""
        if not self._names.issuperset(names):
            return np.zeros(self._number, np.bool_)
        are_known = np.ones(self._number, np.bool_)
        for name in names:
            column = self.rows[name]
            if column.null_count:
                are_known &= self.reduce(np.logical_and, _flags(column.is_valid()), empty=True)
        return are_known

    def array(self, name: str) -> NDArray[Any]:
        """Return the numbers of a field, 0 for unknown ones."""
        if name not in self._names:
            return np.zeros(len(self.owners), np.int64)
        if name not in self._arrays:
            self._arrays[name] = _to_numbers(self.rows[name])
        return self._arrays[name]


class _CountedRows(NamedTuple):
    """Rows of files, and how many values each file holds; 0 if that is unknown."""

    rows: _Rows
    counts: Longs


class _Segments:
    """The rows of columns of one encoding."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[pa.Table]) -> None:
        self._columns = columns
        self._tables = rows
        self._encoding = columns[0].encoding
        self._number = len(columns)
        owners = np.repeat(np.arange(self._number), [table.num_rows for table in rows])
        table = rows[0]
        if len(rows) > 1:
            table = pa.concat_tables(rows, promote_options="default")
        self._all = _Rows(table, owners, self._number)

    def reduce(self, sketches: Sequence[Sketches]) -> list[ColumnStatistics]:
        """Return the statistics of each column."""
        merged = self.merge(sketches)
        distincts = self.count_distinct([sketch for _, sketch in merged])
        return [replace(statistics, **distinct) for (statistics, _), distinct in zip(merged, distincts, strict=True)]

    def merge(self, sketches: Sequence[Sketches]) -> list[tuple[ColumnStatistics, DistinctSketch | None]]:
        """Merge the statistics of each column but the number of distinct values, and the sketch that counts these."""
        totals = _list_records({name: self._total(name) for name in _TOTALS})
        if self._encoding is None:
            return [(ColumnStatistics(encoding=None, **total), None) for total in totals]
        bounds = _list_records(self._bounds())
        numbers = _list_records(self._computed())
        averages = self._average_lengths()
        percentiles = self._percentiles()
        merged = []
        for segment, sketch in enumerate(self._union_sketches(sketches)):
            statistics = ColumnStatistics(
                encoding=self._encoding,
                **totals[segment],
                **bounds[segment],
                **self._moments(segment),
                avg_len=averages[segment],
                numbers=_drop_unknown(numbers[segment]),
                percentiles=percentiles[segment],
                **sketch_fields(sketch),
            )
            merged.append((statistics, sketch))
        return merged

    def _union_sketches(self, sketches: Sequence[Sketches]) -> list[DistinctSketch | None]:
        """Return the sketch of each column, None if not all rows have one."""
        unions: list[DistinctSketch | None] = [None] * self._number
        for segment, file_sketches in enumerate(sketches):
            if len(file_sketches) == self._all.sizes[segment]:
                unions[segment] = union_sketches(file_sketches)
        return unions

    def count_distinct(self, sketches: Sketches) -> list[dict[str, Any]]:
        """Return the number of distinct values of each column, and its error; no fields if it is unknown."""
        if self._encoding is None:
            return [{}] * self._number
        disjoint = self._find_disjoint()
        if disjoint.any():
            disjoint &= self._values.rows.are_known("distinct") & self._all.are_known("nans")
        distincts: list[dict[str, Any]] = [{}] * self._number
        for segment, sketch in enumerate(sketches):
            if disjoint[segment]:
                distincts[segment] = self._add_distinct(segment)
            elif sketch is not None:
                distincts[segment] = self._estimate(segment, sketch)
        return distincts

    @cached_property
    def _are_counted(self) -> Bools:
        """Whether the number of values in each file of a column is known."""
        return self._all.are_known("rows", "nulls", "nans")

    @cached_property
    def _values(self) -> _CountedRows:
        """The files that may hold a value other than null and NaN."""
        nulls_and_nans = self._all.array("nulls") + self._all.array("nans")
        return self._select_counted(self._all, self._all.array("rows") - nulls_and_nans)

    @cached_property
    def _finite(self) -> _CountedRows:
        """The files that may hold a finite value: only these have sums."""
        below, above = (self._values.rows.array(name) for name in _INFINITIES)
        return self._select_counted(self._values.rows, self._values.counts - below - above)

    def _select_counted(self, rows: _Rows, counts: Longs) -> _CountedRows:
        """Select the files with a count above 0, or whose count is unknown."""
        are_counted = self._are_counted[rows.owners]
        selected = (counts > 0) | ~are_counted
        return _CountedRows(rows=rows.filter(selected), counts=np.where(are_counted, counts, 0)[selected])

    def _are_known(self, *names: str) -> Bools:
        """Return whether a column has files that may hold values, all with these fields."""
        return self._values.rows.are_known(*names) & (self._values.rows.sizes > 0)

    def _total(self, name: str) -> list[int | None]:
        return _where(self._all.are_known(name), self._all.reduce(np.add, self._all.array(name), 0).tolist())

    def _computed(self) -> dict[str, list[int | None]]:
        rows = self._values.rows
        computed = {}
        for statistic in COMPUTED:
            merged = rows.reduce(statistic.ufunc, rows.array(statistic.name), 0)
            computed[statistic.name] = _where(self._are_known(statistic.name), merged.tolist())
        return computed

    def _bounds(self) -> dict[str, list[Any]]:
        rows = self._values.rows
        bounds: dict[str, list[Any]] = {}
        for end, ufunc in (("lo", np.minimum), ("hi", np.maximum)):
            are_bounded = self._are_bounded[end]
            values = self._ends[end]
            best = rows.reduce(ufunc, values, 0)
            exact = rows.column(f"{end}_exact").fill_null(False)  # noqa: FBT003 - of pyarrow
            is_exact_best = _flags(exact) & (values == best[rows.owners])
            is_exact = rows.reduce(np.logical_or, is_exact_best, empty=False)
            bounds[end] = _where(are_bounded, self._decode_ends(best))
            bounds[f"{end}_exact"] = _where(are_bounded, is_exact.tolist())
        return bounds

    @cached_property
    def _are_bounded(self) -> dict[str, Bools]:
        """Whether all files of a column that may hold values have a lower and an upper bound."""
        are_bounded = {end: self._are_known(f"{end}_{self._encoding}") for end in ("lo", "hi")}
        if self._encoding == "double":
            for end in ("lo", "hi"):
                is_number = ~np.isnan(self._values.rows.array(f"{end}_double"))
                are_bounded[end] &= self._values.rows.reduce(np.logical_and, is_number, empty=True)
        return are_bounded

    @cached_property
    def _ends(self) -> dict[str, NDArray[Any]]:
        """Bounds as numbers that compare as they do, 0 for unknown ones."""
        if self._encoding != "binary":
            return {end: self._values.rows.array(f"{end}_{self._encoding}") for end in ("lo", "hi")}
        codes, _ = self._texts
        los, his = np.split(codes, 2)
        return {"lo": los, "hi": his}

    @cached_property
    def _texts(self) -> tuple[Longs, list[bytes]]:
        rows = self._values.rows
        bounds = [rows.column(f"{end}_binary").fill_null(_PLACEHOLDER) for end in ("lo", "hi")]
        return self._rank(pa.concat_arrays(bounds))

    def _decode_ends(self, values: NDArray[Any]) -> list[Any]:
        if self._encoding != "binary":
            return list(values.tolist())
        _, texts = self._texts
        return _select(texts, values.tolist())

    def _rank(self, values: pa.Array) -> tuple[Longs, list[bytes]]:
        """Return the ranks of stored values among the distinct ones, and these in their order."""
        ranks, distinct = rank_values(values, self._columns[0])
        return ranks, distinct.to_pylist() or [_PLACEHOLDER]

    def _moments(self, segment: int) -> dict[str, Any]:
        rows = self._finite.rows
        column = self._columns[segment]
        moments: dict[str, Any] = {}
        exact_sums = rows.cut(self._exact_sums, segment)
        totals = None
        if exact_sums and None not in exact_sums:
            totals = list(map(int, exact_sums))
            moments["sum_exact"] = sum(totals)
        if self._are_summed[segment] and self._are_counted[segment]:
            counts = rows.cut(self._finite.counts, segment)
            sums, means, m2s = (rows.cut(values, segment) for values in self._doubles)
            moments["sum"] = add_sums(sums.tolist())
            moments["mean"], moments["m2"] = pool_moments(column, counts, m2s, means, totals)
        return moments

    @cached_property
    def _exact_sums(self) -> list[Any]:
        return list(self._finite.rows.column("sum_exact").to_pylist())

    @cached_property
    def _are_summed(self) -> Bools:
        """Whether all files of a column that may hold finite values have sums."""
        rows = self._finite.rows
        return rows.are_known("sum", "mean", "m2") & (rows.sizes > 0)

    @cached_property
    def _doubles(self) -> list[NDArray[np.float64]]:
        return [self._finite.rows.array(name).astype(np.float64) for name in ("sum", "mean", "m2")]

    def _average_lengths(self) -> list[float | None]:
        rows, counts = self._values
        lengths = rows.array("avg_len") * counts
        numbers = rows.reduce(np.add, counts, 0)
        averages: list[float | None] = [None] * self._number
        are_known = self._are_known("avg_len") & self._are_counted
        for segment in np.flatnonzero(are_known).tolist():
            averages[segment] = float(np.sum(rows.cut(lengths, segment)) / numbers[segment])
        return averages

    def _percentiles(self) -> list[list[Any] | None]:
        rows, counts = self._values
        name = f"percentiles_{self._encoding}"
        percentiles: list[list[Any] | None] = [None] * self._number
        are_known = self._are_known(name) & self._are_counted
        if not are_known.any():
            return percentiles
        lists = rows.column(name)
        are_complete = pc.equal(pc.list_value_length(lists), _POINTS).fill_null(False)  # noqa: FBT003 - of pyarrow
        are_known &= rows.reduce(np.logical_and, _flags(are_complete), empty=True)
        is_merged = are_known[rows.owners]
        points = lists.filter(pa.array(is_merged)).flatten()
        merged = self._merge_points(points, rows.sizes[are_known], counts[is_merged])
        for segment, segment_points in zip(np.flatnonzero(are_known).tolist(), merged, strict=True):
            percentiles[segment] = segment_points
        return percentiles

    def _merge_points(self, flat: pa.Array, sizes: Longs, numbers: Longs) -> Iterator[list[Any]]:
        """Yield the percentiles of each column from those of its files; those of a single file as they are."""
        texts = None
        if self._encoding == "binary":
            codes, texts = self._rank(flat)
        else:
            codes = flat.to_numpy() + 0
        points = codes.reshape(-1, _POINTS)
        end = 0
        for size in sizes.tolist():
            start = end
            end = end + size
            if size == 1:
                yield flat.slice(start * _POINTS, _POINTS).to_pylist()
                continue
            merged = quantiles.merge_number_points(points[start:end], numbers[start:end], quantiles.PERCENT).tolist()
            if texts is not None:
                merged = _select(texts, merged)
            yield merged

    def _find_disjoint(self) -> Bools:
        """Return whether no value of a column can lie in two files; of many files mostly a few show that it can."""
        if (self._all.sizes <= _SAMPLE).all():
            return self.are_disjoint()
        samples = [table.slice(0, _SAMPLE) for table in self._tables]
        are_disjoint = _Segments(self._columns, samples).are_disjoint()
        for segment in np.flatnonzero(are_disjoint & (self._all.sizes > _SAMPLE)).tolist():
            are_disjoint[segment] = _Segments([self._columns[segment]], [self._tables[segment]]).are_disjoint()[0]
        return are_disjoint

    def are_disjoint(self) -> Bools:
        """Return whether no value of a column can lie in two files."""
        rows = self._values.rows
        are_disjoint = rows.sizes <= 1
        are_bounded = self._are_bounded["lo"] & self._are_bounded["hi"]
        for segment in np.flatnonzero(are_bounded & ~are_disjoint).tolist():
            los = rows.cut(self._ends["lo"], segment)
            his = rows.cut(self._ends["hi"], segment)
            are_disjoint[segment] = are_ranges_disjoint(los, his)
        return are_disjoint

    def _add_distinct(self, segment: int) -> dict[str, Any]:
        """Add up the distinct values of files that share none but NaN."""
        rows = self._values.rows
        counts = rows.cut(rows.array("distinct"), segment)
        errors = rows.cut(rows.array("distinct_error"), segment)
        nans = rows.cut(rows.array("nans"), segment)
        distinct = int(counts.sum()) - int((nans > 0).sum())
        distinct += bool((self._all.cut(self._all.array("nans"), segment) > 0).any())
        spread = float(np.linalg.norm(counts * errors))
        return {"distinct": distinct, "distinct_error": spread / max(distinct, 1)}

    def _estimate(self, segment: int, sketch: DistinctSketch) -> dict[str, Any]:
        """Return the sketch's estimate, within the limits that exact counts of the files set."""
        estimate = round(sketch.estimate)
        if not sketch.is_exact:
            counts = self._exact_counts(segment) or [estimate]
            estimate = min(max(estimate, *counts), sum(counts))
        return {"distinct": estimate, "distinct_error": sketch.error}

    def _exact_counts(self, segment: int) -> Sequence[int]:
        """Return the distinct values of each file, if all are counted; those of files without values do no harm."""
        if self._all.cut(self._all.array("distinct_error"), segment).any():
            return ()
        for rows in (self._all, self._values.rows):
            if rows.are_known("distinct")[segment]:
                return list(rows.cut(rows.array("distinct"), segment).tolist())
        return ()


def _list_records(fields: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the fields of each segment."""
    rows = zip(*fields.values(), strict=True)
    return [dict(zip(fields, row, strict=True)) for row in rows]


def _drop_unknown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _where(are_known: Bools, values: Sequence[Any]) -> list[Any]:
    """Replace unknown values by None."""
    known_values = list(values)
    for position in np.flatnonzero(~are_known).tolist():
        known_values[position] = None
    return known_values


def _to_numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    if column.null_count:
        column = column.fill_null(0)
    values: NDArray[Any] = column.to_numpy()
    if pa.types.is_integer(column.type):
        return values.astype(np.int64)
    return values


def _flags(values: pa.Array | pa.ChunkedArray) -> Bools:
    flags: Bools = np.asarray(values).astype(np.bool_, copy=False)
    return flags
