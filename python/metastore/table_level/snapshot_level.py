"""Reduces the statistics of a snapshot's live data files, and writes the result as table-level objects."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from metastore.errors import DamagedObject
from metastore.format.extra_value import decode_value, encode_value
from metastore.format.manifest import COMPUTED, FULL, Snapshot, iterate_objects
from metastore.format.object_layout import ROW_GROUPS, size_row_groups, split_evenly
from metastore.format.object_schemas import TABLE_FILES, fill_schema
from metastore.kernel.statistic_rows import table_sketch_rows, table_summary_rows
from metastore.kernel.user_defined import UserFunctionError, encode_user_value, merge_user_values
from metastore.store.block_files import DEPTHS
from metastore.table_level.column_groups import AGGREGATE_KIND
from metastore.table_level.detail_prefetch import DetailPrefetch
from metastore.table_level.group_cache import GroupCache
from metastore.table_level.live_statistics import LiveStatistics
from metastore.table_level.table_details import TableDetailResult, TableDetailWriter, TableLevelOptions
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.statistics import Statistic
    from metastore.store import Store
    from metastore.store.block_files import BlockFiles, ColumnKey
    from metastore.store.coverage import Coverage
    from metastore.table_level.value_jobs import ValueJobs


NEVER_WRITTEN = "none"

_LOG = get_logger(__name__)
_VALUES_AT_ONCE = 1 << 20
_NULL = encode_value(None)
_FILE_FIELDS = ("path", "size", "rows", "deletes", "deleted_rows", "modified", "delete_files")

ValuesByFile = dict[int, bytes]
"""Stored values by the position of their data file."""


class UserDefinedLevel:
    """The user-defined statistics of a snapshot's live files, reduced column by column."""

    def __init__(
        self, live: LiveStatistics, blocks: Sequence[BlockFiles], count: int, statistics: Sequence[Statistic]
    ) -> None:
        self._live = live
        self._file_count = count
        self._functions = {statistic.name: statistic for statistic in statistics}
        self._versions: dict[str, int] = {}
        """The version of each statistic that counts: the declared function's, else the newest stored."""
        for block_files in blocks:
            if block_files.block.computed == FULL:
                self._versions.update(block_files.block.statistics)
        self._has_values = bool(self._versions)
        self._versions.update((statistic.name, statistic.version) for statistic in statistics)
        self.failed: dict[str, str] = {}

    def reduce(self, columns: Sequence[Column]) -> dict[ColumnKey, dict[str, bytes]]:
        """Reduce the values of columns, a few columns at a time."""
        step = max(len(columns), 1)
        if self._has_values:
            step = max(1, _VALUES_AT_ONCE // max(self._file_count, 1))
        reduced: dict[ColumnKey, dict[str, bytes]] = {}
        for start in range(0, len(columns), step):
            reduced |= self._reduce_columns(columns[start : start + step])
        return reduced

    def _reduce_columns(self, columns: Sequence[Column]) -> dict[ColumnKey, dict[str, bytes]]:
        labels = {(column.key, column.type): column.name for column in columns}
        reduced: dict[ColumnKey, dict[str, bytes]] = defaultdict(dict)
        for (key, name), values in self._read_values(columns).items():
            reduced[key][name] = self._merge_values(name, labels[key], values)
        return reduced

    def _read_values(self, columns: Sequence[Column]) -> dict[tuple[ColumnKey, str], ValuesByFile]:
        """Read the values of each statistic of columns; of several values of a file the latest counts."""
        values: dict[tuple[ColumnKey, str], ValuesByFile] = defaultdict(dict)
        for rows in self._live.read_user_defined(columns):
            key = (rows.column.key, rows.column.type)
            stored = rows.block_files.block.statistics.items()
            names = {name for name, version in stored if self._versions[name] == version}
            for file, file_values in zip(rows.files, rows.values, strict=True):
                for name in names & file_values.keys():
                    values[key, name].setdefault(file, file_values[name])
        return values

    def _merge_values(self, name: str, column: str, values: ValuesByFile) -> bytes:
        """Return the value of the table; it is null if it does not follow from the values of the files."""
        if len(values) < self._file_count:
            return _NULL
        if len(values) == 1:
            return next(iter(values.values()))
        statistic = self._functions.get(name)
        if statistic is None or statistic.merge is None:
            return _NULL
        try:
            parts = [decode_value(values[file]).as_py() for file in sorted(values)]
            return encode_user_value(merge_user_values(statistic, parts))
        except (UserFunctionError, DamagedObject) as failure:
            self.failed[f"{name}({column})"] = f"merge: {failure}"
            return _NULL


@dataclass(frozen=True)
class TableLevel:
    """The reduction of one snapshot.

    Attributes:
        snapshot: Its entry for the manifest.
        objects: The number of objects that were written for it.
        failed: User-defined statistics that could not be merged, and why.
        nodes: The objects with its partial merges.
    """

    snapshot: Snapshot
    objects: int
    failed: Mapping[str, str]
    nodes: tuple[ObjectRef, ...] = ()


def write_table_level(
    store: Store,
    facts: TableFacts,
    coverage: Coverage,
    options: TableLevelOptions,
    statistics: Sequence[Statistic] = (),
    jobs: ValueJobs | None = None,
    nodes: Sequence[ObjectRef] = (),
) -> TableLevel:
    """Reduce the statistics of the live files, and write the result."""
    reduction = _Reduction(
        store=store,
        facts=facts,
        coverage=coverage,
        options=options,
        statistics=statistics,
        jobs=jobs,
    )
    try:
        return reduction.write(nodes)
    except DamagedObject as damage:  # damage of blocks is an error of another class
        _LOG.warning("partial merges are made again: %s", damage)
        return reduction.write(())


@dataclass(frozen=True, kw_only=True)
class _Reduction:
    """The reduction of one snapshot: its inputs."""

    store: Store
    facts: TableFacts
    coverage: Coverage
    options: TableLevelOptions
    statistics: Sequence[Statistic]
    jobs: ValueJobs | None

    def write(self, refs: Sequence[ObjectRef]) -> TableLevel:
        """Reduce and write, with the partial merges of these objects."""
        facts = self.facts
        options = self.options
        nodes = GroupCache(self.store, AGGREGATE_KIND, refs)
        live = LiveStatistics(self.store, self.coverage.blocks, facts.files, nodes)
        user_defined = UserDefinedLevel(live, self.coverage.blocks, len(facts.files), self.statistics)
        with ThreadPoolExecutor() as threads:
            details = self._make_detail_writer(threads, refs)
            rows, depth = self._reduce_columns(live, user_defined, details)
            self.store.ensure_writable()
            sketches = threads.submit(_put, self.store, "table-sketches", table_sketch_rows(rows))
            files = threads.submit(self.store.put, "table-files", *_files_table(facts.files, self.coverage))
            written = details.write()
            rows = [(ordinal, _with_details(column, ordinal, written), count) for ordinal, column, count in rows]
            summary = _put(self.store, "table-summary", table_summary_rows(rows))
        snapshot = Snapshot(
            computed=COMPUTED[depth],
            table_files=files.result(),
            summary=summary,
            sketches=sketches.result(),
            expressions=options.expressions,
            **_refer_details(written, options),
            **_describe(facts, self.coverage),
        )
        all_nodes = (*nodes.finish(), *written.nodes)
        objects = len(list_snapshot_objects(snapshot)) + len(set(all_nodes).difference(refs))
        return TableLevel(snapshot, objects, user_defined.failed, all_nodes)

    def _make_detail_writer(self, threads: ThreadPoolExecutor, refs: Sequence[ObjectRef]) -> TableDetailWriter:
        # Partial merges replace most of the detail objects: these are read only where they are needed.
        blocks: Sequence[BlockFiles] = ()
        if not refs:
            blocks = self.coverage.live_blocks
        return TableDetailWriter(
            store=self.store,
            options=self.options,
            threads=threads,
            early=DetailPrefetch(self.store, blocks, threads),
            nodes=refs,
            jobs=self.jobs,
        )

    def _reduce_columns(
        self, live: LiveStatistics, user_defined: UserDefinedLevel, details: TableDetailWriter
    ) -> tuple[list[tuple[int, ColumnStatistics, int]], int]:
        """Reduce all columns; return the ordinal, statistics and number of files of each, and the deepest depth."""
        columns = self.facts.columns + self.options.expressions
        ordinals = {column.key: ordinal for ordinal, column in enumerate(columns)}
        extra = user_defined.reduce(columns)
        rows = []
        depth = 0
        for level in live.read_columns(columns):
            ordinal = ordinals[level.column.key]
            column_extra = extra.get((level.column.key, level.column.type), {})
            statistics = replace(level.statistics, extra=column_extra)
            rows.append((ordinal, statistics, level.rows.num_rows))
            details.add(ordinal, level, statistics)
            depth = max(depth, DEPTHS[level.computed])
        return rows, depth


def _refer_details(written: TableDetailResult, options: TableLevelOptions) -> Mapping[str, Any]:
    return {
        "frequencies_asked": options.algorithm,
        "frequencies": written.frequencies.result(),
        "distribution": written.distribution,
        "placed": written.index_coverage,
        "histograms": written.histograms.result(),
    }


def _with_details(statistics: ColumnStatistics, ordinal: int, written: TableDetailResult) -> ColumnStatistics:
    """Take the facts of the column's list and histogram over, so that its summary agrees with its details."""
    list_facts = written.lists.get(ordinal)
    if list_facts is not None:
        statistics = list_facts.apply_to(statistics)
    percentiles = written.percentiles.get(ordinal, statistics.percentiles)
    return replace(statistics, percentiles=percentiles)


def _describe(facts: TableFacts, coverage: Coverage) -> Mapping[str, Any]:
    files = facts.files
    live_rows = facts.live_rows
    live_size = None
    if live_rows is not None:
        live_size = sum(map(_live_size, files))
    return {
        "id": snapshot_id(facts),
        "analyzed_at": datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "columns": _name_columns(facts, coverage),
        "exact": facts.is_physical,
        "files": coverage.count_files(),
        "files_total": len(files),
        "rows": live_rows,
        "physical_rows": sum(map(attrgetter("physical_rows"), files)),
        "size_bytes": sum(map(attrgetter("size"), files)),
        "live_size_bytes": live_size,
    }


def _name_columns(facts: TableFacts, coverage: Coverage) -> tuple[Column, ...]:
    """Return the table's columns, under their names in data files without field ids, if there are such files."""
    mapped = {}
    for block_files in coverage.live_blocks:
        for column in block_files.block.columns:
            if column.mapped_key:
                mapped[column.key] = column.mapped_key
    return tuple(replace(column, key=mapped.get(column.key, column.key)) for column in facts.columns)


def _live_size(file: DataFile) -> int:
    live_rows = file.live_rows
    if not file.rows or live_rows is None:
        return file.size
    return file.size * live_rows // file.rows


def _put(store: Store, kind: str, table: pa.Table) -> ObjectRef | None:
    if table.num_rows == 0:
        return None
    ordered = table.sort_by("column")
    per_group = -(-ordered.num_rows // ROW_GROUPS)
    return store.put(kind, ordered, size_row_groups(ordered.column("column"), per_group))


def _files_table(files: Sequence[DataFile], coverage: Coverage) -> tuple[pa.Table, list[int]]:
    values: dict[str, list[Any]] = {name: list(map(attrgetter(name), files)) for name in _FILE_FIELDS}
    values["block"] = [None] * len(files)
    values["file"] = [None] * len(files)
    for number, file in enumerate(files):
        key = file.key
        deepest = coverage.deepest_block(key)
        if deepest is not None:
            values["block"][number] = deepest.block.id
            values["file"][number] = deepest.ordinals[key]
    table = fill_schema(TABLE_FILES, values, len(files))
    return table, split_evenly(table.num_rows, 1)


def list_snapshot_objects(snapshot: Snapshot) -> dict[str, int]:
    """Name the objects of a snapshot's entry, with their lengths."""
    return {ref.name: ref.length for ref in iterate_objects(snapshot)}


def is_entry_of(entry: Snapshot, facts: TableFacts) -> bool:
    """Return whether an entry, with resolved columns, is of the table's snapshot and columns."""
    return entry.id == snapshot_id(facts) and entry.columns == facts.columns


def snapshot_id(facts: TableFacts) -> str:
    """Return the snapshot's name in the manifest; a table that was never written has one, too."""
    return facts.snapshot or NEVER_WRITTEN
