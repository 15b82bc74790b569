"""Table level of many columns with few data files each: what is done column by column, done for all of them at once."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore._analyze.kernel import merge, points, stored
from metastore._analyze.kernel.parts import add_sums, pool_moments
from metastore._analyze.kernel.sketch import union_sketches
from metastore._analyze.kernel.statistics import ColumnStatistics, sketch_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore._analyze.kernel.sketch import DistinctSketch
    from metastore._format.columns import Column

    Longs = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_TOTALS = ("rows", "nulls", "nans", "trues", "compressed_bytes", "uncompressed_bytes")
_POINTS = points.PERCENT + 1
_POINTS_AT_ONCE = 1 << 20


def reduce_columns(
    columns: Sequence[Column], rows: Sequence[pa.Table], sketches: Sequence[Sequence[DistinctSketch | None]]
) -> list[ColumnStatistics | None]:
    """Reduce the statistics of columns' files to those of the table: the same as `reduce_column` of each."""
    alike: dict[tuple[str, int], list[int]] = defaultdict(list)
    for place, (column, one) in enumerate(zip(columns, rows, strict=True)):
        if column.encoding is not None and not stored.is_wide_decimal(column) and one.num_rows:
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
            **self._lengths[line],
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
        return {end: _cut(self._column(f"{end}_binary").to_pylist(), self._files) for end in ("lo", "hi")}

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
        return _cut(self._column("sum_exact").to_pylist(), self._files)

    @cached_property
    def _doubles(self) -> list[tuple[NDArray[np.float64], Bools]]:
        return [self._array(name, 0.0) for name in ("sum", "mean", "m2")]

    @cached_property
    def _lengths(self) -> list[dict[str, Any]]:
        averages, known = self._array("avg_len", 0.0)
        longest, all_known = self._longs("max_len")
        means = (averages * self._numbers).sum(axis=1) / self._numbers.sum(axis=1)
        lines = zip(means.tolist(), longest.max(axis=1).tolist(), (known & all_known).tolist(), strict=True)
        return [{"avg_len": mean, "max_len": most} if is_known else {} for mean, most, is_known in lines]

    @cached_property
    def _percentiles(self) -> list[list[Any] | None]:
        lists = self._column(f"percentiles_{self._encoding}")
        are_whole = pc.equal(pc.list_value_length(lists), _POINTS).fill_null(False)  # noqa: FBT003 - of pyarrow
        known = are_whole.to_numpy(zero_copy_only=False).reshape(-1, self._files).all(axis=1)
        flat = lists.filter(pa.array(np.repeat(known, self._files))).flatten()
        merged = iter(_cut(flat.to_pylist(), _POINTS) if self._files == 1 else self._merged(flat, self._numbers[known]))
        return [next(merged) if is_known else None for is_known in known.tolist()]

    def _merged(self, flat: pa.Array, numbers: Longs) -> list[list[Any]]:
        """The percentiles of each column from those of its files."""
        if not len(flat):
            return []
        if self._encoding != "binary":
            values = flat.to_numpy() + 0
            return list(
                points.merge_point_lines(values.reshape(-1, self._files, _POINTS), numbers, points.PERCENT).tolist()
            )
        encoded = flat.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        codes = ranks[encoded.indices.to_numpy()].reshape(-1, self._files, _POINTS)
        texts = encoded.dictionary.take(pa.array(order)).to_pylist()
        return [
            [texts[code] for code in line] for line in points.merge_point_lines(codes, numbers, points.PERCENT).tolist()
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
        return merge.are_ranges_disjoint(los, his)

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


def _cut(values: list[Any], length: int) -> list[list[Any]]:
    return [values[start : start + length] for start in range(0, len(values), length)]
