"""Finds the fields of columns in a Parquet file, and refuses those that pyarrow and Spark read in different ways."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.adapters import refusals
from metastore.format import sortable_values
from metastore.format.table_column import Column, decimal_type, is_exact_cast
from metastore.kernel.column_statistics import ColumnStatistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow.parquet as pq


class UnsupportedDataFile(Exception):  # noqa: N818 - the name says what is wrong
    """pyarrow cannot open a data file, or might read it differently from Spark; Spark has to read it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_FIELD_ID = b"PARQUET:field_id"
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"


@dataclass(frozen=True)
class FileColumn:
    """A column and its name in a file.

    Attributes:
        column: The column.
        field_id: The field id; None if files are matched by name.
        path: The names in the file if they are not those of the table (Delta's physical names, Hudi's earlier ones).
            With a field id, names and id have to belong to one field, if the file has ids.
    """

    column: Column
    field_id: int | None = None
    path: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls, column: Column, field_ids: Mapping[str, int] | None = None, names: Mapping[str, str] | None = None
    ) -> FileColumn:
        """Find the name or the field id of a column in files of the table, or the name in this one file."""
        if names and column.key in names:
            return cls(column, path=(names[column.key],))
        if column.key.isdecimal():
            return cls(column, field_id=int(column.key))
        path = tuple(json.loads(column.key))
        if not field_ids:
            return cls(column, path=path)
        return cls(column, field_ids.get(column.key), path)


@dataclass(frozen=True)
class ParquetField:
    """A field of a file that is not inside a list or map.

    Attributes:
        path: The names from the root.
        field_id: The field id, or None.
        type: The type that pyarrow reads.
        first: The number of the first Parquet leaf.
        leaves: The number of leaves.
    """

    path: tuple[str, ...]
    field_id: int | None
    type: pa.DataType
    first: int
    leaves: int


class ParquetFields:
    """The fields of a Parquet file.

    Raises:
        UnsupportedDataFile: If pyarrow sees other leaves than the file has, or two fields share a name or an id.
    """

    def __init__(self, schema: pa.Schema, leaves: int) -> None:
        fields = list(_iterate_fields(schema, (), 0))
        if sum(map(_leaf_count, schema.types)) != leaves:
            raise UnsupportedDataFile("the file's schema is not the one that pyarrow derives")
        fields_with_id = [field for field in fields if field.field_id is not None]
        self._by_path = _index(fields, attrgetter("path"), "name")
        self._by_id = _index(fields_with_id, attrgetter("field_id"), "field id")

    def find(self, column: FileColumn) -> ParquetField | None:
        """Return the field that holds a column; None if the file has none.

        Raises:
            UnsupportedDataFile: It is not certain which field this is.
        """
        if column.field_id is None:
            return self._find_by_path(column.path or column.column.path)
        if column.path is None:
            return self._find_by_id(column.field_id)
        by_path = self._find_by_path(column.path)
        if self._by_id and self._by_id.get(column.field_id) is not by_path:
            raise UnsupportedDataFile("names and field ids of the file are those of different columns")
        return by_path

    def _find_by_id(self, field_id: int) -> ParquetField | None:
        if not self._by_id:
            raise UnsupportedDataFile("the file has no field ids")
        return self._by_id.get(field_id)

    def _find_by_path(self, path: tuple[str, ...]) -> ParquetField | None:
        field = self._by_path.get(path)
        if field is None and _fold_case(path) in self._folded:
            raise UnsupportedDataFile("a column's name differs from the file's in its case")
        return field

    @cached_property
    def _folded(self) -> frozenset[tuple[str, ...]]:
        return frozenset(map(_fold_case, self._by_path))


def _index(fields: Sequence[ParquetField], key: Callable[[ParquetField], Any], kind: str) -> dict[Any, ParquetField]:
    index = {key(field): field for field in fields}
    if len(index) < len(fields):
        raise UnsupportedDataFile(f"two fields of the file have the same {kind}")
    return index


def _fold_case(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(str.casefold, path))


def require_same_values(field: ParquetField, column: Column, physical: str, *, uuid: bool) -> None:
    """Raise an error if pyarrow and Spark may read different values from a field."""
    value_type = _value_type(field)
    has_same_values = _choose_check(column)
    if uuid and has_same_values is _is_text:  # Spark shows it as a text
        return
    if pa.types.is_nested(value_type) or not has_same_values(value_type, column, physical):
        raise UnsupportedDataFile(
            f"column {column.name} is {physical} ({value_type}) in the file and {column.type} in the table"
        )


def _value_type(field: ParquetField) -> pa.DataType:
    if pa.types.is_dictionary(field.type):
        return field.type.value_type
    return field.type


def _choose_check(column: Column) -> Callable[[pa.DataType, Column, str], bool]:
    if column.type in _CHECKS:
        return _CHECKS[column.type]
    if decimal_type(column.type):
        return _is_decimal
    if column.type.startswith("interval"):
        return _is_interval
    return _is_text


def require_no_rebase(metadata: dict[bytes, bytes] | None, column: Column, physical: str) -> None:
    """Raise an error for dates and timestamps that Spark converts from the Julian calendar."""
    if metadata is None or column.type not in ("date", "timestamp"):
        return
    mark = _LEGACY_DATES
    first_release = (3, 0)
    if physical == "INT96":
        mark = _LEGACY_INT96
        first_release = (3, 1)
    if mark in metadata or _is_older(metadata, first_release):
        raise UnsupportedDataFile(f"column {column.name} was written in the legacy calendar")


def _is_older(metadata: dict[bytes, bytes], release: tuple[int, int]) -> bool:
    """Return whether an older release of Spark wrote the file."""
    if _SPARK_VERSION not in metadata:
        return False
    version = re.findall(rb"\d+", metadata[_SPARK_VERSION])
    return tuple(map(int, version[:2])) < release


def is_uuid(leaf: pq.ColumnSchema) -> bool:
    """Return whether a leaf is annotated as a UUID."""
    return bool(leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and leaf.logical_type.type == "UUID")


def _iterate_fields(fields: Any, parents: tuple[str, ...], first: int) -> Iterator[ParquetField]:
    for field in fields:
        count = _leaf_count(field.type)
        path = (*parents, field.name)
        yield ParquetField(path, _field_id(field), field.type, first, count)
        if pa.types.is_struct(field.type):
            yield from _iterate_fields(_children(field.type), path, first)
        first += count


def _field_id(field: pa.Field) -> int | None:
    metadata = field.metadata or {}
    number = int(metadata.get(_FIELD_ID, -1))
    if number < 0:
        return None
    return number


def _leaf_count(data_type: pa.DataType) -> int:
    if isinstance(data_type, pa.BaseExtensionType):
        return _leaf_count(data_type.storage_type)
    if pa.types.is_dictionary(data_type) or not data_type.num_fields:
        return 1
    types = map(attrgetter("type"), _children(data_type))
    return sum(map(_leaf_count, types))


def _children(data_type: pa.DataType) -> Sequence[pa.Field]:
    if pa.types.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    return list(map(data_type.field, range(data_type.num_fields)))


_SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
_UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32()]
_SAME_TYPES = {
    "boolean": [pa.bool_()],
    "tinyint": _SIGNED[:1],
    "smallint": [*_SIGNED[:2], *_UNSIGNED[:1]],
    "int": [*_SIGNED[:3], *_UNSIGNED[:2]],
    "bigint": [*_SIGNED, *_UNSIGNED],
    "float": [pa.float32()],
    "double": [pa.float32(), pa.float64()],
    "date": [pa.date32()],
}
"""Spark's types, and the types in files whose values they can all represent."""
_LOCAL_TIMESTAMPS = [pa.timestamp(unit) for unit in ("s", "ms", "us")]


def _is_same_type(data_type: pa.DataType, column: Column, _: str) -> bool:
    return data_type in _SAME_TYPES[column.type]


def _is_decimal(data_type: pa.DataType, column: Column, _: str) -> bool:
    if not pa.types.is_decimal(data_type):
        return False
    precision, scale = decimal_type(column.type) or (0, 0)
    return bool(data_type.scale == scale and data_type.precision <= precision)


def _is_timestamp(data_type: pa.DataType, _: Column, physical: str) -> bool:
    if not pa.types.is_timestamp(data_type):
        return False
    return physical == "INT96" or (data_type.tz is not None and data_type.unit != "ns")


def _is_local_timestamp(data_type: pa.DataType, _: Column, physical: str) -> bool:
    return physical != "INT96" and data_type in _LOCAL_TIMESTAMPS


def _is_interval(data_type: pa.DataType, column: Column, physical: str) -> bool:
    if sortable_values.is_year_month(column):
        return bool(physical == "INT32" and data_type == pa.int32())
    return physical == "INT64" and data_type in (pa.int64(), pa.duration("us"))


def _is_text(_: pa.DataType, __: Column, physical: str) -> bool:
    return physical == "BYTE_ARRAY"


def _is_bytes(data_type: pa.DataType, _: Column, physical: str) -> bool:
    is_fixed_size = physical == "FIXED_LEN_BYTE_ARRAY" and pa.types.is_fixed_size_binary(data_type)
    return physical == "BYTE_ARRAY" or is_fixed_size


_CHECKS: dict[str, Callable[[pa.DataType, Column, str], bool]] = {
    **dict.fromkeys(_SAME_TYPES, _is_same_type),
    "timestamp": _is_timestamp,
    "timestamp_ntz": _is_local_timestamp,
    "binary": _is_bytes,
}


_FROM_INTEGERS = {"float": pa.float32(), "double": pa.float64(), "string": pa.string()}


class ReaderCast(Enum):
    """The relation of the values that readers show to the values in the file."""

    SAME = "same"
    """Readers show the same values."""
    CAST = "cast"
    """Readers cast the values, all with the same result."""
    NEAR = "near"
    """Readers show a float as the double with the same text; the text may differ between releases of Java."""
    UNKNOWN = "unknown"
    """Readers cast the values, with different results."""


def find_reader_cast(field: ParquetField, column: Column, physical: str, *, uuid: bool) -> ReaderCast:
    """Find the relation of the values that readers show to the values in a field."""
    value_type = _value_type(field)
    if column.type == "double" and pa.types.is_float32(value_type):
        return ReaderCast.NEAR
    try:
        require_same_values(field, column, physical, uuid=uuid)
    except UnsupportedDataFile:
        if is_exact_cast(_spark_type(value_type), column.type):
            return ReaderCast.CAST
        return ReaderCast.UNKNOWN
    return ReaderCast.SAME


def _spark_type(number_type: pa.DataType) -> str:
    """Name the Spark type of numbers in a file; integers of all widths count as bigint, since they are cast alike."""
    if pa.types.is_decimal(number_type):
        return f"decimal({number_type.precision},{number_type.scale})"
    if pa.types.is_signed_integer(number_type):
        return "bigint"
    return str(number_type)


def cast_file_values(values: pa.Array, column: Column) -> pa.Array:
    """Cast values of a file whose column is `ReaderCast.CAST`."""
    decimal = decimal_type(column.type)
    if decimal is not None:
        return pc.cast(values, pa.decimal128(*decimal))
    # `safe=False` allows rounding, which is that of Java: to the nearest, and half to even.
    return pc.cast(values, _FROM_INTEGERS[column.type], safe=False)


def statistics_of_unknown_cast(rows: int, column: Column, field: ParquetField) -> ColumnStatistics:
    """Make the statistics of a column with `ReaderCast.UNKNOWN`: only the number of rows."""
    return ColumnStatistics(rows=rows, encoding=column.encoding, cast_type=(str(field.type), refusals.NOTHING))


def widen_float_bounds(floats: ColumnStatistics, column: Column) -> ColumnStatistics:
    """Make the statistics of the doubles that readers show for floats: bounds are wider by one float."""
    doubles = ColumnStatistics(
        rows=floats.rows,
        encoding=column.encoding,
        nulls=floats.nulls,
        nans=floats.nans,
        compressed_bytes=floats.compressed_bytes,
        uncompressed_bytes=floats.uncompressed_bytes,
        cast_type=("float", refusals.ONLY_BOUNDS),
    )
    if None in (floats.lo, floats.hi):
        return doubles
    lo = float(np.nextafter(np.float32(floats.lo), np.float32(-np.inf)))
    hi = float(np.nextafter(np.float32(floats.hi), np.float32(np.inf)))
    return replace(doubles, lo=lo, hi=hi, lo_exact=False, hi_exact=False)
