"""The statistics of one column of one data file, and their tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format import sortable_values
from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.value_rendering import CUT_BYTES, cut_lower, cut_upper
from metastore.kernel import quantiles, theta_sketch
from metastore.kernel.detail_limits import DEFAULT_DETAIL_LIMITS, DetailLimits
from metastore.kernel.distinct_sketch import DistinctSketch, parse_sketches, union_sketches
from metastore.kernel.partial_aggregate import PartialAggregate, aggregate_numbers, aggregate_texts
from metastore.kernel.theta_sketch import EMPTY, ThetaSketch
from metastore.kernel.value_counts import COMPLETE, NONE, ValueCounts
from metastore.kernel.value_runs import ValueRuns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.histogram_bins import Histogram
    from metastore.format.table_column import Column
    from metastore.kernel.column_bloom import LazyBloomFilter

_NO_COUNTS = np.empty(0, dtype=np.int64)
_NOTHING = {encoding: pa.array([], kind) for encoding, kind in ENCODED_TYPES.items()}


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """The statistics of one column of one data file, or of a table; None is unknown.

    Attributes are the fields of `summary` in docs/format.md. `lo`, `hi` and `percentiles` are values as they are
    stored (int, float, bytes) and go into the fields of the column's encoding; `theta` and `registers` are serialised
    sketches, `bloom` a filter of the values. `values` and `histogram` go into objects of their kinds.
    """

    rows: int | None
    encoding: str | None
    nulls: int | None = None
    nans: int | None = None
    lo: Any = None
    hi: Any = None
    lo_exact: bool | None = None
    hi_exact: bool | None = None
    distinct: int | None = None
    distinct_error: float | None = None
    sum_exact: int | None = None
    sum: float | None = None
    mean: float | None = None
    m2: float | None = None
    avg_len: float | None = None
    trues: int | None = None
    compressed_bytes: int | None = None
    uncompressed_bytes: int | None = None
    frequencies: str = NONE
    frequencies_floor: int | None = None
    frequencies_algorithm: str | None = None
    singles: int | None = None
    numbers: Mapping[str, int | None] = field(default_factory=dict)
    """The built-in statistics that descriptors compute, by the names of their fields."""
    percentiles: Sequence[Any] | None = None
    extra: Mapping[str, bytes] = field(default_factory=dict)
    theta: bytes | None = None
    registers: bytes | None = None
    bloom: bytes | LazyBloomFilter | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    """User-defined statistics that could not be computed, and the reasons; not stored."""
    cast_type: tuple[str, str] | None = None
    """The type in the file if the table's values cannot be computed from it, and the refusal; not stored."""
    values: ValueCounts | None = None
    histogram: Histogram | None = None

    @property
    def max_len(self) -> int | None:
        """Bytes of the longest value."""
        return self.numbers.get("max_len")

    @property
    def sketch(self) -> DistinctSketch | None:
        """The sketch that counts distinct values with those of other files, or None."""
        return parse_sketches([self.theta], [self.registers])[0]

    def with_value_counts(self, values: ValueCounts | None) -> ColumnStatistics:
        """Replace the list of values."""
        return replace(self, **_value_count_fields(values))


def finish_statistics(
    part: PartialAggregate | None,
    column: Column,
    counts: tuple[int, int, int],
    detail: DetailLimits,
    sizes: tuple[int | None, int | None] = (None, None),
) -> ColumnStatistics:
    """Return the statistics of a column with an encoding."""
    rows, nulls, nans = counts
    fields = _list_fields(part, column)
    sketch: DistinctSketch | None = fields.pop("sketch")
    values: ValueCounts | None = fields.pop("values")
    if nans:
        sketch = union_sketches([sketch, _sketch_nan(column)])
        fields["distinct"] += 1
    if nans == 1 and fields["singles"] is not None:
        fields["singles"] += 1
    if values is not None:
        values = values.add_nan(nans, detail.top)
    return ColumnStatistics(
        rows=rows,
        encoding=column.encoding,
        nulls=nulls,
        nans=nans,
        compressed_bytes=sizes[0],
        uncompressed_bytes=sizes[1],
        **sketch_fields(sketch),
        **_value_count_fields(values),
        **fields,
    )


def _sketch_nan(column: Column) -> DistinctSketch:
    return DistinctSketch(ThetaSketch(theta_sketch.theta_hashes(np.array([np.nan]), column)))


def sketch_fields(sketch: DistinctSketch | None) -> dict[str, Any]:
    """Make the fields of a sketch; registers only exist if no theta sketch has all hashes."""
    if sketch is None:
        return {}
    parts = {"theta": sketch.theta, "registers": sketch.registers}
    return {name: part.to_bytes() for name, part in parts.items() if part is not None}


def constant_statistics(column: Column, value: Any, rows: int) -> ColumnStatistics:
    """Make the statistics of a column with one value in all rows: a partition column, a default, or only nulls."""
    nulls = 0
    if value is None:
        nulls = rows
    if column.encoding is None:
        return ColumnStatistics(rows=rows, encoding=None, nulls=nulls)
    if nulls == rows:
        return finish_statistics(None, column, (rows, nulls, 0), DEFAULT_DETAIL_LIMITS)
    if column.encoding == "double" and np.isnan(value):
        return finish_statistics(None, column, (rows, 0, rows), DEFAULT_DETAIL_LIMITS)
    part = _aggregate_constant(column, value, np.array([rows]))
    return finish_statistics(part, column, (rows, 0, 0), DEFAULT_DETAIL_LIMITS)


def _aggregate_constant(column: Column, value: Any, counts: NDArray[np.int64]) -> PartialAggregate:
    if sortable_values.is_text(column):
        texts = pa.array([value], pa.large_binary())
        return aggregate_texts(texts, counts, quantiles.PERCENT, DEFAULT_DETAIL_LIMITS)
    runs = ValueRuns(sortable_values.stored_to_sortable([value], column), counts)
    return aggregate_numbers(runs, column, quantiles.PERCENT, DEFAULT_DETAIL_LIMITS)


def _value_count_fields(values: ValueCounts | None) -> dict[str, Any]:
    """Return the fields of a list of values."""
    if values is None:
        return {"values": None, "frequencies": NONE, "frequencies_floor": None}
    return {"values": values, "frequencies": values.kind, "frequencies_floor": values.floor}


def _list_fields(part: PartialAggregate | None, column: Column) -> dict[str, Any]:
    if part is None:
        return _empty_fields(column)
    return _part_fields(part, column)


def _empty_fields(column: Column) -> dict[str, Any]:
    """Return the fields of a column without values."""
    return {
        "sketch": DistinctSketch(EMPTY),
        "values": ValueCounts(COMPLETE, 0, _NOTHING[column.encoding or ""], _NO_COUNTS),
        "distinct": 0,
        "distinct_error": 0.0,
        "singles": 0,
        "trues": 0 if column.type == "boolean" else None,
    }


def _part_fields(part: PartialAggregate, column: Column) -> dict[str, Any]:
    """Return the fields of a column with values other than null and NaN."""
    lo, lo_exact, hi, hi_exact = _bounds(part, column)
    return {
        "sketch": part.sketch,
        "values": part.frequencies,
        "lo": lo,
        "hi": hi,
        "lo_exact": lo_exact,
        "hi_exact": hi_exact,
        "distinct": part.distinct,
        "distinct_error": part.error,
        "sum_exact": part.total,
        "sum": part.sum,
        "mean": part.mean,
        "m2": part.m2,
        "avg_len": part.length / part.number,
        "trues": part.total if column.type == "boolean" else None,
        "numbers": part.numbers,
        "singles": part.singles,
        "percentiles": _percentiles(part, column),
        "histogram": part.histogram,
    }


def _bounds(part: PartialAggregate, column: Column) -> tuple[Any, bool, Any, bool]:
    if column.encoding != "binary" or sortable_values.is_wide_decimal(column):
        return part.lo, True, part.hi, True
    return *cut_lower(part.lo), *cut_upper(part.hi)


def _percentiles(part: PartialAggregate, column: Column) -> list[Any]:
    step = (len(part.points) - 1) // quantiles.PERCENT
    chosen = part.points[::step]
    if isinstance(chosen, list):
        return [value[:CUT_BYTES] for value in chosen]
    if sortable_values.is_wide_decimal(column):
        return [sortable_values.sortable_to_stored(value, column) for value in chosen]
    percentiles: list[Any] = chosen.tolist()
    return percentiles
