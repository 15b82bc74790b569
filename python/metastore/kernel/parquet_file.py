"""Statistics of one Parquet file: opened with pyarrow, read row group by row group, some columns at a time."""

from __future__ import annotations

import struct
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from metastore.adapters import refusals
from metastore.kernel.budget import DEFAULT_DETAIL_LIMITS, DetailLimits
from metastore.kernel.column_bloom import LazyBloomFilter
from metastore.kernel.column_kernel import HEADROOM, ColumnKernel
from metastore.kernel.parquet_schema import (
    FileColumn,
    ParquetFields,
    ReaderCast,
    UnsupportedDataFile,
    cast_file_values,
    find_reader_cast,
    is_uuid,
    require_no_rebase,
    require_same_values,
    statistics_of_unknown_cast,
    widen_float_bounds,
)
from metastore.store.location import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from metastore.adapters.table_facts import DataFile
    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.kernel.parquet_schema import FileColumn, ParquetField
    from metastore.statistics import Statistic


BUDGET = 1 << 30
_COLUMNS_AT_ONCE = 64
_AT_ONCE = 32 << 20  # more would not be read faster, and takes more memory
_TEXTS_AT_ONCE = 4 << 20  # what is longer is moved to ever larger buffers while it is read
_DICTIONARY_BYTES = 1 << 20
_CODE_BYTES = 3
_MOST_KEPT = 64 << 20  # what columns of this size take stays with the process: to get it back takes as long as reading
_NUMBER_BYTES = 8
_CHUNK_BYTES = 1_850  # of pyarrow's memory, for each column of a row group that a footer describes
_OFFSET_BYTES = 4  # more in memory than the lengths in the file
_LARGE_GROUP, _STREAM_BYTES = 256 << 20, 4 << 20
_PIECES = 64  # of the budget: what does not fit is held up to a limit, and one piece beyond it
_HELD = 6  # the columns of a batch hold a sixth of the budget, the rest is for work on one of them
_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_UUID_GROUPS = (4, 6, 8, 10)


@dataclass(frozen=True)
class FileStatistics:
    """What is known of one data file.

    Attributes:
        columns: The statistics of the wanted columns, in their order; None for a column that the file does not have.
    """

    rows: int
    columns: tuple[ColumnStatistics | None, ...]


@dataclass
class _Reading:
    place: int
    column: Column
    node: ParquetField
    reader_cast: ReaderCast
    uuid: bool
    as_dictionary: bool
    held_bytes: int
    compressed: int
    uncompressed: int
    texts: tuple[int, int]


def analyze_parquet(
    source: Any,
    columns: Sequence[FileColumn],
    budget_bytes: int = BUDGET,
    statistics: Sequence[Statistic] = (),
    detail: DetailLimits = DEFAULT_DETAIL_LIMITS,
) -> FileStatistics:
    """Compute everything about columns of one Parquet file."""
    with translate_arrow_errors():
        metadata = pq.read_metadata(source)
        file, leaves = open_parquet_file(source, metadata, ())
        readings = [
            _reading(place, wanted.column, node, file)
            for place, wanted in enumerate(columns)
            if (node := leaves.find(wanted)) is not None
        ]
        found: list[ColumnStatistics | None] = [None] * len(columns)
        for reading in readings:
            if reading.reader_cast is ReaderCast.UNKNOWN:
                found[reading.place] = statistics_of_unknown_cast(metadata.num_rows, reading.column, reading.node)
        readings = [reading for reading in readings if reading.reader_cast is not ReaderCast.UNKNOWN]
        dictionaries = [_leaf(file, reading).path for reading in readings if reading.as_dictionary]
        if dictionaries:
            file, _ = open_parquet_file(source, metadata, dictionaries)
        held, budget = 0, _beside(metadata, budget_bytes)
        for batch in _batches(readings, budget):
            done = _analyze_batch(file, batch, (budget, detail), statistics)
            waiting = sum(one.bloom.value_bytes for one in done.values() if isinstance(one.bloom, LazyBloomFilter))
            makes_now = (held + waiting) * _HELD > budget
            held += 0 if makes_now else waiting
            for place, one in done.items():
                found[place] = replace(one, bloom=bytes(one.bloom)) if makes_now and one.bloom else one
        if max((one.held_bytes for one in readings), default=0) > _MOST_KEPT:
            pa.default_memory_pool().release_unused()
        return FileStatistics(metadata.num_rows, tuple(found))


def read_column_values(source: Any, columns: Sequence[FileColumn], budget_bytes: int) -> dict[int, Iterator[pa.Array]]:
    """The values of columns of one Parquet file, column by column."""
    with translate_arrow_errors():
        metadata = pq.read_metadata(source)
        file, leaves = open_parquet_file(source, metadata, ())
        found = {place: leaves.find(wanted) for place, wanted in enumerate(columns)}
        readings = [_reading(place, columns[place].column, node, file) for place, node in found.items() if node]
    for one in readings:
        if one.reader_cast not in (ReaderCast.SAME, ReaderCast.CAST):
            raise UnsupportedDataFile(f"column {one.column.name} is {one.node.type} in the file, which readers cast")
    return {one.place: _arrays(file, one, budget_bytes) for one in readings}


def list_plain_columns(source: Any, columns: Sequence[FileColumn]) -> frozenset[str]:
    """The keys of the columns that a Parquet file holds in the types of the table, so that all readers show the same.

    >>> from tempfile import TemporaryDirectory
    >>> from metastore.format.table_column import Column
    >>> columns = [FileColumn(Column(f'["{name}"]', (name,), "bigint", "long"), path=(name,)) for name in ("a", "b")]
    >>> with TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"a": [1], "b": ["x"]}), f"{folder}/file")
    ...     sorted(list_plain_columns(f"{folder}/file", columns))
    ['["a"]']
    """
    with translate_arrow_errors():
        file, leaves = open_parquet_file(source, pq.read_metadata(source), ())
        return frozenset(wanted.column.key for wanted in columns if _is_plain(file, leaves, wanted))


def _is_plain(file: pq.ParquetFile, leaves: ParquetFields, wanted: FileColumn) -> bool:
    try:
        node = leaves.find(wanted)
        return (
            node is not None
            and wanted.column.encoding is not None
            and _reading(0, wanted.column, node, file).reader_cast is ReaderCast.SAME
        )
    except UnsupportedDataFile:
        return False


def _arrays(file: pq.ParquetFile, one: _Reading, budget: int) -> Iterator[pa.Array]:
    for table in _tables(file, [one.node.first], budget):
        for chunk in table.column(_place(table.schema, one.node.path[0])).chunks:
            yield _values(chunk, one)


def open_parquet_file(
    source: Any, metadata: pq.FileMetaData, dictionaries: Sequence[str]
) -> tuple[pq.ParquetFile, ParquetFields]:
    """Open a file whose footer is known."""
    if _is_signed(source, metadata):
        # Arrow 26 ends the process, not the call, when it meets the metadata of a column whose key it does not have.
        raise UnsupportedDataFile(refusals.ENCRYPTED)
    file = pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        coerce_int96_timestamp_unit="us",
        buffer_size=_STREAM_BYTES if _has_large_groups(metadata) else 0,
        pre_buffer=not isinstance(source, str),
    )
    return file, ParquetFields(file.schema_arrow, metadata.num_columns)


def _beside(metadata: pq.FileMetaData, budget: int) -> int:
    """What a footer in memory leaves of a budget: a quarter of it where the footer alone takes more."""
    footer: int = _CHUNK_BYTES * metadata.num_row_groups * metadata.num_columns
    return max(budget - footer, budget // 4)


def _has_large_groups(metadata: pq.FileMetaData) -> bool:
    """Whether columns of a row group are read bit by bit: else they are in memory as a whole, compressed and not."""
    return any(metadata.row_group(i).total_byte_size > _LARGE_GROUP for i in range(metadata.num_row_groups))


def _is_signed(source: Any, metadata: pq.FileMetaData) -> bool:
    """Whether a signature follows the footer: so it does in files with encrypted columns and a footer in plain text."""
    with nullcontext(source) if isinstance(source, pa.NativeFile) else pa.OSFile(str(source)) as file:
        file.seek(file.size() - 8)
        (length,) = struct.unpack("<I", file.read(4))
    return bool(length != metadata.serialized_size)


@contextmanager
def translate_arrow_errors() -> Iterator[None]:
    """Turn what pyarrow raises on a file it cannot read into `UnsupportedDataFile`."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as e:
        raise UnsupportedDataFile(" ".join(str(e).split()) or type(e).__name__) from e


def _reading(place: int, column: Column, node: ParquetField, file: pq.ParquetFile) -> _Reading:
    leaf = file.schema.column(node.first)
    uuid = is_uuid(leaf)
    how = ReaderCast.SAME
    if column.encoding is not None:
        if column.casts:
            how = find_reader_cast(node, column, leaf.physical_type, uuid=uuid)
        else:
            require_same_values(node, column, leaf.physical_type, uuid=uuid)
        require_no_rebase(file.metadata.metadata or {}, column, leaf.physical_type)
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    chunks = [group.column(node.first + i) for group in groups for i in range(node.leaves)]
    compressed, plain = (sum(getattr(c, f"total_{x}_size") for c in chunks) for x in ("compressed", "uncompressed"))
    text = column.encoding == "binary" and leaf.physical_type == "BYTE_ARRAY"
    rows = file.metadata.num_rows
    held = plain + _OFFSET_BYTES * rows if text else _NUMBER_BYTES * rows
    is_nested = len(node.path) > 1  # dictionaries of several row groups are chunks, which pyarrow nests in nothing
    as_dictionary = text and not is_nested and _has_dictionary(chunks)
    texts = (rows + 1, plain) if text and not as_dictionary else (0, 0)
    return _Reading(place, column, node, how, uuid, as_dictionary, held, compressed, plain, texts)


def _has_dictionary(chunks: Sequence[Any]) -> bool:
    """Whether all values probably are in the dictionaries: writers fall back to plain values when those grow large."""
    return bool(chunks) and all(
        chunk.has_dictionary_page
        and chunk.total_uncompressed_size <= _DICTIONARY_BYTES + _CODE_BYTES * chunk.num_values
        for chunk in chunks
    )


def _batches(readings: Sequence[_Reading], budget: int) -> Iterator[list[_Reading]]:
    """Columns whose values may be held together."""
    batch: list[_Reading] = []
    for reading in readings:
        held = sum(one.held_bytes for one in batch) + reading.held_bytes
        if batch and (len(batch) == _COLUMNS_AT_ONCE or held > min(budget // _HELD, _AT_ONCE)):
            yield batch
            batch = []
        batch.append(reading)
    if batch:
        yield batch


def _analyze_batch(
    file: pq.ParquetFile,
    batch: list[_Reading],
    limits: tuple[int, DetailLimits],
    statistics: Sequence[Statistic],
) -> dict[int, ColumnStatistics]:
    budget, detail = limits
    fits = HEADROOM * sum(one.held_bytes for one in batch) <= budget
    most = budget if fits else budget // 2  # parts are merged beside the work on the next
    shares = [min(max(budget // len(batch), (HEADROOM + 1) * one.held_bytes), most) for one in batch]
    kernels = [
        ColumnKernel(_read_as(one), part, detail, one.texts, statistics)
        for one, part in zip(batch, shares, strict=True)
    ]
    indices = [one.node.first for one in batch]
    most = budget // (HEADROOM if fits else _PIECES)
    if len(batch) == 1 and batch[0].column.encoding == "binary":
        most = min(most, _TEXTS_AT_ONCE)
    for table in _tables(file, indices, most):
        for kernel, one in zip(kernels, batch, strict=True):
            for chunk in table.column(_place(table.schema, one.node.path[0])).chunks:
                kernel.add(_values(chunk, one))
    found = {}
    while kernels:  # last first, so that what each holds is released before the next works
        kernel, one = kernels.pop(), batch.pop()
        done = kernel.finish(file.metadata.num_rows, one.compressed, one.uncompressed)
        found[one.place] = widen_float_bounds(done, one.column) if one.reader_cast is ReaderCast.NEAR else done
    return found


def _read_as(one: _Reading) -> Column:
    return replace(one.column, type="float") if one.reader_cast is ReaderCast.NEAR else one.column


def _tables(file: pq.ParquetFile, indices: list[int], most: int) -> Iterator[Any]:
    """Row groups, small ones together and large ones in pieces; runs of one value take more room than in the file."""
    small: list[int] = []
    held = 0
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        size = sum(max(group.column(i).total_uncompressed_size, _NUMBER_BYTES * group.num_rows) for i in indices)
        if small and held + size > min(most, _AT_ONCE):
            yield file.reader.read_row_groups(small, column_indices=indices, use_threads=False)
            small, held = [], 0
        if size <= most:
            small.append(number)
            held += size
        else:
            rows = max(group.num_rows * most // size, 1)
            batches = file.reader.iter_batches(rows, row_groups=[number], column_indices=indices, use_threads=False)
            yield from (pa.Table.from_batches([batch]) for batch in batches)
    if small:
        yield file.reader.read_row_groups(small, column_indices=indices, use_threads=False)


def _values(chunk: pa.Array, reading: _Reading) -> pa.Array:
    for name in reading.node.path[1:]:
        chunk = pc.struct_field(chunk, _place(chunk.type, name))  # null where a parent is
    if reading.reader_cast is ReaderCast.CAST:
        return cast_file_values(chunk, reading.column)
    return _uuid_texts(chunk) if reading.uuid and reading.column.type != "binary" else chunk


def _place(fields: pa.Schema | pa.StructType, name: str) -> int:
    place = int(fields.get_field_index(name))
    if place < 0:
        raise UnsupportedDataFile(f"pyarrow does not find field {name} among those that it read")
    return place


def _uuid_texts(values: pa.Array) -> pa.Array:
    """UUIDs as Spark shows them: 36 characters of lower-case hexadecimal digits."""
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    present = values.drop_null()
    raw = np.frombuffer(present.buffers()[1], dtype=np.uint8) if len(present) else np.empty(0, dtype=np.uint8)
    raw = raw[16 * present.offset : 16 * (present.offset + len(present))].reshape(-1, 16)
    out = np.full((len(present), 36), ord("-"), dtype=np.uint8)
    at = 0
    for i in range(16):
        at += i in _UUID_GROUPS
        out[:, at] = _HEXADECIMAL[raw[:, i] >> 4]
        out[:, at + 1] = _HEXADECIMAL[raw[:, i] & 15]
        at += 2
    offsets = np.arange(len(present) + 1, dtype=np.int64) * 36
    texts = pa.Array.from_buffers(pa.large_binary(), len(present), [None, pa.py_buffer(offsets), pa.py_buffer(out)])
    return pa.concat_arrays([texts, pa.nulls(values.null_count, pa.large_binary())])


def _leaf(file: pq.ParquetFile, reading: _Reading) -> Any:
    return file.schema.column(reading.node.first)


def find_spark_only_reason(file: DataFile, *, local: bool) -> str | None:
    """Say why a task does not open a file itself."""
    if file.rows == 0:
        return None
    if file.format != "parquet":
        return refusals.NOT_PARQUET
    if file.encrypted:
        return refusals.ENCRYPTED
    bare = file.location.startswith("/")
    if (bare and not local) or local_path(file.location) is None:
        return refusals.REMOTE
    return None
