"""The statistics of one column of one data file, and their tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._analyze.kernel import points, stored
from metastore._analyze.kernel.detail import DEFAULT_DETAIL_LIMITS, DetailLimits
from metastore._analyze.kernel.frequencies import COMPLETE, NONE, ValueCounts
from metastore._analyze.kernel.parts import PartialAggregate, aggregate_numbers, aggregate_texts
from metastore._analyze.kernel.runs import ValueRuns
from metastore._analyze.kernel.sketch import DistinctSketch, parse_sketches, union_sketches
from metastore._analyze.kernel.theta import EMPTY, ThetaSketch
from metastore._format.schemas import SKETCHES, SUMMARY, TABLE_SKETCHES, TABLE_SUMMARY
from metastore._format.values import CUT_BYTES, cut_lower, cut_upper

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore._analyze.kernel.filters import LazyBloomFilter
    from metastore._analyze.kernel.histograms import ColumnHistogram
    from metastore._format.columns import Column

_TYPED = ("lo", "hi", "percentiles")
_ENCODINGS = ("long", "double", "binary")
_SUM_LIMIT = 10**38
_NO_COUNTS = np.empty(0, dtype=np.int64)
_NOTHING = {"long": pa.array([], pa.int64()), "double": pa.array([], pa.float64()), "binary": pa.array([], pa.binary())}


@dataclass(frozen=True)
class ColumnStatistics:
    """What is known of one column of one data file, or of a table; None is unknown.

    Attributes are the fields of `summary` in docs/format.md. `lo`, `hi` and `percentiles` are values as they are
    stored (int, float, bytes) and go into the fields of the column's encoding; `theta` and `registers` are serialised
    sketches, `bloom` a filter of the values. `values` and `histogram` are what the objects of these kinds hold.
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
    max_len: int | None = None
    trues: int | None = None
    compressed_bytes: int | None = None
    uncompressed_bytes: int | None = None
    frequencies: str = NONE
    frequencies_floor: int | None = None
    frequencies_algorithm: str | None = None
    singles: int | None = None
    percentiles: Sequence[Any] | None = None
    extra: Mapping[str, bytes] = field(default_factory=dict)
    theta: bytes | None = None
    registers: bytes | None = None
    bloom: bytes | LazyBloomFilter | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    """User-defined statistics that could not be computed, and why; not stored."""
    held: tuple[str, str] | None = None
    """The type in which the file holds it where its values do not follow from that, and what is known; not stored."""
    values: ValueCounts | None = None
    histogram: ColumnHistogram | None = None

    @property
    def sketch(self) -> DistinctSketch | None:
        """What counts its distinct values with those of other files."""
        return parse_sketches([self.theta], [self.registers])[0]

    def listing(self, values: ValueCounts | None) -> ColumnStatistics:
        """The same with another list of values."""
        return replace(self, **_listing(values))


def finish_statistics(
    part: PartialAggregate | None,
    column: Column,
    counts: tuple[int, int, int],
    detail: DetailLimits,
    sizes: tuple[int | None, int | None] = (None, None),
) -> ColumnStatistics:
    """The statistics of a column with an encoding."""
    rows, nulls, nans = counts
    sketch: DistinctSketch | None = part.sketch if part else DistinctSketch(EMPTY)
    if nans:
        sketch = union_sketches([sketch, DistinctSketch(ThetaSketch(stored.theta_hashes(np.array([np.nan]), column)))])
    distinct = (part.distinct if part else 0) + (1 if nans else 0)
    values: dict[str, Any] = _of_values(part, column) if part else {"distinct_error": 0.0, "singles": 0}
    if values["singles"] is not None and nans == 1:
        values["singles"] += 1
    if column.type == "boolean":
        values["trues"] = part.total if part else 0
    known = part.frequencies if part else ValueCounts(COMPLETE, 0, _NOTHING[column.encoding or ""], _NO_COUNTS)
    return ColumnStatistics(
        rows,
        column.encoding,
        nulls=nulls,
        nans=nans,
        distinct=distinct,
        compressed_bytes=sizes[0],
        uncompressed_bytes=sizes[1],
        **sketch_fields(sketch),
        histogram=part.histogram if part else None,
        **_listing(None if known is None else known.with_nan(nans, detail.top)),
        **values,
    )


def sketch_fields(sketch: DistinctSketch | None) -> dict[str, Any]:
    """The fields of a sketch; registers stand only where no theta sketch has all hashes."""
    found = {} if sketch is None else {"theta": sketch.theta, "registers": sketch.registers}
    return {name: one.to_bytes() for name, one in found.items() if one is not None}


def constant_statistics(column: Column, value: Any, rows: int) -> ColumnStatistics:
    """The statistics of a column that has one value in all rows: partition columns, defaults, columns of nulls."""
    if column.encoding is None:
        return ColumnStatistics(rows, None, nulls=rows if value is None else 0)
    if value is None or rows == 0:
        return finish_statistics(None, column, (rows, rows, 0), DEFAULT_DETAIL_LIMITS)
    if column.encoding == "double" and np.isnan(value):
        return finish_statistics(None, column, (rows, 0, rows), DEFAULT_DETAIL_LIMITS)
    counts = np.array([rows])
    if column.encoding == "binary" and not stored.is_wide_decimal(column):
        part = aggregate_texts(pa.array([value], pa.large_binary()), counts, points.PERCENT, DEFAULT_DETAIL_LIMITS)
    else:
        part = aggregate_numbers(
            ValueRuns(stored.stored_to_sortable([value], column), counts), column, points.PERCENT, DEFAULT_DETAIL_LIMITS
        )
    return finish_statistics(part, column, (rows, 0, 0), DEFAULT_DETAIL_LIMITS)


def summary_rows(rows: Iterable[tuple[int, int, ColumnStatistics]]) -> pa.Table:
    """A table of the schema `summary`."""
    ordered = sorted(rows, key=lambda row: row[:2])
    return _table(
        SUMMARY, [row[2] for row in ordered], column=[row[0] for row in ordered], file=[row[1] for row in ordered]
    )


def partial_aggregate_row(known: ColumnStatistics, schema: pa.Schema) -> pa.Table:
    """One row with some fields of the schema `summary`."""
    return _table(schema, [known])


def sketch_rows(rows: Iterable[tuple[int, int, ColumnStatistics]]) -> pa.Table:
    """A table of the schema `sketches`: of the same rows, those that have a sketch or a filter."""
    kept = (row for row in rows if (row[2].theta, row[2].registers, row[2].bloom) != (None, None, None))
    ordered = sorted(kept, key=lambda row: row[:2])
    values = zip(
        *(
            (column, file, known.theta, known.bloom and bytes(known.bloom), known.registers)
            for column, file, known in ordered
        ),
        strict=True,
    )
    columns = list(values) or [()] * len(SKETCHES)
    return pa.table([pa.array(v, kind.type) for v, kind in zip(columns, SKETCHES, strict=True)], schema=SKETCHES)


def table_summary_rows(rows: Iterable[tuple[int, ColumnStatistics, int]]) -> pa.Table:
    """A table of the schema `table-summary`."""
    ordered = sorted(rows, key=lambda row: row[0])
    return _table(
        TABLE_SUMMARY,
        [row[1] for row in ordered],
        column=[row[0] for row in ordered],
        files=[row[2] for row in ordered],
    )


def table_sketch_rows(rows: Iterable[tuple[int, ColumnStatistics, int]]) -> pa.Table:
    """A table of the schema `table-sketches`: of the same rows, those that have a sketch."""
    ordered = sorted((row for row in rows if row[1].theta is not None), key=lambda row: row[0])
    values = ([row[0] for row in ordered], [row[1].theta for row in ordered])
    return pa.table(
        [pa.array(v, kind.type) for v, kind in zip(values, TABLE_SKETCHES, strict=True)], schema=TABLE_SKETCHES
    )


def _table(schema: pa.Schema, statistics: list[ColumnStatistics], **ordinals: list[int]) -> pa.Table:
    columns = (ordinals[name] if name in ordinals else _values(name, statistics) for name in schema.names)
    rows = [dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    # One array of rows costs half of what one for each field does.
    batch = pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct(list(schema))))
    return pa.Table.from_batches([batch])


def _values(field: str, statistics: list[ColumnStatistics]) -> list[Any]:
    """The values of a field of the schema `summary`."""
    name, _, encoding = field.rpartition("_")
    if name in _TYPED and encoding in _ENCODINGS:
        return [getattr(one, name) if one.encoding == encoding else None for one in statistics]
    found = [getattr(one, field) for one in statistics]
    if field == "sum_exact":
        return [None if x is None or abs(x) >= _SUM_LIMIT else Decimal(x) for x in found]
    return [list(extra.items()) or None for extra in found] if field == "extra" else found


def _listing(values: ValueCounts | None) -> dict[str, Any]:
    """The fields that tell of a list of values."""
    kind, floor = (NONE, None) if values is None else (values.kind, values.floor)
    return {"values": values, "frequencies": kind, "frequencies_floor": floor}


def _of_values(part: PartialAggregate, column: Column) -> dict[str, Any]:
    lo, lo_exact, hi, hi_exact = _bounds(part, column)
    return {
        "lo": lo,
        "hi": hi,
        "lo_exact": lo_exact,
        "hi_exact": hi_exact,
        "distinct_error": part.error,
        "sum_exact": part.total,
        "sum": part.sum,
        "mean": part.mean,
        "m2": part.m2,
        "avg_len": part.length / part.number,
        "max_len": part.max_length,
        "singles": part.singles,
        "percentiles": _percentiles(part, column),
    }


def _bounds(part: PartialAggregate, column: Column) -> tuple[Any, bool, Any, bool]:
    if column.encoding != "binary" or stored.is_wide_decimal(column):
        return part.lo, True, part.hi, True
    return *cut_lower(part.lo), *cut_upper(part.hi)


def _percentiles(part: PartialAggregate, column: Column) -> list[Any]:
    step = (len(part.points) - 1) // points.PERCENT
    chosen = part.points[::step]
    if isinstance(chosen, list):
        return [value[:CUT_BYTES] for value in chosen]
    return (
        [stored.sortable_to_stored(value, column) for value in chosen]
        if stored.is_wide_decimal(column)
        else chosen.tolist()
    )
