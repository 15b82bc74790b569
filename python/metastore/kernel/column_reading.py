"""Plans how a column of a Parquet file is read, and converts what pyarrow reads to the values of the table's column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.kernel.parquet_schema import (
    ReaderCast,
    UnsupportedDataFile,
    cast_file_values,
    find_reader_cast,
    is_uuid,
    require_no_rebase,
    require_same_values,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow.parquet as pq

    from metastore.format.table_column import Column
    from metastore.kernel.parquet_schema import FileColumn, ParquetField, ParquetFields

NUMBER_BYTES = 8
_OFFSET_BYTES = 4  # more in memory than the lengths in the file
_DICTIONARY_BYTES = 1 << 20
_CODE_BYTES = 3
_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_UUID_GROUPS = (4, 6, 8, 10)


@dataclass(frozen=True, kw_only=True)
class ColumnReading:
    """A column of a file that is read.

    Attributes:
        number: The number of the column in the request.
        column: The column.
        field: The field that holds it.
        reader_cast: The relation of the values that readers show to those of the file.
        is_uuid: Whether the file holds UUIDs.
        as_dictionary: Whether it is read as a dictionary.
        memory_bytes: The memory of its values.
        compressed_bytes: The size in the file.
        uncompressed_bytes: The size in the file before it is compressed.
        texts: The number of offsets and bytes of plain texts; zeros for other columns.
    """

    number: int
    column: Column
    field: ParquetField
    reader_cast: ReaderCast
    is_uuid: bool
    as_dictionary: bool
    memory_bytes: int
    compressed_bytes: int
    uncompressed_bytes: int
    texts: tuple[int, int]

    @property
    def kernel_column(self) -> Column:
        """The column as the kernel computes it: a float if readers show a double of nearly the same value."""
        if self.reader_cast is ReaderCast.NEAR:
            return replace(self.column, type="float")
        return self.column

    def arrays(self, table: pa.Table) -> Iterator[pa.Array]:
        """Yield the values of the column in a part of the file."""
        index = _field_index(table.schema, self.field.path[0])
        for chunk in table.column(index).chunks:
            yield self._convert(chunk)

    def _convert(self, chunk: pa.Array) -> pa.Array:
        for name in self.field.path[1:]:
            chunk = pc.struct_field(chunk, _field_index(chunk.type, name))  # null where a parent is
        if self.reader_cast is ReaderCast.CAST:
            return cast_file_values(chunk, self.column)
        if self.is_uuid and self.column.type != "binary":
            return _uuid_texts(chunk)
        return chunk


def plan_readings(file: pq.ParquetFile, fields: ParquetFields, columns: Sequence[FileColumn]) -> list[ColumnReading]:
    """Plan how the columns that the file has are read."""
    readings = []
    for number, file_column in enumerate(columns):
        field = fields.find(file_column)
        if field is not None:
            readings.append(plan_reading(number, file_column.column, field, file))
    return readings


def plan_reading(number: int, column: Column, field: ParquetField, file: pq.ParquetFile) -> ColumnReading:
    """Plan how a column is read, or raise an error."""
    leaf = file.schema.column(field.first)
    chunks = list_column_chunks(list_row_groups(file.metadata), field)
    compressed_bytes, uncompressed_bytes = measure_chunks(chunks)
    rows = file.metadata.num_rows
    as_dictionary = False
    memory_bytes = NUMBER_BYTES * rows
    texts = (0, 0)
    if column.encoding == "binary" and leaf.physical_type == "BYTE_ARRAY":
        as_dictionary = _is_read_as_dictionary(field, chunks)
        memory_bytes = uncompressed_bytes + _OFFSET_BYTES * rows
        if not as_dictionary:
            texts = (rows + 1, uncompressed_bytes)
    return ColumnReading(
        number=number,
        column=column,
        field=field,
        reader_cast=_choose_cast(column, field, file),
        is_uuid=is_uuid(leaf),
        as_dictionary=as_dictionary,
        memory_bytes=memory_bytes,
        compressed_bytes=compressed_bytes,
        uncompressed_bytes=uncompressed_bytes,
        texts=texts,
    )


def _choose_cast(column: Column, field: ParquetField, file: pq.ParquetFile) -> ReaderCast:
    """Find how readers show a column, or raise an error."""
    if column.encoding is None:
        return ReaderCast.SAME
    leaf = file.schema.column(field.first)
    reader_cast = ReaderCast.SAME
    if column.casts:
        reader_cast = find_reader_cast(field, column, leaf.physical_type, uuid=is_uuid(leaf))
    else:
        require_same_values(field, column, leaf.physical_type, uuid=is_uuid(leaf))
    require_no_rebase(file.metadata.metadata, column, leaf.physical_type)
    return reader_cast


def list_row_groups(metadata: pq.FileMetaData) -> list[Any]:
    """List the metadata of the row groups of a file."""
    return list(map(metadata.row_group, range(metadata.num_row_groups)))


def list_column_chunks(row_groups: Iterable[Any], field: ParquetField) -> list[Any]:
    """List the metadata of a field's column chunks."""
    chunks: list[Any] = []
    leaves = range(field.first, field.first + field.leaves)
    for row_group in row_groups:
        chunks += map(row_group.column, leaves)
    return chunks


def measure_chunks(chunks: Iterable[Any]) -> tuple[int, int]:
    """Add up the bytes of column chunks, compressed and uncompressed."""
    compressed_bytes = uncompressed_bytes = 0
    for chunk in chunks:
        compressed_bytes += chunk.total_compressed_size
        uncompressed_bytes += chunk.total_uncompressed_size
    return compressed_bytes, uncompressed_bytes


def _is_read_as_dictionary(field: ParquetField, chunks: Sequence[Any]) -> bool:
    if len(field.path) > 1:  # pyarrow cannot read chunks with several dictionaries inside a struct
        return False
    return bool(chunks) and all(map(_has_all_in_dictionary, chunks))


def _has_all_in_dictionary(chunk: Any) -> bool:
    """Return whether all values probably are in the dictionary: writers use plain values when it grows large."""
    largest: int = _DICTIONARY_BYTES + _CODE_BYTES * chunk.num_values
    return bool(chunk.has_dictionary_page and chunk.total_uncompressed_size <= largest)


def _field_index(fields: pa.Schema | pa.StructType, name: str) -> int:
    index = int(fields.get_field_index(name))
    if index < 0:
        raise UnsupportedDataFile(f"pyarrow does not find field {name} among those that it read")
    return index


def _uuid_texts(values: pa.Array) -> pa.Array:
    """Return UUIDs as Spark shows them: 36 characters of lower-case hexadecimal digits."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    present = values.drop_null()
    if not len(present):
        return pa.nulls(len(values), pa.large_binary())
    first = 16 * present.offset
    end = 16 * (present.offset + len(present))
    raw = np.frombuffer(present.buffers()[1], dtype=np.uint8)[first:end].reshape(-1, 16)
    characters = np.full((len(present), 36), ord("-"), dtype=np.uint8)
    position = 0
    for byte in range(16):
        position += byte in _UUID_GROUPS
        characters[:, position] = _HEXADECIMAL[raw[:, byte] >> 4]
        characters[:, position + 1] = _HEXADECIMAL[raw[:, byte] & 15]
        position += 2
    offsets = np.arange(len(present) + 1, dtype=np.int64) * 36
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(characters)]
    texts = pa.Array.from_buffers(pa.large_binary(), len(present), buffers)
    return pa.concat_arrays([texts, pa.nulls(values.null_count, pa.large_binary())])
