"""Bounds from the footer of a Parquet file alone, where footers can be trusted.

Integers, dates, decimals, intervals and INT64 timestamps: exact. Strings and binary: bounds that may have been cut.
Floating point never (NaN, zeros of both signs), INT96 never (its order is undefined), nothing inside lists and maps.
"""

from __future__ import annotations

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
    """What the footer of one Parquet file says of columns."""
    with translate_arrow_errors():
        metadata = pq.read_metadata(source)
        file, leaves = open_parquet_file(source, metadata, ())
        nodes = [(wanted.column, leaves.find(wanted)) for wanted in columns]
        found = tuple(None if node is None else _column(file, column, node) for column, node in nodes)
        return FileStatistics(metadata.num_rows, found)


def _column(file: pq.ParquetFile, column: Column, node: ParquetField) -> ColumnStatistics:
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    groups = [group for group in groups if group.num_rows]
    rows, leaf = file.metadata.num_rows, file.schema.column(node.first)
    chunks = [group.column(node.first + i) for group in groups for i in range(node.leaves)]
    common: dict[str, Any] = {
        "rows": rows,
        "encoding": column.encoding,
        "compressed_bytes": sum(chunk.total_compressed_size for chunk in chunks),
        "uncompressed_bytes": sum(chunk.total_uncompressed_size for chunk in chunks),
    }
    if column.encoding is None or leaf.max_repetition_level or not _same_values(file, column, node):
        return ColumnStatistics(**common)
    found = [chunk.statistics for chunk in chunks]
    numbers = [group.num_rows for group in groups]
    if not all(_is_possible(one, number) for one, number in zip(found, numbers, strict=True)):
        return ColumnStatistics(**common)
    counted = all(one is not None and one.has_null_count for one in found)
    nulls = sum(one.null_count for one in found) if counted else None
    bounds = _bounds(found, numbers, column, node) or {}
    return ColumnStatistics(**common, nulls=nulls, nans=0, **bounds)


def _same_values(file: pq.ParquetFile, column: Column, node: ParquetField) -> bool:
    leaf = file.schema.column(node.first)
    if column.encoding == "double" or leaf.physical_type == "INT96":
        return False
    try:
        require_same_values(node, column, leaf.physical_type, uuid=False)
        require_no_rebase(file.metadata.metadata or {}, column, leaf.physical_type)
    except UnsupportedDataFile:
        return False  # which is an answer here: unknown
    unsigned = pa.types.is_integer(node.type) and not pa.types.is_signed_integer(node.type)
    return not unsigned and not is_uuid(leaf)


def _is_possible(found: Any, rows: int) -> bool:
    """Whether the statistics of a row group do not contradict its number of rows."""
    if found is None or not found.has_null_count:
        return True
    return 0 <= found.null_count <= rows and not (found.null_count == rows and found.has_min_max)


def _bounds(found: Sequence[Any], rows: Sequence[int], column: Column, node: ParquetField) -> dict[str, Any] | None:
    """Lowest and highest bound of all row groups; None unless each has both and they agree with the counts."""
    key, lows, highs = make_comparison_key(column), [], []
    for one, most in zip(found, rows, strict=True):
        if one is None:
            return None
        if not one.has_min_max:
            if one.has_null_count and one.null_count == most:
                continue
            return None
        lo, hi = (_stored(raw, column, node) for raw in (one.min_raw, one.max_raw))
        if lo is None or hi is None or key(lo) > key(hi):
            return None
        lows.append(lo)
        highs.append(hi)
    if not lows:
        return None
    lo, hi = min(lows, key=key), max(highs, key=key)
    if sortable_values.is_text(column):
        return {"lo": cut_lower(lo)[0], "hi": cut_upper(hi)[0], "lo_exact": False, "hi_exact": False}
    return {"lo": lo, "hi": hi, "lo_exact": True, "hi_exact": True}


def _stored(raw: Any, column: Column, node: ParquetField) -> Any:
    """A physical value as the format stores it; None if it cannot be one of the column's."""
    if decimal_type(column.type):
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        if abs(unscaled) >= 10**node.type.precision:
            return None
        return decimal_to_bytes(unscaled) if sortable_values.is_wide_decimal(column) else unscaled
    if column.encoding == "binary":
        return bytes(raw)
    factor = _MICROS[node.type.unit] if pa.types.is_timestamp(node.type) else 1
    value = int(raw) * factor
    return value if -(1 << 63) <= value < 1 << 63 else None
