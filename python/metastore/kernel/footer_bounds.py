"""Bounds from the footer of a Parquet file alone, where footers can be trusted.

Integers, dates, decimals, intervals and INT64 timestamps: exact. Strings and binary: bounds that may have been cut.
Floating point never (NaN, zeros of both signs), INT96 never (its order is undefined), nothing inside lists and maps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.format import sortable_values
from metastore.format.sortable_values import make_comparison_key
from metastore.format.table_column import Column, decimal_type
from metastore.format.value_rendering import cut_lower, cut_upper, decimal_to_bytes
from metastore.kernel.column_statistics import ColumnStatistics
from metastore.kernel.parquet_file import FileStatistics, open_parquet_file, translate_arrow_errors
from metastore.kernel.parquet_schema import UnsupportedDataFile, is_uuid, require_no_rebase, require_same_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.kernel.parquet_schema import FileColumn, ParquetField


_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def analyze_footer(source: Any, columns: Sequence[FileColumn]) -> FileStatistics:
    """Read the statistics of columns from the footer of one Parquet file."""
    with translate_arrow_errors():
        metadata = pq.read_metadata(source)
        file, fields = open_parquet_file(source, metadata, ())
        statistics = []
        for file_column in columns:
            field = fields.find(file_column)
            statistics.append(None if field is None else _read_column(file, file_column.column, field))
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
        """The statistics of one column chunk, as pyarrow has them."""
        if statistics is None:
            return cls(rows, None, None)
        nulls = statistics.null_count if statistics.has_null_count else None
        return cls(rows, nulls, statistics if statistics.has_min_max else None)

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


def _read_column(file: pq.ParquetFile, column: Column, field: ParquetField) -> ColumnStatistics:
    row_groups = _list_row_groups(file.metadata)
    sizes = _read_sizes(file.metadata.num_rows, row_groups, column, field)
    if not _has_same_values(file, column, field):
        return sizes
    groups = [_RowGroup.of(row_group.num_rows, row_group.column(field.first).statistics) for row_group in row_groups]
    if not all(group.is_possible for group in groups):
        return sizes
    counts = replace(sizes, nulls=_count_nulls(groups), nans=0)
    return _add_bounds(counts, groups, column, field)


def _list_row_groups(metadata: pq.FileMetaData) -> list[Any]:
    """The row groups that have rows."""
    row_groups = map(metadata.row_group, range(metadata.num_row_groups))
    return [row_group for row_group in row_groups if row_group.num_rows]


def _read_sizes(rows: int, row_groups: Sequence[Any], column: Column, field: ParquetField) -> ColumnStatistics:
    compressed_bytes = uncompressed_bytes = 0
    for row_group in row_groups:
        for leaf in range(field.first, field.first + field.leaves):
            chunk = row_group.column(leaf)
            compressed_bytes += chunk.total_compressed_size
            uncompressed_bytes += chunk.total_uncompressed_size
    return ColumnStatistics(
        rows, column.encoding, compressed_bytes=compressed_bytes, uncompressed_bytes=uncompressed_bytes
    )


def _has_same_values(file: pq.ParquetFile, column: Column, field: ParquetField) -> bool:
    """Whether the file's values are the column's, and compare as Spark compares them."""
    leaf = file.schema.column(field.first)
    if column.encoding in (None, "double") or pa.types.is_unsigned_integer(field.type):
        return False
    if leaf.max_repetition_level or leaf.physical_type == "INT96" or is_uuid(leaf):
        return False
    try:
        require_same_values(field, column, leaf.physical_type, uuid=False)
        require_no_rebase(file.metadata.metadata or {}, column, leaf.physical_type)
    except UnsupportedDataFile:
        return False  # which is an answer here: unknown
    return True


def _count_nulls(groups: Sequence[_RowGroup]) -> int | None:
    nulls = 0
    for group in groups:
        if group.nulls is None:
            return None
        nulls += group.nulls
    return nulls


def _add_bounds(
    counts: ColumnStatistics, groups: Sequence[_RowGroup], column: Column, field: ParquetField
) -> ColumnStatistics:
    """Add the bounds of all row groups, unless one has none or bounds that cannot be."""
    bounds = [_read_bounds(group, column, field) for group in groups if not group.has_only_nulls]
    if not bounds or None in bounds:
        return counts
    key = make_comparison_key(column)
    lows, highs = zip(*bounds, strict=True)
    lo, hi = min(lows, key=key), max(highs, key=key)
    if not sortable_values.is_text(column):
        return replace(counts, lo=lo, hi=hi, lo_exact=True, hi_exact=True)
    cut_lo, _ = cut_lower(lo)
    cut_hi, _ = cut_upper(hi)
    return replace(counts, lo=cut_lo, hi=cut_hi, lo_exact=False, hi_exact=False)


def _read_bounds(group: _RowGroup, column: Column, field: ParquetField) -> tuple[Any, Any] | None:
    """The bounds of a row group as the format stores them; None if there are none, or they cannot be."""
    if group.bounds is None:
        return None
    lo = _read_value(group.bounds.min_raw, column, field)
    hi = _read_value(group.bounds.max_raw, column, field)
    if lo is None or hi is None:
        return None
    key = make_comparison_key(column)
    return None if key(lo) > key(hi) else (lo, hi)


def _read_value(raw: Any, column: Column, field: ParquetField) -> Any:
    """Convert a physical value to the format's; None if it cannot be one of the column's."""
    if decimal_type(column.type):
        return _read_decimal(raw, column, field)
    if column.encoding == "binary":
        return bytes(raw)
    factor = _MICROS[field.type.unit] if pa.types.is_timestamp(field.type) else 1
    value = int(raw) * factor
    return value if -(1 << 63) <= value < 1 << 63 else None


def _read_decimal(raw: Any, column: Column, field: ParquetField) -> Any:
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
    if abs(unscaled) >= 10**field.type.precision:
        return None
    return decimal_to_bytes(unscaled) if sortable_values.is_wide_decimal(column) else unscaled
