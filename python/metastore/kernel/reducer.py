"""The reducer: statistics of data files, or of groups of them, become those of the table, of many columns at once.

The rows of a column are a segment of the rows of all columns of its kind. What is unknown of one file is unknown of the
table. Bounds, counts, sums and moments are exact when the files' are. Distinct values are exact when no sketch
estimates, when the files' ranges do not overlap, or when there is one file; percentiles are merged from those of the
files.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column

    Longs = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Sketches = Sequence[DistinctSketch | None]

_TOTALS = ("rows", "nulls", "nans", "trues", "compressed_bytes", "uncompressed_bytes")
_INFINITIES = ("negative_infinities", "positive_infinities")
_POINTS = quantiles.PERCENT + 1
_POINTS_AT_ONCE = 1 << 20
_ROUNDING = 1 + 1e-9
_PLACEHOLDER = bytes(16)
_SAMPLE = 256  # files: of so many that do not lie apart no others matter


def reduce_columns(
    columns: Sequence[Column], rows: Sequence[pa.Table], sketches: Sequence[Sketches]
) -> list[ColumnStatistics]:
    """Reduce the statistics of columns' files to those of the table."""
    found: dict[int, ColumnStatistics] = {}
    for places in _batches(columns, rows):
        segments = _Segments([columns[at] for at in places], [rows[at] for at in places])
        merged = segments.merge([sketches[at] for at in places])
        distincts = segments.count_distinct([sketch for _, sketch in merged])
        for at, (known, _), distinct in zip(places, merged, distincts, strict=True):
            found[at] = replace(known, **distinct)
    return [found[at] for at in range(len(columns))]


def merge_column(column: Column, rows: pa.Table, sketches: Sketches) -> ColumnStatistics:
    """Reduce the statistics of a column's files, or of groups of them, but for the number of distinct values."""
    return _Segments([column], [rows]).merge([sketches])[0][0]


def count_distinct(column: Column, rows: pa.Table, sketch: DistinctSketch | None) -> dict[str, Any]:
    """The number of distinct values, and its error: exact when no sketch estimates, or the files lie disjoint."""
    return _Segments([column], [rows]).count_distinct([sketch])[0]


def are_ranges_disjoint(los: NDArray[Any], his: NDArray[Any]) -> bool:
    """Whether no number can lie in two of these ranges."""
    if len(los) <= 1:
        return True
    with np.errstate(over="ignore", invalid="ignore"):  # of infinities
        widths = (his.astype(np.float64) - los).sum()
        if widths > (float(his.max()) - float(los.min())) * _ROUNDING:
            return False
    order = np.argsort(los, kind="stable")
    return bool((his[order][:-1] < los[order][1:]).all())


def _batches(columns: Sequence[Column], rows: Sequence[pa.Table]) -> Iterator[list[int]]:
    """The places of columns that are reduced at once: of one kind, and not too many points."""
    alike: dict[tuple[str | None, bool], list[int]] = defaultdict(list)
    for place, column in enumerate(columns):
        alike[column.encoding, sortable_values.is_wide_decimal(column)].append(place)
    for places in alike.values():
        sums = np.cumsum([rows[place].num_rows * _POINTS for place in places]) // _POINTS_AT_ONCE
        ends = np.flatnonzero(np.diff(sums, append=sums[-1] + 1)) + 1
        yield from (some.tolist() for some in np.split(places, ends[:-1]))


class _Rows:
    """Rows one behind the other, and the segment of each."""

    def __init__(self, rows: pa.Table, owners: Longs, number: int) -> None:
        self.rows, self.owners, self._number = rows, owners, number
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
        """Those of one segment."""
        return values[self.ends[segment] : self.ends[segment + 1]]

    def reduce(self, ufunc: np.ufunc, values: NDArray[Any], empty: Any) -> NDArray[Any]:
        """One value for each segment."""
        if len(self._filled) == self._number:
            return ufunc.reduceat(values, self.ends[:-1])
        found = np.full(self._number, empty, values.dtype)
        if len(self._filled):
            found[self._filled] = ufunc.reduceat(values, self.ends[self._filled])
        return found

    def are_known(self, *names: str) -> Bools:
        """Of which segments fields are known of all rows."""
        found = np.ones(self._number, np.bool_)
        for name in names:
            if name not in self._names:
                return np.zeros(self._number, np.bool_)
            column = self.rows[name]
            if column.null_count:
                found &= self.reduce(np.logical_and, _flags(column.is_valid()), empty=True)
        return found

    def are_set(self, name: str) -> Bools:
        """Which rows have a field."""
        if name not in self._names:
            return np.zeros(len(self.owners), np.bool_)
        return _flags(self.rows[name].is_valid())

    def array(self, name: str) -> NDArray[Any]:
        """The numbers of a field, 0 where not known."""
        if name in self._names and name not in self._arrays:
            column = self.rows[name]
            values = (column.fill_null(0) if column.null_count else column).to_numpy()
            self._arrays[name] = values.astype(np.int64) if pa.types.is_integer(column.type) else values
        return self._arrays.get(name, np.zeros(len(self.owners), np.int64))


class _CountedRows(NamedTuple):
    """Rows of files, and how many values each file holds; 0 if that is unknown."""

    rows: _Rows
    counts: Longs


class _Segments:
    """The rows of columns of one encoding."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[pa.Table]) -> None:
        self._columns, self._given, self._encoding = columns, rows, columns[0].encoding
        self._number = len(columns)
        owners = np.repeat(np.arange(self._number), [one.num_rows for one in rows])
        table = pa.concat_tables(rows, promote_options="default") if len(rows) > 1 else rows[0]
        self._all = _Rows(table, owners, self._number)

    def merge(self, sketches: Sequence[Sketches]) -> list[tuple[ColumnStatistics, DistinctSketch | None]]:
        """The statistics of each column but for distinct values, and what counts those."""
        totals = [dict(zip(_TOTALS, one, strict=True)) for one in zip(*map(self._total, _TOTALS), strict=True)]
        if self._encoding is None:
            return [(ColumnStatistics(encoding=None, **one), None) for one in totals]
        bounds, averages, percentiles = self._bounds(), self._average_lengths(), self._percentiles()
        numbers, found = self._computed(), []
        for segment, some in enumerate(sketches):
            sketch = union_sketches(some) if len(some) == self._all.sizes[segment] else None
            known = ColumnStatistics(
                encoding=self._encoding,
                **totals[segment],
                **{name: values[segment] for name, values in bounds.items()},
                **self._moments(segment),
                avg_len=averages[segment],
                numbers={name: values[segment] for name, values in numbers.items() if values[segment] is not None},
                percentiles=percentiles[segment],
                **sketch_fields(sketch),
            )
            found.append((known, sketch))
        return found

    def count_distinct(self, sketches: Sketches) -> list[dict[str, Any]]:
        """The number of distinct values of each column, and its error; nothing where it is not known."""
        if self._encoding is None:
            return [{}] * self._number
        disjoint = self._find_disjoint()
        if disjoint.any():
            disjoint &= self._values.rows.are_known("distinct") & self._all.are_known("nans")
        return [
            self._add_distinct(segment) if is_disjoint else {} if sketch is None else self._estimate(segment, sketch)
            for segment, (is_disjoint, sketch) in enumerate(zip(disjoint.tolist(), sketches, strict=True))
        ]

    @cached_property
    def _are_counted(self) -> Bools:
        """Of which columns is known how many values each file holds."""
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
        """Of which columns there are files that may hold values, all with these fields."""
        return self._values.rows.are_known(*names) & (self._values.rows.sizes > 0)

    def _total(self, name: str) -> list[int | None]:
        return _where(self._all.are_known(name), self._all.reduce(np.add, self._all.array(name), 0))

    def _computed(self) -> dict[str, list[int | None]]:
        return {
            one.name: _where(
                self._are_known(one.name), self._values.rows.reduce(one.ufunc, self._values.rows.array(one.name), 0)
            )
            for one in COMPUTED
        }

    def _bounds(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for end, ufunc in (("lo", np.minimum), ("hi", np.maximum)):
            known = self._are_bounded[end]
            values = self._ends[end]
            best = self._values.rows.reduce(ufunc, values, 0)
            exact = self._values.rows.column(f"{end}_exact").fill_null(False)  # noqa: FBT003 - of pyarrow
            is_best = _flags(exact) & (values == best[self._values.rows.owners])
            found[end] = _where(known, self._decode_ends(best))
            found[f"{end}_exact"] = _where(known, self._values.rows.reduce(np.logical_or, is_best, empty=False))
        return found

    @cached_property
    def _are_bounded(self) -> dict[str, Bools]:
        """Of which columns each end is known of all files that may hold values."""
        found = {}
        for end in ("lo", "hi"):
            found[end] = self._are_known(f"{end}_{self._encoding}")
            if self._encoding == "double":
                is_number = ~np.isnan(self._values.rows.array(f"{end}_double"))
                found[end] &= self._values.rows.reduce(np.logical_and, is_number, empty=True)
        return found

    @cached_property
    def _ends(self) -> dict[str, NDArray[Any]]:
        """Bounds as numbers that compare as they do, 0 where not known."""
        if self._encoding != "binary":
            return {end: self._values.rows.array(f"{end}_{self._encoding}") for end in ("lo", "hi")}
        codes = self._texts[0]
        return {"lo": codes[: len(codes) // 2], "hi": codes[len(codes) // 2 :]}

    @cached_property
    def _texts(self) -> tuple[Longs, list[bytes]]:
        return self._rank(
            pa.concat_arrays(
                [self._values.rows.column(f"{end}_binary").fill_null(_PLACEHOLDER) for end in ("lo", "hi")]
            )
        )

    def _decode_ends(self, values: NDArray[Any]) -> Any:
        return [self._texts[1][code] for code in values.tolist()] if self._encoding == "binary" else values

    def _rank(self, values: pa.Array) -> tuple[Longs, list[bytes]]:
        """The places of stored values among the distinct ones, and these in their order."""
        ranks, distinct = rank_values(values, self._columns[0])
        return ranks, distinct.to_pylist() or [_PLACEHOLDER]

    def _moments(self, segment: int) -> dict[str, Any]:
        rows, column = self._finite.rows, self._columns[segment]
        exact = rows.cut(self._sums, segment)
        totals = [int(one) for one in exact] if exact and None not in exact else None
        found: dict[str, Any] = {} if totals is None else {"sum_exact": sum(totals)}
        if not (self._are_summed[segment] and self._are_counted[segment]):
            return found
        numbers = rows.cut(self._finite.counts, segment)
        total, means, m2s = (rows.cut(values, segment) for values in self._doubles)
        mean, m2 = pool_moments(column, numbers, m2s, means, totals)
        return {**found, "sum": add_sums(total.tolist()), "mean": mean, "m2": m2}

    @cached_property
    def _sums(self) -> list[Any]:
        return list(self._finite.rows.column("sum_exact").to_pylist())

    @cached_property
    def _are_summed(self) -> Bools:
        """Of which columns sums are known of all files that may hold finite values.

        Sums of files whose infinities were not counted may include these: they say nothing where they are infinite.
        """
        rows = self._finite.rows
        found = rows.are_known("sum", "mean", "m2") & (rows.sizes > 0)
        if self._encoding != "double":
            return found
        is_of_finite = np.isfinite(self._doubles[1]) | rows.are_set(_INFINITIES[0])
        found &= rows.reduce(np.logical_and, is_of_finite, empty=True)
        return found

    @cached_property
    def _doubles(self) -> list[NDArray[np.float64]]:
        return [self._finite.rows.array(name).astype(np.float64) for name in ("sum", "mean", "m2")]

    def _average_lengths(self) -> list[float | None]:
        known = self._are_known("avg_len") & self._are_counted
        lengths, numbers = (
            self._values.rows.array("avg_len") * self._values.counts,
            self._values.rows.reduce(np.add, self._values.counts, 0),
        )
        return [
            float(np.sum(self._values.rows.cut(lengths, segment)) / numbers[segment]) if is_known else None
            for segment, is_known in enumerate(known.tolist())
        ]

    def _percentiles(self) -> list[list[Any] | None]:
        name, found = f"percentiles_{self._encoding}", [None] * self._number
        known = self._are_known(name) & self._are_counted
        if not known.any():
            return list(found)
        lists = self._values.rows.column(name)
        are_whole = pc.equal(pc.list_value_length(lists), _POINTS).fill_null(False)  # noqa: FBT003 - of pyarrow
        known &= self._values.rows.reduce(np.logical_and, _flags(are_whole), empty=True)
        chosen = known[self._values.rows.owners]
        merged = self._merge_points(
            lists.filter(pa.array(chosen)).flatten(), self._values.rows.sizes[known], self._values.counts[chosen]
        )
        return [next(merged) if is_known else None for is_known in known.tolist()]

    def _merge_points(self, flat: pa.Array, sizes: Longs, numbers: Longs) -> Iterator[list[Any]]:
        """The percentiles of each column from those of its files; those of a single file as they are."""
        texts = None
        if self._encoding == "binary":
            codes, texts = self._rank(flat)
        else:
            codes = flat.to_numpy() + 0
        points, ends = codes.reshape(-1, _POINTS), np.cumsum(sizes).tolist()
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            if end - start == 1:
                yield flat.slice(start * _POINTS, _POINTS).to_pylist()
                continue
            merged = quantiles.merge_number_points(points[start:end], numbers[start:end], quantiles.PERCENT).tolist()
            yield merged if texts is None else [texts[code] for code in merged]

    def _find_disjoint(self) -> Bools:
        """In which columns no value can lie in two files; a few of many files mostly say that it is not so."""
        if (self._all.sizes <= _SAMPLE).all():
            return self.are_disjoint()
        found = _Segments(self._columns, [one.slice(0, _SAMPLE) for one in self._given]).are_disjoint()
        for at in np.flatnonzero(found & (self._all.sizes > _SAMPLE)).tolist():
            found[at] = _Segments([self._columns[at]], [self._given[at]]).are_disjoint()[0]
        return found

    def are_disjoint(self) -> Bools:
        """In which columns no value can lie in two files."""
        found = self._values.rows.sizes <= 1
        for at in np.flatnonzero(self._are_bounded["lo"] & self._are_bounded["hi"] & ~found).tolist():
            found[at] = are_ranges_disjoint(*(self._values.rows.cut(self._ends[end], at) for end in ("lo", "hi")))
        return found

    def _add_distinct(self, segment: int) -> dict[str, Any]:
        """Distinct values of files that share none but NaN."""
        counts, errors, nans = (
            self._values.rows.cut(self._values.rows.array(name), segment)
            for name in ("distinct", "distinct_error", "nans")
        )
        distinct = int(counts.sum()) - int((nans > 0).sum())
        distinct += bool((self._all.cut(self._all.array("nans"), segment) > 0).any())
        spread = float(np.linalg.norm(counts * errors))
        return {"distinct": distinct, "distinct_error": spread / distinct if spread else 0.0}

    def _estimate(self, segment: int, sketch: DistinctSketch) -> dict[str, Any]:
        """What the sketch says, within what exact counts of the files leave possible."""
        estimate = sketch.estimate
        counts = () if sketch.is_exact else self._exact_counts(segment)
        if len(counts):
            estimate = min(max(estimate, int(max(counts))), int(sum(counts)))
        return {"distinct": round(estimate), "distinct_error": sketch.error}

    def _exact_counts(self, segment: int) -> Sequence[int]:
        """The distinct values of each file, if all are counted; those of files without values do no harm."""
        if self._all.cut(self._all.array("distinct_error"), segment).any():
            return ()
        for rows in (self._all, self._values.rows):
            if rows.are_known("distinct")[segment]:
                return list(rows.cut(rows.array("distinct"), segment).tolist())
        return ()


def _where(known: Bools, values: Any) -> list[Any]:
    """Python values of the columns of which they are known, None of others."""
    listed = values if isinstance(values, list) else values.tolist()
    return [value if is_known else None for value, is_known in zip(listed, known.tolist(), strict=True)]


def _flags(values: pa.Array | pa.ChunkedArray) -> Bools:
    found: Bools = np.asarray(values).astype(np.bool_, copy=False)
    return found
