"""Columns that a file holds in another type than the table has, as Hudi's readers show them: cast, row by row."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.adapters import refusals
from metastore.format.table_column import Column, decimal_type, is_exact_cast
from metastore.kernel.column_statistics import ColumnStatistics
from metastore.kernel.parquet_schema import ParquetField, UnsupportedDataFile, require_same_values

_OF_INTEGERS = {"float": pa.float32(), "double": pa.float64(), "string": pa.string()}


class ReaderCast(Enum):
    """How the values that readers show follow from those of a file."""

    SAME = "same"
    """They are the same."""
    CAST = "cast"
    """By a cast that has one answer everywhere."""
    NEAR = "near"
    """A float becomes the double of its text, which releases of Java spell differently, but never as another float."""
    UNKNOWN = "unknown"
    """By a cast that depends on the reader."""


def find_reader_cast(node: ParquetField, column: Column, physical: str, *, uuid: bool) -> ReaderCast:
    """Tell how readers show a column that they cast to the table's type."""
    kind = node.type.value_type if pa.types.is_dictionary(node.type) else node.type
    if column.type == "double" and pa.types.is_float32(kind):
        return ReaderCast.NEAR
    try:
        require_same_values(node, column, physical, uuid=uuid)
    except UnsupportedDataFile:
        return ReaderCast.CAST if is_exact_cast(_type_of(kind), column.type) else ReaderCast.UNKNOWN
    return ReaderCast.SAME


def _type_of(kind: pa.DataType) -> str:
    """The Spark type of numbers of a file; integers of all widths are cast alike."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return "bigint" if pa.types.is_signed_integer(kind) else str(kind)


def cast_file_values(values: pa.Array, column: Column) -> pa.Array:
    """Cast values of a file whose column is `Shown.CAST`."""
    wanted = decimal_type(column.type)
    to = _OF_INTEGERS[column.type] if wanted is None else pa.decimal128(*wanted)
    return pc.cast(values, to, safe=wanted is not None)  # as Java rounds: to the nearest, to even between two


def statistics_of_unknown_cast(rows: int, column: Column, node: ParquetField) -> ColumnStatistics:
    """What is known of a column that is `Shown.UNKNOWN`: nothing."""
    return ColumnStatistics(rows, column.encoding, cast_type=(str(node.type), refusals.NOTHING))


def widen_float_bounds(found: ColumnStatistics, column: Column) -> ColumnStatistics:
    """What the statistics of floats say of the doubles of the same texts: counts, and bounds one float wider."""
    wider = ColumnStatistics(
        found.rows,
        column.encoding,
        nulls=found.nulls,
        nans=found.nans,
        compressed_bytes=found.compressed_bytes,
        uncompressed_bytes=found.uncompressed_bytes,
        cast_type=("float", refusals.ONLY_BOUNDS),
    )
    if found.lo is None or found.hi is None:
        return wider
    lo = float(np.nextafter(np.float32(found.lo), np.float32(-np.inf)))
    hi = float(np.nextafter(np.float32(found.hi), np.float32(np.inf)))
    return replace(wider, lo=lo, hi=hi, lo_exact=False, hi_exact=False)
