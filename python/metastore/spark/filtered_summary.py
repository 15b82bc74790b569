"""The statistics of the rows that match a query of one table: files that match fully are not read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from metastore import configuration
from metastore.adapters.descriptors import WITH_LOG_FILES
from metastore.adapters.loading import load_facts
from metastore.adapters.shim_calls import translate_errors
from metastore.adapters.spark_errors import raise_as_ours
from metastore.adapters.spark_rows import read_matching_rows
from metastore.adapters.spark_versions import read_time_zone, select_at_snapshot
from metastore.contract import describe_function
from metastore.errors import AnalyzeFailed, NoStatistics
from metastore.format.data_files import DataFile
from metastore.format.manifest import FULL
from metastore.kernel.budget import BUDGET
from metastore.kernel.column_statistics import constant_statistics
from metastore.kernel.detail_limits import DetailLimits
from metastore.pipeline.block_task import BlockBuilder, BlockDestination
from metastore.pipeline.deleted_rows import count_deleted_rows, recall_deleted_rows
from metastore.pipeline.plan_inputs import choose_options, describe_block_settings
from metastore.pipeline.row_counts import count_rows
from metastore.pipeline.row_task import analyze_matching_rows
from metastore.reading.discovery import FoundStatistics
from metastore.reading.snapshot import SnapshotAnswer
from metastore.reading.summary_rows import FileCounts
from metastore.reading.table_answers import Statistics
from metastore.spark_jobs.hadoop_store import open_table_store
from metastore.spark_jobs.session_jobs import run_cancellable, ship_package
from metastore.spark_jobs.table_access import find_data_file_access
from metastore.spark_jobs.task_store import TaskStore
from metastore.store.block_files import DEPTHS, BlockFilesCache, column_keys
from metastore.store.coverage import Coverage
from metastore.store.overlay_store import OverlayStore
from metastore.table_level.snapshot_level import write_table_level

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.manifest import Block, Manifest
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.reading.summary_rows import Row
    from metastore.store import Store
    from metastore.store.block_files import BlockFiles
    from metastore.table_level.table_details import TableLevelOptions


_PIECE_BYTES = 1 << 30  # so that nothing is left out to stay small against a data file
_COLUMNS = tuple(column.split()[0] for column in describe_function("filtered_summary")["columns"])


@dataclass(frozen=True)
class QueryFilter:
    """The WHERE of a query, and its verdicts on data files.

    Attributes:
        table: The name of the table.
        condition: The WHERE, as SQL.
        verdicts: By path: true if every row matches, false if none does; other files are not listed.
    """

    table: str
    condition: str
    verdicts: Mapping[str, bool]


@dataclass(frozen=True)
class FilteredTable:
    """A table, and its data files divided by a query's WHERE.

    Attributes:
        facts: The table.
        condition: The WHERE, as SQL.
        full: Data files in which every row is live and matches, with statistics of every column.
        open: Data files to be read: it is not proven that no row matches.
        rows_total: Live rows of the table.
    """

    facts: TableFacts
    condition: str
    full: tuple[DataFile, ...]
    open: tuple[DataFile, ...]
    rows_total: int

    @property
    def rows_read(self) -> int:
        """The rows of the files to be read, deleted ones included."""
        return sum(file.physical_rows for file in self.open)


@dataclass(frozen=True)
class _Memory(TaskStore):
    """The objects of one answer, in the driver's memory."""

    store: OverlayStore = field(kw_only=True)

    def write(
        self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
    ) -> ObjectRef:
        return self.store.put(kind, table, row_groups, extra)


def summarize_query(spark: SparkSession, query: str) -> list[list[str | None]]:
    """Compute the rows of `metastore.filtered_summary`, as texts."""
    query_filter = _judge_files(spark, query)
    facts = load_facts(spark, query_filter.table, newest=False)
    store, task_store = open_table_store(spark, facts.identity, facts.identifier, writable=False)
    manifest = _read_manifest(store, facts)
    block_files = BlockFilesCache(store)
    access = find_data_file_access(spark, facts, task_store)
    with raise_as_ours(facts.name):
        counted = count_rows(spark, facts, manifest, block_files, access)
    if len(counted.files) < len(facts.files):
        raise _explain_refusal(counted)
    facts = count_deleted_rows(spark, recall_deleted_rows(counted, store, manifest)).facts
    if len(facts.refused) > len(counted.refused):
        raise _explain_refusal(facts)
    blocks = block_files.read(manifest.blocks)
    table = _divide_files(facts, query_filter, Coverage(blocks, facts.files), _count_live_rows(spark, facts))
    settings = {resolved.setting.key: resolved.value for resolved in configuration.resolve(spark, user="analyze")}
    rows = _reduce(
        spark,
        table,
        store=OverlayStore(store),
        manifest=manifest,
        blocks=blocks,
        options=choose_options(settings),
    )
    return [_to_texts(row) for row in rows]


def _read_manifest(store: Store, facts: TableFacts) -> Manifest:
    """Read the statistics of the table, under its present column names."""
    manifest = store.read()
    if manifest is None or manifest.table.uuid != facts.uuid:
        raise NoStatistics(facts.name, in_statements=facts.in_statements)
    if facts.name_mapping is None:
        return manifest
    return facts.name_mapping.resolve_manifest(manifest)


def _explain_refusal(facts: TableFacts) -> AnalyzeFailed:
    """Return the error for the data file that was refused last."""
    unreadable = facts.refused[-1]
    return AnalyzeFailed(facts.name, f"{unreadable.subject} is refused: {unreadable.reason}")


def _judge_files(spark: SparkSession, query: str) -> QueryFilter:
    with translate_errors(query, spark):
        head, *files = spark.sql("SELECT * FROM metastore_filter(:query)", args={"query": query}).collect()
    return QueryFilter(head.table, head.condition, {row.path: row.is_full for row in files})


def _count_live_rows(spark: SparkSession, facts: TableFacts) -> int:
    """Live rows by the metadata; Spark counts those of a table whose log files change them."""
    if facts.live_rows is not None:
        return facts.live_rows
    return select_at_snapshot(spark, facts, ["1"]).count()


def _divide_files(facts: TableFacts, query_filter: QueryFilter, coverage: Coverage, rows_total: int) -> FilteredTable:
    columns = column_keys(facts.columns)
    find_columns = coverage.columns_known(DEPTHS[FULL])
    full: list[DataFile] = []
    open_files: list[DataFile] = []
    for file in facts.files:
        every_row_matches = query_filter.verdicts.get(file.path)
        is_analyzed = file.deletes is None and columns <= find_columns(file.key)
        if every_row_matches and is_analyzed:
            full.append(file)
        elif every_row_matches is not False or _may_be_replaced(file, coverage):
            open_files.append(file)
    if _may_have_other_rows(facts, open_files):
        facts = replace(facts, has_other_rows=True)
        full = []
        open_files = list(facts.files)
    return FilteredTable(facts, query_filter.condition, tuple(full), tuple(open_files), rows_total)


def _may_have_other_rows(facts: TableFacts, open_files: Sequence[DataFile]) -> bool:
    """Return whether rows of log files may match: no row says for certain which file it is of."""
    if facts.format not in WITH_LOG_FILES:
        return False
    return bool(open_files) or not facts.is_physical


def _may_be_replaced(file: DataFile, coverage: Coverage) -> bool:
    """Return whether another file may lie under the path since its statistics were read."""
    return file.modified is not None and not coverage.holds(file.key)


def _reduce(
    spark: SparkSession,
    table: FilteredTable,
    *,
    store: OverlayStore,
    manifest: Manifest,
    blocks: Sequence[BlockFiles],
    options: TableLevelOptions,
) -> list[Row]:
    """Return the rows of the summary: rows that were read count as data files, in a snapshot that nobody else sees."""
    pieces, new_blocks = _read_open_files(spark, table, store, options)
    if not table.full and not pieces:
        pieces, new_blocks = _write_block(table.facts, [_describe_no_rows(table.facts.columns)], store, options)
    facts = replace(table.facts, files=(*table.full, *pieces), has_other_rows=False)
    all_blocks = [*blocks, *BlockFilesCache(store).read(new_blocks)]
    snapshot = write_table_level(store, facts, Coverage(all_blocks, facts.files), options).snapshot
    snapshot = facts.resolve_snapshot(snapshot)
    answer = SnapshotAnswer(
        snapshot=snapshot,
        current=True,
        columns=facts.columns,
        is_requested=True,
        files=FileCounts.of_same_files(len(facts.files)),
    )
    discovery = FoundStatistics(facts.name, store, replace(manifest, snapshots=(snapshot,)))
    counts = {
        "files": len(table.full) + len(table.open),
        "files_total": len(table.facts.files),
        "rows_read": table.rows_read,
        "rows_total": table.rows_total,
    }
    rows = Statistics(discovery, read_time_zone(spark)).describe_columns(answer)
    return [{**row, **counts} for row in rows]


def _read_open_files(
    spark: SparkSession, table: FilteredTable, store: OverlayStore, options: TableLevelOptions
) -> tuple[tuple[DataFile, ...], list[Block]]:
    """Read matching rows: one block of their statistics, and its pieces as data files."""
    facts = table.facts
    if not table.open and not facts.has_other_rows:
        return (), []
    ship_package(spark.sparkContext)
    detail = DetailLimits(options.bins, options.top)
    rows = read_matching_rows(spark, facts, facts.columns, table.condition, table.open)
    with raise_as_ours(facts.name):
        pieces = run_cancellable(spark, lambda: analyze_matching_rows(rows, facts.columns, detail, facts.name))
    return _write_block(facts, pieces, store, options)


def _describe_no_rows(columns: Sequence[Column]) -> tuple[int, list[ColumnStatistics]]:
    """Return the statistics of columns without rows: their counts are 0, and nothing is unknown."""
    return 0, [constant_statistics(column, None, 0) for column in columns]


def _write_block(
    facts: TableFacts,
    pieces: Sequence[tuple[int, list[ColumnStatistics]]],
    store: OverlayStore,
    options: TableLevelOptions,
) -> tuple[tuple[DataFile, ...], list[Block]]:
    memory = _Memory(store.uri, store=store)
    destination = BlockDestination(
        store=memory, table=facts.identity, settings=describe_block_settings(options), budget=BUDGET
    )
    builder = BlockBuilder(destination=destination, depth=FULL, columns=facts.columns)
    files = []
    for number, (rows, statistics) in enumerate(pieces):
        file = DataFile(path=f"matching-rows/{number}", size=_PIECE_BYTES, rows=rows, format="parquet")
        builder.add(file, enumerate(statistics))
        files.append(file)
    block = builder.finish().block
    return tuple(files), [] if block is None else [block]


def _to_texts(row: Row) -> list[str | None]:
    return [_to_text(row.get(column)) for column in _COLUMNS]


def _to_text(value: Any) -> str | None:
    """Return the value as SQL's CAST reads it; matching rows have no user-defined statistics, so that a map is NULL."""
    if value is None or isinstance(value, dict):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)
