"""Reads the inputs of an ANALYZE: the table, its statistics, the settings, and the checked statement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from metastore import configuration
from metastore.adapters.descriptors import describe_format
from metastore.adapters.expressions import TableExpressions, resolve_expressions
from metastore.adapters.loading import load_facts
from metastore.adapters.spark_versions import read_time_zone
from metastore.errors import InvalidArgument
from metastore.format.manifest import FILES, FULL, Block
from metastore.pipeline.deleted_rows import DeletedRows, count_deleted_rows, recall_deleted_rows
from metastore.pipeline.extras import Extra, RanksExtra, ValueIndexExtra
from metastore.pipeline.request import AnalyzeRequest, AnalyzeStatement, resolve_request
from metastore.pipeline.row_counts import count_rows
from metastore.pipeline.young_files import wait_for_young_files
from metastore.setting_types import split_expressions
from metastore.spark_jobs.hadoop_store import open_table_store
from metastore.spark_jobs.session_jobs import pickle_statistics
from metastore.spark_jobs.table_access import find_data_file_access
from metastore.statistics import Statistic, collect_statistics
from metastore.store.block_files import BlockFilesCache
from metastore.store.coverage import Coverage
from metastore.store.data_file_access import LOCAL_FILES, DataFileAccess
from metastore.table_level.rank_sort import RankSort
from metastore.table_level.table_details import TableLevelOptions
from metastore.table_level.value_jobs import ValueJobs
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.manifest import Manifest
    from metastore.format.table_column import Column
    from metastore.kernel.user_defined import StatisticPickle
    from metastore.spark_jobs.task_store import TaskStore
    from metastore.store import Store


_LOG = get_logger(__name__)

PUFFIN = "spark.metastore.iceberg.puffin"
BLOCK_SETTINGS: Mapping[str, Any] = {"theta_lgk": 12, "theta_hash": "iceberg"}


@dataclass(frozen=True)
class UserStatistics:
    """The user-defined statistics that can be computed, their pickles for tasks, and why the remaining ones fail."""

    statistics: tuple[Statistic, ...] = ()
    pickles: tuple[StatisticPickle, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    def of(self, expression: str | None) -> frozenset[tuple[str, int]]:
        """Return names and versions of the statistics of an expression, by its key; None selects those of columns."""
        selected = [statistic for statistic in self.statistics if statistic.expression == expression]
        return frozenset((statistic.name, statistic.version) for statistic in selected)

    def pickles_of(self, columns: Sequence[Column]) -> tuple[StatisticPickle, ...]:
        """Return the pickles of the statistics of columns or expressions."""
        keys = {column.key if column.is_expression else None for column in columns}
        return tuple(pickle for pickle in self.pickles if pickle.expression in keys)


@dataclass(frozen=True, kw_only=True)
class PlanInputs:
    """The inputs of every step of an ANALYZE; they do not change from its beginning to its end.

    Attributes:
        task_store: The store as tasks reach it.
        snapshots_to_keep: The number of snapshots to keep.
        manifest: The newest manifest when the inputs were read, or None; the store may have a newer one.
        access: How tasks open data files.
        is_repair: Whether all stored statistics are read first to find damage.
        extras: The ranks and value indexes to make besides statistics.
        jobs: The jobs that the table level is made with.
        failed_expressions: Expressions that have no statistics, and why.
        is_publishing: Whether the columns' distinct counts are published for other engines in the table's metadata.
        is_automatic: Whether nobody typed the statement: queries of people must not wait for all its tasks.
        newly_counted: Paths of the data files whose deleted rows this run counted.
        read_for_deletes: Paths of the data files that this run read to count deleted rows.
        wrong_names: Table properties and settings of the session that have no effect, and why.
    """

    facts: TableFacts
    request: AnalyzeRequest
    store: Store
    task_store: TaskStore
    block_files: BlockFilesCache
    options: TableLevelOptions
    snapshots_to_keep: int
    manifest: Manifest | None = None
    access: DataFileAccess = LOCAL_FILES
    is_repair: bool = False
    user_statistics: UserStatistics = field(default_factory=UserStatistics)
    extras: tuple[Extra, ...] = ()
    jobs: ValueJobs | None = None
    failed_expressions: Mapping[str, str] = field(default_factory=dict)
    is_publishing: bool = False
    is_automatic: bool = False
    newly_counted: frozenset[str] = frozenset()
    read_for_deletes: frozenset[str] = frozenset()
    wrong_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def block_settings(self) -> Mapping[str, Any]:
        """The settings that blocks are computed with."""
        return describe_block_settings(self.options)

    def cover(self, blocks: Sequence[Block]) -> Coverage:
        """Return which statistics of the table's data files these blocks have."""
        resolved = [self.facts.resolve_block(block) for block in blocks]
        return Coverage(self.block_files.read(resolved), self.facts.files)


@dataclass(frozen=True, kw_only=True)
class OpenedTable:
    """A table to analyze and its store, before its statistics are read.

    Attributes:
        task_store: The store as tasks reach it.
        access: How tasks open data files.
        settings: The values of all settings by their names.
        is_automatic: Whether nobody typed the statement.
    """

    facts: TableFacts
    store: Store
    task_store: TaskStore
    access: DataFileAccess
    settings: Mapping[str, Any]
    is_automatic: bool


def open_table(spark: SparkSession, statement: AnalyzeStatement, *, is_automatic: bool = False) -> OpenedTable:
    """Look up the table, open its store, and wait until its data files are old enough."""
    # Automatic ANALYZE takes the table as this session knows it: refreshing it could fail a command that runs.
    load = partial(load_facts, spark, statement.table, newest=not is_automatic)
    settings = _resolve_settings(spark, statement)
    facts = load()
    store, task_store = open_table_store(spark, facts.identity, facts.identifier, writable=True)
    access = find_data_file_access(spark, facts, task_store)
    return OpenedTable(
        facts=wait_for_young_files(facts, store, load),
        store=store,
        task_store=task_store,
        access=access,
        settings=settings,
        is_automatic=is_automatic,
    )


def read_inputs(spark: SparkSession, statement: AnalyzeStatement, table: OpenedTable) -> PlanInputs:
    """Look up the table's statistics, and check the statement against them."""
    store = table.store
    settings = table.settings
    block_files = BlockFilesCache(store)
    manifest = store.read()
    own_manifest = table.facts.own_manifest(manifest)
    facts = count_rows(spark, table.facts, own_manifest, block_files, table.access)
    facts = recall_deleted_rows(facts, store, own_manifest)
    # ANALYZE at depth `files` opens no data file.
    deleted = DeletedRows(facts) if statement.depth == FILES else count_deleted_rows(spark, facts)
    facts = deleted.facts
    case_sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    zone = read_time_zone(spark)
    request = resolve_request(facts, statement, settings, case_sensitive=case_sensitive, zone=zone)
    statistics, unusable = _list_statistics(statement)
    expressions = _resolve_expressions(
        spark,
        facts,
        statement,
        columns=request.columns,
        settings=settings,
        statistics=statistics,
    )
    users = _load_user_statistics(statistics, expressions, unusable)
    extras = _make_extras(facts, store, request, RankSort(spark, facts, table.task_store, table.access))
    jobs = ValueJobs(
        context=spark.sparkContext,
        store=table.task_store,
        files={file.path: file for file in facts.files},
        access=table.access,
        field_ids=facts.field_ids,
    )
    return PlanInputs(
        facts=facts,
        request=_with_statistics(request, users, expressions.columns),
        store=store,
        task_store=table.task_store,
        access=table.access,
        block_files=block_files,
        options=choose_options(settings),
        snapshots_to_keep=settings["spark.metastore.snapshots.keep"],
        manifest=manifest,
        is_repair=statement.repair,
        user_statistics=users,
        failed_expressions=expressions.failed,
        is_automatic=table.is_automatic,
        is_publishing=settings[PUFFIN] and describe_format(facts.format).publish_sketches is not None,
        extras=extras,
        jobs=jobs,
        newly_counted=deleted.counted,
        read_for_deletes=deleted.read,
        wrong_names=_find_wrong_names(spark, facts),
    )


def _make_extras(facts: TableFacts, store: Store, request: AnalyzeRequest, sort: RankSort) -> tuple[Extra, ...]:
    ranks = RanksExtra(
        facts=facts,
        store=store,
        ordinals=request.ranks.ordinals,
        failed=request.ranks.failed,
        sort=sort,
    )
    value_index = ValueIndexExtra(
        facts=facts,
        store=store,
        ordinals=request.distribution.ordinals,
        failed=request.distribution.failed,
    )
    return ranks, value_index


def _with_statistics(request: AnalyzeRequest, users: UserStatistics, expressions: tuple[Column, ...]) -> AnalyzeRequest:
    """Add the expressions, and the user-defined statistics of columns and expressions."""
    return replace(
        request,
        statistics=users.of(None),
        expressions=expressions,
        expression_statistics={column.key: users.of(column.key) for column in expressions},
    )


def _find_wrong_names(spark: SparkSession, facts: TableFacts) -> dict[str, str]:
    """Find table properties and settings with our prefix that have no effect, and log them."""
    properties = configuration.find_wrong_properties(facts.properties)
    settings = configuration.find_unknown_settings(spark)
    problems = {f"table property {name}": problem for name, problem in properties.items()}
    problems |= {f"setting {name}": problem for name, problem in settings.items()}
    for name, problem in problems.items():
        _LOG.warning("%s (%s): %s", name, facts.name, problem)
    return problems


def _resolve_settings(spark: SparkSession, statement: AnalyzeStatement) -> Mapping[str, Any]:
    """Read the values of all settings; a wrong one raises before anything is read."""
    arguments = {}
    if statement.frequencies is not None:
        arguments["spark.metastore.frequencies.algorithm"] = statement.frequencies
    resolved = configuration.resolve(spark, arguments, "analyze")
    return {entry.setting.key: entry.value for entry in resolved}


def _resolve_expressions(
    spark: SparkSession,
    facts: TableFacts,
    statement: AnalyzeStatement,
    *,
    columns: Sequence[Column],
    settings: Mapping[str, Any],
    statistics: Sequence[Statistic],
) -> TableExpressions:
    """Resolve the expressions that the statement, statistics, a setting and a table property name."""
    if statement.depth != FULL or not facts.files:
        return TableExpressions()
    texts = (
        *statement.expressions,
        *_list_expressions(statement.statistics),
        *settings["spark.metastore.expressions"],
        *split_expressions(facts.properties.get("metastore.expressions", "")),
        *_list_expressions(statistics),
    )
    expressions = resolve_expressions(spark, facts, texts, columns)
    _require_expressions("expressions", statement.expressions, expressions)
    _require_expressions("statistics", _list_expressions(statement.statistics), expressions)
    return expressions


def _list_expressions(statistics: Sequence[Statistic]) -> list[str]:
    return [statistic.expression for statistic in statistics if statistic.expression is not None]


def _require_expressions(argument: str, texts: Sequence[str], expressions: TableExpressions) -> None:
    """Raise `InvalidArgument` if an expression of an argument failed."""
    for text in texts:
        if text in expressions.failed:
            raise InvalidArgument(argument, f"{text}: {expressions.failed[text]}")


def _list_statistics(statement: AnalyzeStatement) -> tuple[tuple[Statistic, ...], Mapping[str, str]]:
    if statement.depth != FULL and not statement.repair:
        return (), {}
    return collect_statistics(statement.statistics)


def _load_user_statistics(
    declared: Sequence[Statistic], expressions: TableExpressions, unusable: Mapping[str, str]
) -> UserStatistics:
    """Pickle statistics for the job; the keys of expressions replace their texts."""
    statistics = [_with_expression_key(statistic, expressions.keys) for statistic in declared]
    pickles, failed = pickle_statistics(statistics)
    usable = tuple(statistic for statistic in statistics if statistic.name not in failed)
    return UserStatistics(usable, pickles, {**failed, **unusable})


def _with_expression_key(statistic: Statistic, keys: Mapping[str, str]) -> Statistic:
    text = statistic.expression
    if text is None:
        return statistic
    return replace(statistic, expression=keys.get(text, text))


def describe_block_settings(options: TableLevelOptions) -> Mapping[str, Any]:
    """Return the settings that blocks are computed with, by the names that blocks store."""
    return {
        **BLOCK_SETTINGS,
        "histogram_bins": options.bins,
        "frequencies_top": options.top,
    }


def choose_options(values: Mapping[str, Any]) -> TableLevelOptions:
    """Read the options of the table level from the settings."""
    return TableLevelOptions(
        bins=values["spark.metastore.histogram.bins"],
        top=values["spark.metastore.frequencies.top"],
        algorithm=values["spark.metastore.frequencies.algorithm"],
    )
