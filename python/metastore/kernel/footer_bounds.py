"""Reads bounds from the footer of a Parquet file, as far as footers can be trusted.

Bounds of integers, dates, decimals, intervals and INT64 timestamps are exact. Those of strings and binary values may
have been cut. Those of floating point (NaN, zeros of both signs) and of INT96 (no defined order) are not used, and
neither are those inside lists and maps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.format import sortable_values
from metastore.format.sortable_values import make_comparison_key
from metastore.format.table_column import Column, decimal_type
from metastore.format.value_rendering import cut_lower, cut_upper, decimal_to_bytes
from metastore.kernel.column_reading import list_column_chunks, list_row_groups, measure_chunks
from metastore.kernel.column_statistics import ColumnStatistics
from metastore.kernel.parquet_file import FileStatistics, open_parquet_file, translate_arrow_errors
from metastore.kernel.parquet_schema import UnsupportedDataFile, is_uuid, require_no_rebase, require_same_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.kernel.parquet_schema import FileColumn, ParquetField


_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_LONGS = range(-(1 << 63), 1 << 63)


def analyze_footer(source: Any, columns: Sequence[FileColumn]) -> FileStatistics:
    """Read the statistics of columns from the footer of one Parquet file."""
    with translate_arrow_errors():
        metadata = pq.read_metadata(source)
        file, fields = open_parquet_file(source, metadata, ())
        statistics = [_read_column(file, column.column, fields.find(column)) for column in columns]
        return FileStatistics(metadata.num_rows, tuple(statistics))


@dataclass(frozen=True)
class _RowGroup:
    """The statistics of a column in a row group.

    Attributes:
        rows: The number of rows.
        nulls: The number of null values, or None.
        bounds: pyarrow's statistics if they have bounds, or None.
    """

    rows: int
    nulls: int | None
    bounds: Any

    @classmethod
    def of(cls, rows: int, statistics: Any) -> _RowGroup:
        """Return the statistics of one column chunk, as pyarrow has them."""
        if statistics is None:
            return cls(rows, None, None)
        nulls = None
        if statistics.has_null_count:
            nulls = statistics.null_count
        bounds = None
        if statistics.has_min_max:
            bounds = statistics
        return cls(rows, nulls, bounds)

    @property
    def is_possible(self) -> bool:
        """Whether counts and bounds do not contradict each other."""
        if self.nulls is None:
            return True
        if self.has_only_nulls:
            return self.bounds is None
        return 0 <= self.nulls < self.rows

    @property
    def has_only_nulls(self) -> bool:
        """Whether all values are known to be null."""
        return self.nulls == self.rows


def _read_column(file: pq.ParquetFile, column: Column, field: ParquetField | None) -> ColumnStatistics | None:
    if field is None:
        return None
    row_groups = _list_filled_row_groups(file.metadata)
    compressed_bytes, uncompressed_bytes = measure_chunks(list_column_chunks(row_groups, field))
    sizes = ColumnStatistics(
        rows=file.metadata.num_rows,
        encoding=column.encoding,
        compressed_bytes=compressed_bytes,
        uncompressed_bytes=uncompressed_bytes,
    )
    if not _has_same_values(file, column, field):
        return sizes
    groups = []
    for row_group in row_groups:
        group = _RowGroup.of(row_group.num_rows, row_group.column(field.first).statistics)
        if not group.is_possible:
            return sizes
        groups.append(group)
    counts = replace(sizes, nulls=_count_nulls(groups), nans=0)
    return _add_bounds(counts, groups, column, field)


def _list_filled_row_groups(metadata: pq.FileMetaData) -> list[Any]:
    return list(filter(attrgetter("num_rows"), list_row_groups(metadata)))


def _has_same_values(file: pq.ParquetFile, column: Column, field: ParquetField) -> bool:
    """Return whether the file has the values of the column, and its bounds compare them as Spark does."""
    if column.encoding in (None, "double") or pa.types.is_unsigned_integer(field.type):
        return False
    leaf = file.schema.column(field.first)
    if leaf.max_repetition_level or leaf.physical_type == "INT96" or is_uuid(leaf):
        return False
    try:
        require_same_values(field, column, leaf.physical_type, uuid=False)
        require_no_rebase(file.metadata.metadata, column, leaf.physical_type)
    except UnsupportedDataFile:
        return False
    return True


def _count_nulls(groups: Sequence[_RowGroup]) -> int | None:
    total = 0
    for group in groups:
        if group.nulls is None:
            return None
        total += group.nulls
    return total


def _add_bounds(
    counts: ColumnStatistics, groups: Sequence[_RowGroup], column: Column, field: ParquetField
) -> ColumnStatistics:
    """Add the bounds of all row groups, unless one has none or impossible ones."""
    groups_with_values = [group for group in groups if not group.has_only_nulls]
    bounds = [_read_bounds(group, column, field) for group in groups_with_values]
    if not bounds or None in bounds:
        return counts
    key = make_comparison_key(column)
    lows, highs = zip(*bounds, strict=True)
    lo = min(lows, key=key)
    hi = max(highs, key=key)
    if not sortable_values.is_text(column):
        return replace(counts, lo=lo, hi=hi, lo_exact=True, hi_exact=True)
    cut_lo, _ = cut_lower(lo)
    cut_hi, _ = cut_upper(hi)
    return replace(counts, lo=cut_lo, hi=cut_hi, lo_exact=False, hi_exact=False)


def _read_bounds(group: _RowGroup, column: Column, field: ParquetField) -> tuple[Any, Any] | None:
    """Read the bounds of a row group as the format stores them; None if there are none, or they are impossible."""
    if group.bounds is None:
        return None
    lo = _read_value(group.bounds.min_raw, column, field)
    hi = _read_value(group.bounds.max_raw, column, field)
    if None in (lo, hi):
        return None
    key = make_comparison_key(column)
    if key(lo) > key(hi):
        return None
    return lo, hi


def _read_value(raw: Any, column: Column, field: ParquetField) -> Any:
    """Convert a physical value to a stored one; None if it cannot be a value of the column."""
    if decimal_type(column.type):
        return _read_decimal(raw, column, field)
    if column.encoding == "binary":
        return bytes(raw)
    value = int(raw)
    if pa.types.is_timestamp(field.type):
        value *= _MICROS[field.type.unit]
    if value not in _LONGS:
        return None
    return value


def _read_decimal(raw: Any, column: Column, field: ParquetField) -> Any:
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
    if abs(unscaled) >= 10**field.type.precision:
        return None
    if sortable_values.is_wide_decimal(column):
        return decimal_to_bytes(unscaled)
    return unscaled
