"""What an ANALYZE works with: the table, its statistics, what the statement asks for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from metastore import configuration
from metastore.adapters.descriptors import describe_format
from metastore.adapters.expressions import TableExpressions, resolve_expressions
from metastore.adapters.identifiers import LOCATION, escape_glob
from metastore.adapters.loading import load_facts
from metastore.adapters.spark_errors import leave_out_unreadable
from metastore.adapters.spark_versions import read_time_zone
from metastore.errors import InvalidArgument
from metastore.format.manifest import FILES, FULL, Block
from metastore.pipeline.deleted_rows import DeletedRows, count_deleted_rows, recall_deleted_rows
from metastore.pipeline.extras import Extra, RanksExtra, ValueIndexExtra
from metastore.pipeline.request import AnalyzeRequest, AnalyzeStatement, resolve_request
from metastore.pipeline.young_files import wait_for_young_files
from metastore.setting_types import split_expressions
from metastore.spark_jobs.hadoop_store import open_table_store
from metastore.spark_jobs.session_jobs import pickle_statistics
from metastore.statistics import Statistic, collect_statistics
from metastore.store.block_files import BlockDamageError, BlockFilesCache
from metastore.store.coverage import Coverage
from metastore.table_level.rank_sort import RankSort
from metastore.table_level.table_details import TableLevelOptions
from metastore.table_level.value_jobs import ValueJobs
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.data_files import FileKey
    from metastore.kernel.user_defined import StatisticPickle
    from metastore.spark_jobs.task_store import TaskStore
    from metastore.store import Store


_LOG = get_logger(__name__)

PUFFIN = "spark.metastore.iceberg.puffin"
BLOCK_SETTINGS: Mapping[str, Any] = {"theta_lgk": 12, "theta_hash": "iceberg"}


@dataclass(frozen=True)
class UserStatistics:
    """The user-defined statistics that can be computed, the same for tasks, and why others cannot."""

    statistics: tuple[Statistic, ...] = ()
    pickles: tuple[StatisticPickle, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    def of(self, expression: str | None) -> frozenset[tuple[str, int]]:
        """Names and versions of those of an expression, by its key; None: of columns."""
        return frozenset((one.name, one.version) for one in self.statistics if one.expression == expression)


@dataclass(frozen=True)
class PlanInputs:
    """What every step of an ANALYZE works with, from its beginning to its end.

    Attributes:
        task_store: The store as tasks reach it.
        keep: So many snapshots stay.
        is_repair: Whether all stored statistics are read first to find damage.
        extras: What is wanted besides statistics.
        jobs: Jobs that the table level is made with.
        failed_expressions: Expressions that have no statistics, and why.
        is_publishing: Whether other engines are told the columns' distinct counts, for which the format has a place.
        is_unasked: Whether nobody typed it: what people ask meanwhile does not wait for all of its tasks.
        deleted: The data files whose deleted rows were counted.
        wrong_names: Table properties and settings of the session that say nothing, and why.
    """

    facts: TableFacts
    request: AnalyzeRequest
    store: Store
    task_store: TaskStore
    block_files: BlockFilesCache
    options: TableLevelOptions
    keep: int
    is_repair: bool = False
    user_statistics: UserStatistics = field(default_factory=UserStatistics)
    extras: tuple[Extra, ...] = ()
    jobs: ValueJobs | None = None
    failed_expressions: Mapping[str, str] = field(default_factory=dict)
    is_publishing: bool = False
    is_unasked: bool = False
    deleted: DeletedRows | None = None
    wrong_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def block_settings(self) -> Mapping[str, Any]:
        """What blocks are computed with."""
        return describe_block_settings(self.options)

    def cover(self, blocks: Sequence[Block]) -> Coverage:
        """What blocks know of the table's data files."""
        mapping = self.facts.name_mapping
        resolved = blocks if mapping is None else [mapping.resolve_block(block) for block in blocks]
        return Coverage(self.block_files.read(resolved), self.facts.files)


def read_inputs(spark: SparkSession, statement: AnalyzeStatement) -> PlanInputs:
    """Look up the table and its statistics, and check the statement against them."""
    values = _resolve_settings(spark, statement)
    facts = load_facts(spark, statement.table)
    store, place = open_table_store(spark, facts.identity, writable=True)
    facts = wait_for_young_files(facts, store, lambda: load_facts(spark, statement.table))
    block_files = BlockFilesCache(store)
    facts = count_rows(spark, facts, store, block_files)
    facts = recall_deleted_rows(facts, store)
    # A list of files is made without reading any.
    deleted = DeletedRows(facts) if statement.depth == FILES else count_deleted_rows(spark, facts)
    facts = deleted.facts
    case_sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    zone = read_time_zone(spark)
    request = resolve_request(facts, statement, values, case_sensitive=case_sensitive, zone=zone)
    statistics, unusable = _list_statistics(statement)
    expressions = _resolve_expressions(spark, facts, statement, request, values, statistics)
    users = _load_user_statistics(statistics, expressions, unusable)
    ranks, index = request.ranks, request.distribution
    sort = RankSort(spark, facts, place)
    files = {file.path: file for file in facts.files}
    return PlanInputs(
        facts=facts,
        request=replace(
            request,
            statistics=users.of(None),
            expressions=expressions.columns,
            expression_statistics={column.key: users.of(column.key) for column in expressions.columns},
        ),
        store=store,
        task_store=place,
        block_files=block_files,
        options=choose_options(values),
        keep=values["spark.metastore.snapshots.keep"],
        is_repair=statement.repair,
        user_statistics=users,
        failed_expressions=expressions.failed,
        is_publishing=values[PUFFIN] and describe_format(facts.format).publish_sketches is not None,
        extras=(
            RanksExtra(facts, store, ranks.ordinals, ranks.failed, sort),
            ValueIndexExtra(facts, store, index.ordinals, index.failed),
        ),
        jobs=ValueJobs(spark.sparkContext, place, files, facts.local, field_ids=facts.field_ids),
        deleted=deleted,
        wrong_names=_find_wrong_names(spark, facts),
    )


def _find_wrong_names(spark: SparkSession, facts: TableFacts) -> dict[str, str]:
    """What the table's properties and the session's conf have that begins as ours does and is not read."""
    properties = configuration.find_wrong_properties(facts.properties)
    settings = configuration.find_unknown_settings(spark)
    problems = {f"table property {name}": problem for name, problem in properties.items()}
    problems |= {f"setting {name}": problem for name, problem in settings.items()}
    for name, problem in problems.items():
        _LOG.warning("%s (%s): %s", name, facts.name, problem)
    return problems


def _resolve_settings(spark: SparkSession, statement: AnalyzeStatement) -> Mapping[str, Any]:
    """The values of all settings: one that has no value it can have is told before anything is read."""
    asked = {} if statement.frequencies is None else {"spark.metastore.frequencies.algorithm": statement.frequencies}
    return {one.setting.key: one.value for one in configuration.resolve(spark, asked, "analyze")}


def _resolve_expressions(
    spark: SparkSession,
    facts: TableFacts,
    statement: AnalyzeStatement,
    request: AnalyzeRequest,
    values: Mapping[str, Any],
    statistics: Sequence[Statistic],
) -> TableExpressions:
    """Look up the expressions that arguments, statistics, a setting and a property of the table name."""
    if statement.depth != FULL or not facts.files:
        return TableExpressions()
    listed = split_expressions(facts.properties.get("metastore.expressions", ""))
    asked = [*(("expressions", text) for text in statement.expressions), *_name_expressions(statement.statistics)]
    others = (*values["spark.metastore.expressions"], *listed, *(text for _, text in _name_expressions(statistics)))
    found = resolve_expressions(spark, facts, (*(text for _, text in asked), *others), request.columns)
    for argument, text in asked:
        if text in found.failed:
            raise InvalidArgument(argument, f"{text}: {found.failed[text]}")
    return found


def _name_expressions(statistics: Sequence[Statistic]) -> Iterator[tuple[str, str]]:
    return (("statistics", one.expression) for one in statistics if one.expression is not None)


def _list_statistics(statement: AnalyzeStatement) -> tuple[tuple[Statistic, ...], Mapping[str, str]]:
    if statement.depth != FULL and not statement.repair:
        return (), {}
    return collect_statistics(statement.statistics)


def _load_user_statistics(
    given: Sequence[Statistic], expressions: TableExpressions, unusable: Mapping[str, str]
) -> UserStatistics:
    """Pack statistics for the job, those of expressions under the keys that the table's have."""
    keys = expressions.keys
    statistics = [replace(one, expression=one.expression and keys.get(one.expression, one.expression)) for one in given]
    pickles, failed = pickle_statistics(statistics)
    return UserStatistics(tuple(one for one in statistics if one.name not in failed), pickles, {**failed, **unusable})


def describe_block_settings(options: TableLevelOptions) -> Mapping[str, Any]:
    """What blocks are computed with, as they say it."""
    return {
        **BLOCK_SETTINGS,
        "histogram_bins": options.bins,
        "histogram_kind": options.kind,
        "frequencies_top": options.top,
    }


def choose_options(values: Mapping[str, Any]) -> TableLevelOptions:
    """How the settings want the table level to be made."""
    return TableLevelOptions(
        bins=values["spark.metastore.histogram.bins"],
        kind=values["spark.metastore.histogram.kind"],
        top=values["spark.metastore.frequencies.top"],
        algorithm=values["spark.metastore.frequencies.algorithm"],
        threshold=values["spark.metastore.frequencies.threshold"],
    )


def count_rows(spark: SparkSession, facts: TableFacts, store: Store, indexed: BlockFilesCache) -> TableFacts:
    """Count the rows of the data files that do not have their number yet.

    Statistics remember it; of other files Spark reads the footers. A file that it cannot read is refused.
    """
    if all(file.rows is not None for file in facts.files):
        return facts
    known = _remembered(facts, store, indexed)
    files = [file if file.rows is not None else replace(file, rows=known.get(file.key)) for file in facts.files]
    uncounted = [file for file in files if file.rows is None]
    read, unreadable = leave_out_unreadable(uncounted, partial(_footers, spark))
    paths = {refusal.subject for refusal in unreadable}
    counted = tuple(
        replace(file, rows=read.get(file.location, 0)) if file.rows is None else file
        for file in files
        if file.path not in paths
    )
    return replace(facts, files=counted, refused=facts.refused + unreadable)


def _remembered(facts: TableFacts, store: Store, indexed: BlockFilesCache) -> Mapping[FileKey, int]:
    manifest = store.read()
    if manifest is None or manifest.table.uuid != facts.uuid:
        return {}
    found: dict[FileKey, int] = {}
    for block in manifest.blocks:
        try:
            (one,) = indexed.read([block])
        except BlockDamageError:
            continue
        rows = one.files.column("rows").to_pylist()
        found |= {key: rows[file] for key, file in one.ordinals.items() if rows[file] is not None}
    return found


def _footers(spark: SparkSession, files: Sequence[DataFile]) -> Mapping[str, int]:
    if not files:
        return {}
    # Without a schema Spark would infer one, and not name the file that it cannot read.
    rows = (
        spark.read.schema("`any` INT")
        .parquet(*(escape_glob(file.location) for file in files))
        .selectExpr(f"{LOCATION} AS path")
    )
    return {row.path: row["count"] for row in rows.groupBy("path").count().collect()}
