"""Statistics of one Parquet file: opened with pyarrow, read row group by row group, some columns at a time."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.adapters import refusals
from metastore.kernel.column_bloom import LazyBloomFilter
from metastore.kernel.column_kernel import HEADROOM, ColumnKernel
from metastore.kernel.column_reading import NUMBER_BYTES, ColumnReading, list_row_groups, plan_reading, plan_readings
from metastore.kernel.detail_limits import DEFAULT_DETAIL_LIMITS, DetailLimits
from metastore.kernel.parquet_schema import (
    ParquetFields,
    ReaderCast,
    UnsupportedDataFile,
    statistics_of_unknown_cast,
    widen_float_bounds,
)
from metastore.visible_text import hide_queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from metastore.format.data_files import DataFile
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.kernel.parquet_schema import FileColumn
    from metastore.statistics import Statistic
    from metastore.store.data_file_access import DataFileAccess


BUDGET = 1 << 30
_COLUMNS_AT_ONCE = 64
_AT_ONCE = 32 << 20  # more would not be read faster, and takes more memory
_TEXTS_AT_ONCE = 4 << 20  # longer texts are moved to ever larger buffers while they are read
_MOST_RESERVED = 64 << 20  # memory of columns up to this size stays reserved: to get it again takes as long as reading
_CHUNK_BYTES = 1_850  # of pyarrow's memory, for each column of a row group that a footer describes
_LARGE_GROUP = 256 << 20
_STREAM_BYTES = 4 << 20
_PIECES = 64  # of the budget: columns that do not fit are held up to a limit, and one piece beyond it
_BATCH_SHARE = 6  # the columns of a batch hold a sixth of the budget, work on one of them takes the remaining memory


@dataclass(frozen=True)
class FileStatistics:
    """The statistics of one data file.

    Attributes:
        rows: The number of rows.
        columns: The statistics of the columns, in their order; None for a column that the file does not have.
    """

    rows: int
    columns: tuple[ColumnStatistics | None, ...]


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
        file, fields = open_parquet_file(source, metadata, ())
        readings = plan_readings(file, fields, columns)
        budget = _subtract_footer(metadata, budget_bytes)
        results: dict[int, ColumnStatistics] = {}
        known_readings = []
        for reading in readings:
            if reading.reader_cast is ReaderCast.UNKNOWN:
                results[reading.number] = statistics_of_unknown_cast(metadata.num_rows, reading.column, reading.field)
            else:
                known_readings.append(reading)
        file = _reopen_with_dictionaries(file, source, known_readings)
        results.update(_analyze_readings(file, known_readings, budget, detail, statistics))
        return FileStatistics(metadata.num_rows, tuple(map(results.get, range(len(columns)))))


def _reopen_with_dictionaries(file: pq.ParquetFile, source: Any, readings: Sequence[ColumnReading]) -> pq.ParquetFile:
    """Open a file again so that texts with dictionaries are read as these."""
    paths = [file.schema.column(reading.field.first).path for reading in readings if reading.as_dictionary]
    if not paths:
        return file
    reopened, _ = open_parquet_file(source, file.metadata, paths)
    return reopened


def _analyze_readings(
    file: pq.ParquetFile,
    readings: Sequence[ColumnReading],
    budget: int,
    detail: DetailLimits,
    statistics: Sequence[Statistic],
) -> Iterator[tuple[int, ColumnStatistics]]:
    """Compute the statistics of columns, batch by batch, each with the column's number."""
    filters = _LazyFilters(budget)
    for batch in _batches(readings, budget):
        analyzed = _analyze_batch(file, batch, budget, detail, statistics)
        yield from filters.add(analyzed).items()
    if any(reading.memory_bytes > _MOST_RESERVED for reading in readings):
        pa.default_memory_pool().release_unused()


class _LazyFilters:
    """Bloom filters that are made when they are stored, as long as there is memory for their values."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._value_bytes = 0

    def add(self, columns: dict[int, ColumnStatistics]) -> dict[int, ColumnStatistics]:
        """Add the filters of a batch; if their values take too much memory, make them now."""
        value_bytes = sum(map(_count_value_bytes, columns.values()))
        if (self._value_bytes + value_bytes) * _BATCH_SHARE <= self._budget:
            self._value_bytes += value_bytes
            return columns
        return {number: _make_filter(column) for number, column in columns.items()}


def _count_value_bytes(column: ColumnStatistics) -> int:
    if isinstance(column.bloom, LazyBloomFilter):
        return column.bloom.value_bytes
    return 0


def _make_filter(column: ColumnStatistics) -> ColumnStatistics:
    if not column.bloom:
        return column
    return replace(column, bloom=bytes(column.bloom))


def read_column_values(source: Any, columns: Sequence[FileColumn], budget_bytes: int) -> dict[int, Iterator[pa.Array]]:
    """Read the values of columns of one Parquet file, column by column, by their numbers."""
    with translate_arrow_errors():
        metadata = pq.read_metadata(source)
        file, fields = open_parquet_file(source, metadata, ())
        readings = plan_readings(file, fields, columns)
    arrays = {}
    for reading in readings:
        if reading.reader_cast not in (ReaderCast.SAME, ReaderCast.CAST):
            name = reading.column.name
            file_type = reading.field.type
            raise UnsupportedDataFile(f"column {name} is {file_type} in the file, which readers cast")
        arrays[reading.number] = _arrays(file, reading, budget_bytes)
    return arrays


def list_plain_columns(source: Any, columns: Sequence[FileColumn]) -> frozenset[str]:
    """List the keys of the columns that a Parquet file holds in the table's types: all readers show the same values.

    >>> from tempfile import TemporaryDirectory
    >>> from metastore.format.table_column import Column
    >>> from metastore.kernel.parquet_schema import FileColumn
    >>> columns = []
    >>> for name in ("a", "b"):
    ...     column = Column(key=f'["{name}"]', path=(name,), type="bigint", encoding="long")
    ...     columns.append(FileColumn(column, path=(name,)))
    >>> with TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"a": [1], "b": ["x"]}), f"{folder}/file")
    ...     sorted(list_plain_columns(f"{folder}/file", columns))
    ['["a"]']
    """
    with translate_arrow_errors():
        file, fields = open_parquet_file(source, pq.read_metadata(source), ())
        return frozenset(column.column.key for column in columns if _is_plain(file, fields, column))


def _is_plain(file: pq.ParquetFile, fields: ParquetFields, column: FileColumn) -> bool:
    try:
        field = fields.find(column)
        if field is None or column.column.encoding is None:
            return False
        return plan_reading(0, column.column, field, file).reader_cast is ReaderCast.SAME
    except UnsupportedDataFile:
        return False


def _arrays(file: pq.ParquetFile, reading: ColumnReading, budget: int) -> Iterator[pa.Array]:
    for table in _tables(file, [reading.field.first], budget):
        yield from reading.arrays(table)


def open_parquet_file(
    source: Any, metadata: pq.FileMetaData, dictionaries: Sequence[str]
) -> tuple[pq.ParquetFile, ParquetFields]:
    """Open a file whose footer is known."""
    if _is_signed(source, metadata):
        # Arrow 26 ends the process, not the call, when it meets the metadata of a column whose key it does not have.
        raise UnsupportedDataFile(refusals.ENCRYPTED)
    buffer_size = 0
    if _has_large_groups(metadata):
        buffer_size = _STREAM_BYTES
    file = pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        coerce_int96_timestamp_unit="us",
        buffer_size=buffer_size,
        pre_buffer=not isinstance(source, str),
    )
    return file, ParquetFields(file.schema_arrow, metadata.num_columns)


def _subtract_footer(metadata: pq.FileMetaData, budget: int) -> int:
    """Return the budget without the memory of the footer, at least a quarter of it."""
    footer: int = _CHUNK_BYTES * metadata.num_row_groups * metadata.num_columns
    return max(budget - footer, budget // 4)


def _has_large_groups(metadata: pq.FileMetaData) -> bool:
    """Return whether columns of a row group are streamed: others are in memory at once, compressed and not."""
    return any(row_group.total_byte_size > _LARGE_GROUP for row_group in list_row_groups(metadata))


def _is_signed(source: Any, metadata: pq.FileMetaData) -> bool:
    """Return whether a signature follows the footer: in files with encrypted columns and a footer in plain text."""
    if isinstance(source, pa.NativeFile):
        return bool(_read_footer_length(source) != metadata.serialized_size)
    with pa.OSFile(str(source)) as file:
        return bool(_read_footer_length(file) != metadata.serialized_size)


def _read_footer_length(file: pa.NativeFile) -> int:
    file.seek(file.size() - 8)
    return int.from_bytes(file.read(4), "little")


@contextmanager
def translate_arrow_errors() -> Iterator[None]:
    """Raise the errors of pyarrow on a file that it cannot read as `UnsupportedDataFile`."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        text = hide_queries(" ".join(str(error).split()))
        raise UnsupportedDataFile(text or type(error).__name__) from error


def _batches(readings: Sequence[ColumnReading], budget: int) -> Iterator[list[ColumnReading]]:
    """Yield batches of columns whose values are in memory together."""
    most_bytes = min(budget // _BATCH_SHARE, _AT_ONCE)
    batch: list[ColumnReading] = []
    batch_bytes = 0
    for reading in readings:
        is_full = len(batch) == _COLUMNS_AT_ONCE or batch_bytes + reading.memory_bytes > most_bytes
        if batch and is_full:
            yield batch
            batch = []
            batch_bytes = 0
        batch.append(reading)
        batch_bytes += reading.memory_bytes
    if batch:
        yield batch


def _analyze_batch(
    file: pq.ParquetFile,
    batch: list[ColumnReading],
    budget: int,
    detail: DetailLimits,
    statistics: Sequence[Statistic],
) -> dict[int, ColumnStatistics]:
    shares = _share_budget(batch, budget)
    kernels = []
    for reading, share in zip(batch, shares, strict=True):
        kernels.append(ColumnKernel(reading.kernel_column, share, detail, reading.texts, statistics))
    leaves = [reading.field.first for reading in batch]
    for table in _tables(file, leaves, _most_bytes_at_once(batch, budget)):
        for kernel, reading in zip(kernels, batch, strict=True):
            for values in reading.arrays(table):
                kernel.add(values)
    results = {}
    while kernels:  # last first, so that the memory of each is released before the next works
        kernel = kernels.pop()
        reading = batch.pop()
        results[reading.number] = _finish(kernel, reading, file.metadata.num_rows)
    return results


def _share_budget(batch: Sequence[ColumnReading], budget: int) -> list[int]:
    """Return each column's share of the budget."""
    smallest = budget // len(batch)
    largest = budget
    if not _fits(batch, budget):
        largest = budget // 2  # parts are merged beside the work on the next
    shares = []
    for reading in batch:
        share = max((HEADROOM + 1) * reading.memory_bytes, smallest)
        shares.append(min(share, largest))
    return shares


def _fits(batch: Sequence[ColumnReading], budget: int) -> bool:
    return HEADROOM * sum(reading.memory_bytes for reading in batch) <= budget


def _most_bytes_at_once(batch: Sequence[ColumnReading], budget: int) -> int:
    pieces = HEADROOM if _fits(batch, budget) else _PIECES
    most_bytes = budget // pieces
    if len(batch) == 1 and batch[0].column.encoding == "binary":
        return min(most_bytes, _TEXTS_AT_ONCE)
    return most_bytes


def _finish(kernel: ColumnKernel, reading: ColumnReading, rows: int) -> ColumnStatistics:
    column = kernel.finish(rows, reading.compressed_bytes, reading.uncompressed_bytes)
    if reading.reader_cast is ReaderCast.NEAR:
        return widen_float_bounds(column, reading.column)
    return column


def _tables(file: pq.ParquetFile, leaves: list[int], most_bytes: int) -> Iterator[pa.Table]:
    """Read row groups, small ones together and large ones in pieces."""
    small_groups: list[int] = []
    small_bytes = 0
    for number, row_group in enumerate(list_row_groups(file.metadata)):
        size = _estimate_memory(row_group, leaves)
        if small_groups and small_bytes + size > min(most_bytes, _AT_ONCE):
            yield _read_row_groups(file, small_groups, leaves)
            small_groups = []
            small_bytes = 0
        if size > most_bytes:
            rows = max(row_group.num_rows * most_bytes // size, 1)
            yield from _read_pieces(file, number, leaves, rows)
        else:
            small_groups.append(number)
            small_bytes += size
    if small_groups:
        yield _read_row_groups(file, small_groups, leaves)


def _read_pieces(file: pq.ParquetFile, row_group: int, leaves: list[int], rows: int) -> Iterator[pa.Table]:
    batches = file.reader.iter_batches(rows, row_groups=[row_group], column_indices=leaves, use_threads=False)
    for batch in batches:
        yield pa.Table.from_batches([batch])


def _estimate_memory(row_group: Any, leaves: Sequence[int]) -> int:
    """Return the memory of a row group; runs of one value take more of it than bytes of the file."""
    value_bytes: int = NUMBER_BYTES * row_group.num_rows
    chunks = map(row_group.column, leaves)
    return sum(max(chunk.total_uncompressed_size, value_bytes) for chunk in chunks)


def _read_row_groups(file: pq.ParquetFile, row_groups: list[int], leaves: list[int]) -> pa.Table:
    return file.reader.read_row_groups(row_groups, column_indices=leaves, use_threads=False)


def open_data_file(file: DataFile, access: DataFileAccess) -> str | pa.NativeFile:
    """Open a data file, for the functions of this module."""
    with translate_arrow_errors():
        return access.open(file.location)


def count_rows_of_file(location: str, access: DataFileAccess) -> int | None:
    """Count the rows of a Parquet file by its footer; None if it cannot be read, or contradicts itself."""
    try:
        metadata = pq.read_metadata(access.open(location))
    except (OSError, pa.ArrowException):
        return None
    rows = sum(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))
    return rows if rows == metadata.num_rows else None


def find_spark_only_reason(file: DataFile, access: DataFileAccess) -> str | None:
    """Say why only Spark reads the rows of a file."""
    if file.rows == 0:
        return None
    if file.has_log_files:
        return refusals.HAS_LOG_FILES
    return find_unopened_reason(file, access)


def find_unopened_reason(file: DataFile, access: DataFileAccess) -> str | None:
    """Say why Python cannot open a file."""
    if file.format != "parquet":
        return refusals.NOT_PARQUET
    if file.encrypted:
        return refusals.ENCRYPTED
    if not access.reaches(file.location):
        return refusals.REMOTE
    return None
