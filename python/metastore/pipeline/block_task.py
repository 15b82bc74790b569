"""What one task does: opens its data files, runs the kernel, writes a block. Needs numpy and pyarrow alone."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.adapters import refusals
from metastore.adapters.table_facts import DataFile, Refusal
from metastore.format.block_writer import BlockContent, write_block
from metastore.format.histogram_bins import EQUI_HEIGHT
from metastore.format.manifest import FULL, Block, TableIdentity
from metastore.kernel.budget import (
    DEFAULT_DETAIL_LIMITS,
    LARGE_TABLE,
    Allowance,
    DetailLimits,
    budget_for_lists,
    fit_to_file_size,
)
from metastore.kernel.column_statistics import ColumnStatistics, constant_statistics
from metastore.kernel.footer_bounds import analyze_footer
from metastore.kernel.parquet_file import analyze_parquet
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile
from metastore.kernel.statistic_rows import block_rows
from metastore.kernel.user_defined import StatisticPickle, apply_to_constant, unpickle_statistics
from metastore.store.location import local_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from metastore.format.name_mapping import NameMapping
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import TaskStore
    from metastore.statistics import Statistic


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt
_KEPT, _LARGEST = 256 << 20, 32 << 20  # glibc takes no more for the second


@contextmanager
def use_system_allocator() -> Iterator[None]:
    """Let Arrow take memory from where numpy takes it: what one of them has given back serves the other."""
    _keep_freed()
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


@cache  # it is a setting of the process
def _keep_freed() -> None:
    """Let glibc keep what a column has given back for the next one: the system's pages take as long as reading.

    It stays so after the task, for the next one: Spark ends workers that have been idle for a minute.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, which has its own ways
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, _KEPT)


@dataclass(frozen=True)
class BlockDestination:
    """Where blocks go and what is written into them besides statistics.

    Attributes:
        table: Whose statistics these are.
        budget: Bytes that a task may hold.
        statistics: User-defined ones to compute.
        allowance: What the statistics of a data file may take of its size.
    """

    place: TaskStore
    table: TableIdentity
    settings: Mapping[str, Any]
    budget: int
    statistics: tuple[StatisticPickle, ...] = ()
    allowance: Allowance = LARGE_TABLE

    def detail(self, file: DataFile) -> DetailLimits:
        """How much detail the settings ask of a data file."""
        bins, top = (int(self.settings[name]) for name in ("histogram_bins", "frequencies_top"))
        kind = str(self.settings.get("histogram_kind", EQUI_HEIGHT))
        return DetailLimits(bins, top, budget_for_lists(file.size), kind, self.allowance.whole)


@dataclass(frozen=True)
class BlockTask:
    """The files of one block.

    Attributes:
        depth: `full` or `footer`.
        defaults: Column key to the value in files without the column.
        absent_is_null: Whether a column absent from a file with field ids is null in all its rows.
        name_mapping: How files without field ids are read, where such files may be among them.
    """

    depth: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    defaults: Mapping[str, Any]
    absent_is_null: bool
    field_ids: Mapping[str, int] = field(default_factory=dict)
    nameless_is_null: frozenset[str] = frozenset()
    name_mapping: NameMapping | None = None


@dataclass(frozen=True)
class BlockTaskResult:
    """What a task hands back.

    Attributes:
        block: What it wrote; None when every file was left out.
        paths: The files that the block holds.
        unread: The files left out.
        objects: How many objects were written.
        failed: User-defined statistics that failed, as `name` or `name(column)`, and why.
        cast_columns: Columns whose values do not follow from what a file holds: its type, what is known, the file.
    """

    block: Block | None
    paths: tuple[str, ...]
    unread: tuple[Refusal, ...] = ()
    objects: int = 0
    failed: tuple[tuple[str, str], ...] = ()
    cast_columns: tuple[tuple[Column, str, str, str], ...] = ()


@dataclass
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
    _cast_columns: list[tuple[Column, str, str, str]] = field(default_factory=list)

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """The user-defined statistics that can be loaded here."""
        if self.depth != FULL:
            return ()
        found, failed = unpickle_statistics(self.destination.statistics)
        self._failed |= failed
        return found

    def add(self, file: DataFile, statistics: Iterable[tuple[int, ColumnStatistics]]) -> None:
        """Note a file and the statistics of its columns by ordinal."""
        if self.depth != FULL:  # lists of constants are known then, and no object holds them
            statistics = ((column, found.with_value_counts(None)) for column, found in statistics)
        place, detail = len(self._files), self.destination.detail(file)
        fitted = fit_to_file_size(statistics, file.size, detail.top, self.destination.allowance)
        rows = [(column, place, found) for column, found in fitted]
        for column, _, found in rows:
            for name, reason in found.failed.items():
                self._failed.setdefault(f"{name}({self.columns[column].name})", reason)
            if found.cast_type is not None:
                self._cast_columns.append((self.columns[column], *found.cast_type, file.path))
        self._files.append(file)
        for kind, some in block_rows(rows).items():
            if self.depth == FULL or kind != "frequencies":
                self._rows[kind].append(some)

    def refuse(self, unread: Refusal) -> None:
        """Note a file that is left out."""
        self._unread.append(unread)

    def finish(self) -> BlockTaskResult:
        """Write the block."""
        unread = tuple(self._unread)
        if not self._files:
            return BlockTaskResult(None, (), unread)
        tried = {one.name: one.version for one in self.statistics}
        made = {kind: pa.concat_tables(some) for kind, some in self._rows.items()}
        columns = self.columns if self.name_mapping is None else self.name_mapping.map_columns(self.columns)
        content = BlockContent(self.depth, columns, tuple(self._files), made, tried)
        to = self.destination
        written: list[ObjectRef] = []

        def put(kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str]) -> ObjectRef:
            written.append(to.place.write(kind, table, row_groups, extra))
            return written[-1]

        block = write_block(put, content, to.table, to.settings)
        return BlockTaskResult(
            block,
            tuple(file.path for file in self._files),
            unread,
            objects=len(written),
            failed=tuple(self._failed.items()),
            cast_columns=tuple(self._cast_columns),
        )


def run_block_task(destination: BlockDestination, task: BlockTask) -> BlockTaskResult:
    """Analyze the files of a task."""
    builder = BlockBuilder(destination, task.depth, task.columns)
    with use_system_allocator():
        for file in task.files:
            try:
                builder.add(
                    file, analyze_file(task, file, destination.budget, builder.statistics, destination.detail(file))
                )
            except UnsupportedDataFile as refusal:
                builder.refuse(Refusal(file.path, str(refusal)))
        return builder.finish()


def analyze_file(
    task: BlockTask,
    file: DataFile,
    budget: int,
    statistics: Sequence[Statistic] = (),
    detail: DetailLimits = DEFAULT_DETAIL_LIMITS,
) -> list[tuple[int, ColumnStatistics]]:
    """Compute the statistics of one file."""
    found = []
    wanted = []
    for ordinal, column in enumerate(task.columns):
        known = metadata_statistics(column, file, statistics) if file.rows else _constant(column, None, 0, statistics)
        if known is None:
            wanted.append((ordinal, column))
        else:
            found.append((ordinal, known))
    if not wanted:
        return found
    columns = [FileColumn.of(column, task.field_ids, file.names) for _, column in wanted]
    path = str(local_path(file.location))
    full = task.depth == FULL
    _require_same(file, path)
    read = analyze_parquet(path, columns, budget, statistics, detail) if full else analyze_footer(path, columns)
    _require_same(file, path)
    if read.rows != file.rows:
        raise UnsupportedDataFile(refusals.ROWS_DIFFER)
    schema = cache(partial(pq.read_schema, path))
    for (ordinal, column), known in zip(wanted, read.columns, strict=True):
        found.append((ordinal, known or _absent(task, column, file.physical_rows, schema, statistics)))
    return found


def _require_same(file: DataFile, path: str) -> None:
    if file.modified is None:
        return
    now = Path(path).stat()
    if (now.st_size, now.st_mtime_ns // 1_000_000) != (file.size, file.modified):
        raise UnsupportedDataFile(refusals.REPLACED)


def metadata_statistics(column: Column, file: DataFile, statistics: Sequence[Statistic]) -> ColumnStatistics | None:
    """The statistics of a column whose values the table's metadata decides, None of one that the file holds."""
    if column.key in file.constants:
        return _constant(column, file.constants[column.key], file.physical_rows, statistics)
    return unknown_statistics(column, file.physical_rows) if column.key in file.unknown else None


def _constant(column: Column, value: Any, rows: int, statistics: Sequence[Statistic]) -> ColumnStatistics:
    return apply_to_constant(constant_statistics(column, value, rows), column, value, statistics)


def _absent(
    task: BlockTask, column: Column, rows: int, schema: Callable[[], pa.Schema], statistics: Sequence[Statistic]
) -> ColumnStatistics:
    if column.key in task.defaults:
        if len(column.path) > 1:
            raise UnsupportedDataFile(refusals.NESTED_DEFAULT)
        return _constant(column, task.defaults[column.key], rows, statistics)
    is_null = task.absent_is_null or (column.key in task.nameless_is_null and not _has_name(schema(), column.path))
    return _constant(column, None, rows, statistics) if is_null else unknown_statistics(column, rows)


def _has_name(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether a file may have a column of that path, in any case."""
    fields = list(schema)
    for part in path:
        alike = [field for field in fields if field.name.lower() == part.lower()]
        if not alike:
            return False
        fields = [below for field in alike if pa.types.is_struct(field.type) for below in field.type]
        if not fields:
            return True
    return True


def unknown_statistics(column: Column, rows: int) -> ColumnStatistics:
    """Note that a column was looked for in a file, and that nothing is known of it."""
    return ColumnStatistics(rows, column.encoding)
