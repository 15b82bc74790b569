"""Runs one task: opens data files, runs the kernel, writes a block. Executors need numpy and pyarrow alone."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.adapters import refusals
from metastore.adapters.table_facts import Refusal
from metastore.format.block_writer import BlockContent, write_block
from metastore.format.manifest import FULL, Block, TableIdentity
from metastore.kernel.budget import LARGE_TABLE, Allowance, budget_for_lists, fit_to_file_size
from metastore.kernel.column_statistics import ColumnStatistics, constant_statistics
from metastore.kernel.detail_limits import DEFAULT_DETAIL_LIMITS, DetailLimits
from metastore.kernel.footer_bounds import analyze_footer
from metastore.kernel.parquet_file import analyze_parquet, open_data_file, translate_arrow_errors
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile
from metastore.kernel.statistic_rows import block_rows
from metastore.kernel.user_defined import StatisticPickle, apply_to_constant, unpickle_statistics
from metastore.store.data_file_access import LOCAL_FILES, DataFileAccess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from metastore.format.data_files import DataFile
    from metastore.format.name_mapping import NameMapping
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import TaskStore
    from metastore.statistics import Statistic


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt
_FREE_BYTES, _LARGEST_MMAP_THRESHOLD = 256 << 20, 32 << 20  # the second is the largest that glibc accepts

_BYTES_PER_TASK = 1 << 30
"""The bytes of a large data file for one task, which computes that share of its columns."""


@contextmanager
def use_system_allocator() -> Iterator[None]:
    """Let Arrow and numpy share the system's allocator, so that memory that one of them frees serves the other."""
    _keep_freed_memory()
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


@cache  # once is enough: it is a setting of the process
def _keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next column: getting new pages from the system takes as long as reading.

    The setting outlives the task: Spark ends workers that have been idle for a minute.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, without this setting
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
    mallopt(_TRIM_THRESHOLD, _FREE_BYTES)


@dataclass(frozen=True, kw_only=True)
class BlockDestination:
    """The store that blocks go to, and the settings that they are computed with.

    Attributes:
        table: The table that the statistics describe.
        budget: Bytes of memory for one task.
        statistics: User-defined statistics to compute.
        allowance: The share of a data file's size that its statistics may take.
        access: How tasks open data files.
        tasks_per_file: The number of tasks that share the columns of a data file; each task sets its own.
    """

    store: TaskStore
    table: TableIdentity
    settings: Mapping[str, Any]
    budget: int
    statistics: tuple[StatisticPickle, ...] = ()
    allowance: Allowance = LARGE_TABLE
    access: DataFileAccess = LOCAL_FILES
    tasks_per_file: int = 1

    def size_per_task(self, file: DataFile) -> int:
        """Return the bytes of a data file that fall to one task."""
        return file.size // self.tasks_per_file

    def detail(self, file: DataFile) -> DetailLimits:
        """Return limits for the histogram and the value counts of a data file's columns, from the settings."""
        return DetailLimits(
            bins=int(self.settings["histogram_bins"]),
            top=int(self.settings["frequencies_top"]),
            list_bytes=budget_for_lists(self.size_per_task(file)),
            longest_uncut=self.allowance.longest_uncut,
        )


@dataclass(frozen=True, kw_only=True)
class BlockTask:
    """The files of one block.

    Attributes:
        depth: `full` or `footer`.
        defaults: Column key to the value in files without the column.
        absent_is_null: Whether a column absent from a file with field ids is null in all its rows.
        field_ids: Column key to field id, in a table whose files are read by field ids.
        nameless_is_null: Keys of columns that are null in files without a column of that name in any case.
        name_mapping: The names of columns in files without field ids, if there may be such files.
        tasks_per_file: The number of tasks that share the columns of these files.
    """

    depth: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    defaults: Mapping[str, Any]
    absent_is_null: bool
    field_ids: Mapping[str, int] = field(default_factory=dict)
    nameless_is_null: frozenset[str] = frozenset()
    name_mapping: NameMapping | None = None
    tasks_per_file: int = 1

    def split_columns(self) -> list[BlockTask]:
        """Split a task of one large file by columns: one task would be the last one to end while other cores are idle.

        The number of tasks follows from the file alone, so that its statistics do not depend on the number of cores.
        """
        size = sum(file.size for file in self.files)
        count = min(size // _BYTES_PER_TASK, len(self.columns))
        if self.depth != FULL or len(self.files) > 1 or count < 2:
            return [self]
        return [replace(self, columns=self.columns[first::count], tasks_per_file=count) for first in range(count)]


@dataclass(frozen=True)
class CastColumn:
    """A column whose values readers cast from the type that a data file has.

    Attributes:
        file_type: The type in the data file.
        knowledge: The statistics that are known in spite of the cast, in the words of `refusals`.
        path: The data file.
    """

    column: Column
    file_type: str
    knowledge: str
    path: str


@dataclass(frozen=True, kw_only=True)
class BlockTaskResult:
    """The result of one task.

    Attributes:
        block: The block that it wrote; None when every file was left out.
        paths: The files that the block holds.
        unread: The files left out.
        objects: The number of objects written.
        failed: User-defined statistics that failed, as `name` or `name(column)`, and why.
        cast_columns: Columns whose values readers cast from another type.
    """

    block: Block | None
    paths: tuple[str, ...]
    unread: tuple[Refusal, ...] = ()
    objects: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    cast_columns: tuple[CastColumn, ...] = ()


@dataclass(kw_only=True)
class BlockBuilder:
    """Collects the statistics of files and writes them as one block."""

    destination: BlockDestination
    depth: str
    columns: tuple[Column, ...]
    name_mapping: NameMapping | None = None
    _files: list[DataFile] = field(default_factory=list)
    _rows: dict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))
    _unread: list[Refusal] = field(default_factory=list)
    _failed: dict[str, str] = field(default_factory=dict)
    _cast_columns: list[CastColumn] = field(default_factory=list)

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """The user-defined statistics that can be loaded here."""
        if self.depth != FULL:
            return ()
        statistics, failed = unpickle_statistics(self.destination.statistics)
        self._failed |= failed
        return statistics

    def add(self, file: DataFile, statistics: Iterable[tuple[int, ColumnStatistics]]) -> None:
        """Add a file with the statistics of its columns by ordinal."""
        if self.depth != FULL:  # the value counts of constants are known, but this block has no object for them
            statistics = _without_value_counts(statistics)
        destination = self.destination
        detail = destination.detail(file)
        fitted = fit_to_file_size(statistics, destination.size_per_task(file), detail.top, destination.allowance)
        position = len(self._files)
        rows = []
        for ordinal, one_column in fitted:
            self._note_problems(self.columns[ordinal], one_column, file)
            rows.append((ordinal, position, one_column))
        self._files.append(file)
        for kind, table in block_rows(rows).items():
            if self.depth == FULL or kind != "frequencies":
                self._rows[kind].append(table)

    def _note_problems(self, column: Column, statistics: ColumnStatistics, file: DataFile) -> None:
        for name, reason in statistics.failed.items():
            self._failed.setdefault(f"{name}({column.name})", reason)
        if statistics.cast_type is not None:
            file_type, knowledge = statistics.cast_type
            self._cast_columns.append(CastColumn(column, file_type, knowledge, file.path))

    def refuse(self, unread: Refusal) -> None:
        """Note a file that is left out."""
        self._unread.append(unread)

    def finish(self) -> BlockTaskResult:
        """Write the block."""
        unread = tuple(self._unread)
        if not self._files:
            return BlockTaskResult(block=None, paths=(), unread=unread)
        columns = self.columns
        if self.name_mapping is not None:
            columns = self.name_mapping.map_columns(columns)
        content = BlockContent(
            computed=self.depth,
            columns=columns,
            files=tuple(self._files),
            rows={kind: pa.concat_tables(tables) for kind, tables in self._rows.items()},
            statistics={statistic.name: statistic.version for statistic in self.statistics},
        )
        destination = self.destination
        written: list[ObjectRef] = []

        def put(kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str]) -> ObjectRef:
            ref = destination.store.write(kind, table, row_groups, extra)
            written.append(ref)
            return ref

        block = write_block(put, content, destination.table, destination.settings)
        return BlockTaskResult(
            block=block,
            paths=tuple(file.path for file in self._files),
            unread=unread,
            objects=len(written),
            failed=tuple(self._failed.items()),
            cast_columns=tuple(self._cast_columns),
        )


def _without_value_counts(
    statistics: Iterable[tuple[int, ColumnStatistics]],
) -> Iterator[tuple[int, ColumnStatistics]]:
    for ordinal, one_column in statistics:
        yield ordinal, one_column.with_value_counts(None)


def run_block_task(destination: BlockDestination, task: BlockTask) -> BlockTaskResult:
    """Analyze the files of a task."""
    destination = replace(destination, tasks_per_file=task.tasks_per_file)
    builder = BlockBuilder(destination=destination, depth=task.depth, columns=task.columns)
    with use_system_allocator():
        for file in task.files:
            detail = destination.detail(file)
            try:
                column_statistics = analyze_file(
                    task, file, destination.budget, builder.statistics, detail, destination.access
                )
            except UnsupportedDataFile as refusal:
                builder.refuse(Refusal(file.path, str(refusal)))
            else:
                builder.add(file, column_statistics)
        return builder.finish()


def analyze_file(
    task: BlockTask,
    file: DataFile,
    budget: int,
    statistics: Sequence[Statistic] = (),
    detail: DetailLimits = DEFAULT_DETAIL_LIMITS,
    access: DataFileAccess = LOCAL_FILES,
) -> list[tuple[int, ColumnStatistics]]:
    """Compute the statistics of one file."""
    if not file.rows:
        return [(ordinal, _constant(column, None, 0, statistics)) for ordinal, column in enumerate(task.columns)]
    results = []
    remaining = []
    for ordinal, column in enumerate(task.columns):
        from_metadata = metadata_statistics(column, file, statistics)
        if from_metadata is None:
            remaining.append((ordinal, column))
        else:
            results.append((ordinal, from_metadata))
    if remaining:
        results += _read_columns(
            task, file, remaining, budget=budget, statistics=statistics, detail=detail, access=access
        )
    return results


def _read_columns(
    task: BlockTask,
    file: DataFile,
    columns: Sequence[tuple[int, Column]],
    *,
    budget: int,
    statistics: Sequence[Statistic],
    detail: DetailLimits,
    access: DataFileAccess,
) -> list[tuple[int, ColumnStatistics]]:
    """Open a file, and compute the statistics of columns, by ordinal."""
    _require_unchanged(file, access)
    source = open_data_file(file, access)
    file_columns = [FileColumn.of(column, task.field_ids, file.names) for _, column in columns]
    if task.depth == FULL:
        contents = analyze_parquet(source, file_columns, budget, statistics, detail)
    else:
        contents = analyze_footer(source, file_columns)
    _require_unchanged(file, access)
    if contents.rows != file.rows:
        raise UnsupportedDataFile(refusals.ROWS_DIFFER)
    read_schema = cache(partial(pq.read_schema, source))
    results = []
    for (ordinal, column), from_file in zip(columns, contents.columns, strict=True):
        result = from_file or _absent(task, column, file.physical_rows, read_schema, statistics)
        results.append((ordinal, result))
    return results


def _require_unchanged(file: DataFile, access: DataFileAccess) -> None:
    """Refuse a file of a Parquet directory that was replaced after it was listed."""
    if file.modified is None:
        return
    with translate_arrow_errors():
        version = access.read_version(file.location)
    if version != (file.size, file.modified):
        raise UnsupportedDataFile(refusals.REPLACED)


def metadata_statistics(column: Column, file: DataFile, statistics: Sequence[Statistic]) -> ColumnStatistics | None:
    """Return a column's statistics if the table's metadata decides its values; None if the file has to be read."""
    if column.key in file.constants:
        return _constant(column, file.constants[column.key], file.physical_rows, statistics)
    if column.key in file.unknown:
        return unknown_statistics(column, file.physical_rows)
    return None


def _constant(column: Column, value: Any, rows: int, statistics: Sequence[Statistic]) -> ColumnStatistics:
    return apply_to_constant(constant_statistics(column, value, rows), column, value, statistics)


def _absent(
    task: BlockTask, column: Column, rows: int, read_schema: Callable[[], pa.Schema], statistics: Sequence[Statistic]
) -> ColumnStatistics:
    """Return the statistics of a column that the file does not have."""
    if column.key in task.defaults:
        if len(column.path) > 1:
            raise UnsupportedDataFile(refusals.NESTED_DEFAULT)
        return _constant(column, task.defaults[column.key], rows, statistics)
    if _is_null_where_absent(task, column, read_schema):
        return _constant(column, None, rows, statistics)
    return unknown_statistics(column, rows)


def _is_null_where_absent(task: BlockTask, column: Column, read_schema: Callable[[], pa.Schema]) -> bool:
    if task.absent_is_null:
        return True
    if column.key not in task.nameless_is_null:
        return False
    return not _may_have(read_schema(), column.path)


def _may_have(fields: Iterable[pa.Field], path: Sequence[str]) -> bool:
    """Return whether fields may include a column of that path; the case of names does not count."""
    matching = [field for field in fields if field.name.lower() == path[0].lower()]
    structs = [field.type for field in matching if pa.types.is_struct(field.type)]
    inner = list(chain.from_iterable(structs))
    if len(path) == 1 or not inner:
        return bool(matching)
    return _may_have(inner, path[1:])


def unknown_statistics(column: Column, rows: int) -> ColumnStatistics:
    """Return the statistics of a column whose values in a file are unknown: the number of rows alone."""
    return ColumnStatistics(rows=rows, encoding=column.encoding)
