"""The statistics of the rows that a query of one table keeps: of files that match fully what is stored is enough."""

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
from metastore.adapters.table_facts import DataFile, TableFacts
from metastore.contract import read_contract
from metastore.errors import AnalyzeFailed, NoStatistics
from metastore.format.manifest import FULL
from metastore.kernel.budget import BUDGET, DetailLimits
from metastore.kernel.column_statistics import constant_statistics
from metastore.pipeline.block_task import BlockBuilder, BlockDestination
from metastore.pipeline.deleted_rows import count_deleted_rows, recall_deleted_rows
from metastore.pipeline.plan_inputs import choose_options, count_rows, describe_block_settings
from metastore.pipeline.row_task import analyze_matching_rows
from metastore.reading.discovery import Discovery
from metastore.reading.snapshot import SnapshotAnswer
from metastore.reading.summary_rows import FileCounts
from metastore.reading.table_answers import Statistics
from metastore.spark_jobs.hadoop_store import open_table_store
from metastore.spark_jobs.session_jobs import run_cancellable, ship_package
from metastore.spark_jobs.task_store import TaskStore
from metastore.store.block_files import DEPTHS, BlockFilesCache, column_keys
from metastore.store.coverage import Coverage
from metastore.store.overlay_store import OverlayStore
from metastore.table_level.snapshot_level import write_table_level

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from metastore.format.manifest import Block, Manifest
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.reading.summary_rows import Row
    from metastore.store.block_files import BlockFiles
    from metastore.table_level.table_details import TableLevelOptions


_PIECE_BYTES = 1 << 30  # so that nothing is left out to stay small against a data file
_COLUMNS = next(
    tuple(column.split()[0] for column in one["columns"])
    for one in read_contract("functions")["functions"]
    if one["name"] == "filtered_summary"
)


@dataclass(frozen=True)
class FilteredTable:
    """A table, and what a query's WHERE says of its data files.

    Attributes:
        condition: The WHERE, as SQL.
        full: Data files of which every row is live and matches, with statistics of every column.
        open: Those that are read, for nothing proves that no row matches.
        rows_total: Live rows of the table.
    """

    facts: TableFacts
    condition: str
    full: tuple[DataFile, ...]
    open: tuple[DataFile, ...]
    rows_total: int

    @property
    def rows_read(self) -> int:
        """Rows that the files which are read hold, deleted ones included."""
        return sum(file.physical_rows for file in self.open)


@dataclass(frozen=True)
class _Memory(TaskStore):
    """Where the driver puts the objects of one answer."""

    store: OverlayStore = field(kw_only=True)

    def write(
        self, kind: str, table: pa.Table, row_groups: Sequence[int], extra: Mapping[str, str] | None = None
    ) -> ObjectRef:
        return self.store.put(kind, table, row_groups, extra)


def summarize_query(spark: SparkSession, query: str) -> list[list[str | None]]:
    """The rows of `metastore.filtered_summary`, as texts."""
    name, condition, told = _ask_filter(spark, query)
    facts = load_facts(spark, name)
    store, _ = open_table_store(spark, facts.identity, writable=False)
    manifest = store.read()
    if manifest is None or manifest.table.uuid != facts.uuid:
        raise NoStatistics(facts.name, in_statements=facts.in_statements)
    if facts.name_mapping is not None:
        manifest = facts.name_mapping.resolve_manifest(manifest)
    block_files = BlockFilesCache(store)
    listed = facts
    with raise_as_ours(facts.name):
        facts = count_rows(spark, facts, store, block_files)
    if len(facts.files) < len(listed.files):
        unreadable = facts.refused[-1]
        raise AnalyzeFailed(facts.name, f"{unreadable.subject} is refused: {unreadable.reason}")
    facts = count_deleted_rows(spark, recall_deleted_rows(facts, store)).facts
    rows_total = facts.live_rows if facts.live_rows is not None else _count_rows_by_spark(spark, facts)
    blocks = block_files.read(manifest.blocks)
    table = _divide_files(facts, condition, told, Coverage(blocks, facts.files), rows_total)
    options = choose_options({one.setting.key: one.value for one in configuration.resolve(spark, user="analyze")})
    rows = _reduce(spark, table, OverlayStore(store), manifest, blocks, options)
    return [[_as_text(row.get(column)) for column in _COLUMNS] for row in rows]


def _ask_filter(spark: SparkSession, query: str) -> tuple[str, str, dict[str, bool]]:
    """The table and the WHERE of a query; of data files whether every row matches, or none."""
    with translate_errors(query, spark):
        head, *files = spark.sql("SELECT * FROM metastore_filter(:query)", args={"query": query}).collect()
    return head.table, head.condition, {row.path: row.is_full for row in files}


def _count_rows_by_spark(spark: SparkSession, facts: TableFacts) -> int:
    """Count the rows of a table whose log files change them: no metadata tells how many are left."""
    return select_at_snapshot(spark, facts, ["1"]).count()


def _divide_files(
    facts: TableFacts, condition: str, told: Mapping[str, bool], coverage: Coverage, rows_total: int
) -> FilteredTable:
    wanted, known = column_keys(facts.columns), coverage.columns_known(DEPTHS[FULL])
    full = tuple(
        file
        for file in facts.files
        if told.get(file.path) and file.deletes is None and wanted <= (known(file.key) or frozenset())
    )
    # A file that may be replaced under its path may have been since it was judged.
    skipped = {
        file.path
        for file in facts.files
        if told.get(file.path) is False and (file.modified is None or coverage.holds(file))
    }
    done = skipped | {file.path for file in full}
    left = tuple(file for file in facts.files if file.path not in done)
    # No row says for certain which file it is of.
    if facts.format in WITH_LOG_FILES and (left or not facts.is_physical):
        return FilteredTable(replace(facts, has_other_rows=True), condition, (), facts.files, rows_total)
    return FilteredTable(facts, condition, full, left, rows_total)


def _reduce(
    spark: SparkSession,
    table: FilteredTable,
    store: OverlayStore,
    manifest: Manifest,
    blocks: Sequence[BlockFiles],
    options: TableLevelOptions,
) -> list[Row]:
    """Rows that were read count as data files of their own, in a snapshot that nobody else sees."""
    pieces, made = _read_open_files(spark, table, store, options)
    if not table.full and not pieces:
        pieces, made = _as_block(table.facts, [_describe_no_rows(table.facts.columns)], store, options)
    facts = replace(table.facts, files=(*table.full, *pieces), has_other_rows=False)
    known = [*blocks, *BlockFilesCache(store).read(made)]
    snapshot = write_table_level(store, facts, Coverage(known, facts.files), options).snapshot
    if facts.name_mapping is not None:
        snapshot = facts.name_mapping.resolve_snapshot(snapshot)
    number = len(facts.files)
    shown = SnapshotAnswer(
        snapshot, current=True, columns=facts.columns, is_requested=True, files=FileCounts.of_same_files(number)
    )
    place = Discovery(facts.name, store, replace(manifest, snapshots=(snapshot,)))
    zone = read_time_zone(spark)
    counts = {
        "files": len(table.full) + len(table.open),
        "files_total": len(table.facts.files),
        "rows_read": table.rows_read,
        "rows_total": table.rows_total,
    }
    return [{**row, **counts} for row in Statistics(place, zone).describe_columns(shown)]


def _read_open_files(
    spark: SparkSession, table: FilteredTable, store: OverlayStore, options: TableLevelOptions
) -> tuple[tuple[DataFile, ...], list[Block]]:
    """One block of the matching rows of the files that are read, and its pieces as data files."""
    facts = table.facts
    if not table.open and not facts.has_other_rows:
        return (), []
    ship_package(spark.sparkContext)
    detail = DetailLimits(options.bins, options.top, kind=options.kind)
    rows = read_matching_rows(spark, facts, facts.columns, table.condition, table.open)
    with raise_as_ours(facts.name):
        found = run_cancellable(spark, lambda: analyze_matching_rows(rows, facts.columns, detail, facts.name))
    return _as_block(facts, found, store, options)


def _describe_no_rows(columns: Sequence[Column]) -> tuple[int, list[ColumnStatistics]]:
    """The statistics of columns without rows: their counts are 0, and nothing is unknown."""
    return 0, [constant_statistics(column, None, 0) for column in columns]


def _as_block(
    facts: TableFacts,
    found: Sequence[tuple[int, list[ColumnStatistics]]],
    store: OverlayStore,
    options: TableLevelOptions,
) -> tuple[tuple[DataFile, ...], list[Block]]:
    destination = BlockDestination(
        _Memory(store.uri, store=store), facts.identity, describe_block_settings(options), BUDGET
    )
    builder = BlockBuilder(destination, FULL, facts.columns)
    pieces = tuple(
        DataFile(f"matching-rows/{place}", _PIECE_BYTES, rows, "parquet") for place, (rows, _) in enumerate(found)
    )
    for piece, (_, statistics) in zip(pieces, found, strict=True):
        builder.add(piece, enumerate(statistics))
    block = builder.finish().block
    return pieces, [] if block is None else [block]


def _as_text(value: Any) -> str | None:
    """A cell as SQL's CAST reads it; user-defined statistics are not known of rows."""
    if value is None or isinstance(value, dict):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, datetime) else str(value)
