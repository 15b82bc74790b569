"""Which leaves of a Parquet file hold the wanted columns, and whether pyarrow reads them as Spark does."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
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
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"


@dataclass(frozen=True)
class FileColumn:
    """A wanted column and how a file names it.

    Attributes:
        field_id: Its field id; None where files are matched by name.
        path: Its names in the file where they are not those of the table (Delta's physical names, Hudi's earlier ones).
            With a field id, both have to be those of one field, as far as the file has ids.
    """

    column: Column
    field_id: int | None = None
    path: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls, column: Column, field_ids: Mapping[str, int] | None = None, names: Mapping[str, str] | None = None
    ) -> FileColumn:
        """The names that a table's files give to a column, by its key, or the one that a file gives to it by itself."""
        if names and column.key in names:
            return cls(column, path=(names[column.key],))
        if column.key.isdecimal():
            return cls(column, int(column.key))
        return cls(column, (field_ids or {}).get(column.key), tuple(json.loads(column.key)))


@dataclass(frozen=True)
class ParquetField:
    """A field of a file that is not inside a list or map.

    Attributes:
        path: Its names from the root.
        field_id: Its field id, if it has one.
        first: Its first Parquet leaf.
        leaves: How many leaves it has.
    """

    path: tuple[str, ...]
    field_id: int | None
    type: pa.DataType
    first: int
    leaves: int


class ParquetFields:
    """The fields of a Parquet file.

    Raises:
        UnsupportedDataFile: If pyarrow does not see the leaves that the file has, or two fields share a name or an id.
    """

    def __init__(self, schema: pa.Schema, leaves: int) -> None:
        nodes = list(_nodes(schema, (), 0))
        if sum(node.leaves for node in nodes if len(node.path) == 1) != leaves:
            raise UnsupportedDataFile("the file's schema is not the one that pyarrow derives")
        with_id = [node for node in nodes if node.field_id is not None]
        self._by_path = {node.path: node for node in nodes}
        self._by_id = {node.field_id: node for node in with_id}
        if len(self._by_path) < len(nodes):
            raise UnsupportedDataFile("two fields of the file have the same name")
        if len(self._by_id) < len(with_id):
            raise UnsupportedDataFile("two fields of the file have the same field id")

    def find(self, wanted: FileColumn) -> ParquetField | None:
        """The field that holds a column, None if the file has none."""
        if wanted.field_id is None:
            return self._named(wanted.path or wanted.column.path)
        if wanted.path is None:
            if not self._by_id:
                raise UnsupportedDataFile("the file has no field ids")
            return self._by_id.get(wanted.field_id)
        found = self._named(wanted.path)
        if self._by_id and self._by_id.get(wanted.field_id) is not found:
            raise UnsupportedDataFile("names and field ids of the file are those of different columns")
        return found

    def _named(self, path: tuple[str, ...]) -> ParquetField | None:
        found = self._by_path.get(path)
        if found is None and tuple(map(str.casefold, path)) in self._folded:
            raise UnsupportedDataFile("a column's name differs from the file's in its case")
        return found

    @cached_property
    def _folded(self) -> frozenset[tuple[str, ...]]:
        return frozenset(tuple(map(str.casefold, path)) for path in self._by_path)


def require_same_values(node: ParquetField, column: Column, physical: str, *, uuid: bool) -> None:
    """Refuse a field whose values pyarrow does not give as Spark does."""
    kind = node.type.value_type if pa.types.is_dictionary(node.type) else node.type
    check = _CHECKS.get(column.type) or (_is_decimal if decimal_type(column.type) else None)
    if check is None:
        check = _is_interval if column.type.startswith("interval") else _is_text
    same = check(kind, column, physical) or (uuid and check is _is_text)
    if pa.types.is_nested(kind) or not same:
        raise UnsupportedDataFile(
            f"column {column.name} is {physical} ({kind}) in the file and {column.type} in the table"
        )


def require_no_rebase(metadata: dict[bytes, bytes], column: Column, physical: str) -> None:
    """Refuse dates and timestamps that Spark shifts from the Julian calendar while it reads."""
    if column.type not in ("date", "timestamp"):
        return
    int96 = physical == "INT96"
    version = metadata.get(_SPARK_VERSION)
    oldest = (3, 1) if int96 else (3, 0)
    if (_LEGACY_INT96 if int96 else _LEGACY_DATES) in metadata or (version and _release(version) < oldest):
        raise UnsupportedDataFile(f"column {column.name} was written in the legacy calendar")


def is_uuid(leaf: pq.ColumnSchema) -> bool:
    """Whether a leaf is annotated as a UUID."""
    return bool(leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and leaf.logical_type.type == "UUID")


def _release(version: bytes) -> tuple[int, ...]:
    parts = version.split(b".")[:2]
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def _nodes(fields: Any, parents: tuple[str, ...], first: int) -> Iterator[ParquetField]:
    for field in fields:
        count = _leaf_count(field.type)
        path = (*parents, field.name)
        raw = (field.metadata or {}).get(_FIELD_ID)
        yield ParquetField(path, None if raw is None or int(raw) < 0 else int(raw), field.type, first, count)
        if pa.types.is_struct(field.type):
            yield from _nodes(_children(field.type), path, first)
        first += count


def _leaf_count(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        return 1
    return sum(_leaf_count(field.type) for field in _children(kind)) if kind.num_fields else 1


def _children(kind: pa.DataType) -> Sequence[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.field(i) for i in range(kind.num_fields)]


def _is_integer(kind: pa.DataType, column: Column, _: str) -> bool:
    if not pa.types.is_integer(kind):
        return False
    bits = _BITS[column.type]
    return bool(kind.bit_width <= bits if pa.types.is_signed_integer(kind) else kind.bit_width < bits)


def _is_decimal(kind: pa.DataType, column: Column, _: str) -> bool:
    precision, scale = decimal_type(column.type) or (0, 0)
    return bool(pa.types.is_decimal(kind) and kind.scale == scale and kind.precision <= precision)


def _is_timestamp(kind: pa.DataType, _: Column, physical: str) -> bool:
    if not pa.types.is_timestamp(kind):
        return False
    return physical == "INT96" or (kind.tz is not None and kind.unit != "ns")


def _is_local_timestamp(kind: pa.DataType, _: Column, physical: str) -> bool:
    return bool(pa.types.is_timestamp(kind) and physical != "INT96" and kind.tz is None and kind.unit != "ns")


def _is_interval(kind: pa.DataType, column: Column, physical: str) -> bool:
    if sortable_values.is_year_month(column):
        return bool(physical == "INT32" and kind == pa.int32())
    return physical == "INT64" and (kind == pa.int64() or (pa.types.is_duration(kind) and kind.unit == "us"))


def _is_text(_: pa.DataType, __: Column, physical: str) -> bool:
    return physical == "BYTE_ARRAY"


def _is_bytes(kind: pa.DataType, _: Column, physical: str) -> bool:
    return physical == "BYTE_ARRAY" or (physical == "FIXED_LEN_BYTE_ARRAY" and pa.types.is_fixed_size_binary(kind))


_CHECKS: dict[str, Callable[[pa.DataType, Column, str], bool]] = {
    "boolean": lambda kind, *_: bool(pa.types.is_boolean(kind)),
    "float": lambda kind, *_: bool(pa.types.is_float32(kind)),
    "double": lambda kind, *_: bool(pa.types.is_float32(kind) or pa.types.is_float64(kind)),
    "date": lambda kind, *_: bool(pa.types.is_date32(kind)),
    "timestamp": _is_timestamp,
    "timestamp_ntz": _is_local_timestamp,
    "binary": _is_bytes,
    **dict.fromkeys(_BITS, _is_integer),
}


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
    """Cast values of a file whose column is `ReaderCast.CAST`."""
    wanted = decimal_type(column.type)
    to = _OF_INTEGERS[column.type] if wanted is None else pa.decimal128(*wanted)
    return pc.cast(values, to, safe=wanted is not None)  # as Java rounds: to the nearest, to even between two


def statistics_of_unknown_cast(rows: int, column: Column, node: ParquetField) -> ColumnStatistics:
    """What is known of a column that is `ReaderCast.UNKNOWN`: nothing."""
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
