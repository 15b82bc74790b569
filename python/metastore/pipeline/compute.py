"""Computes missing statistics in Spark jobs: tasks read data files by Python; Spark reads those that Python cannot."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from metastore.adapters import refusals
from metastore.adapters.descriptors import WITH_LOG_FILES
from metastore.adapters.file_schemas import group_by_file_schema, mark_unknown_columns
from metastore.adapters.spark_errors import SPARK_JOB_ERRORS, find_cause, leave_out_unreadable, raise_as_ours
from metastore.adapters.spark_rows import opens_other_files, read_expressions_by_spark, read_rows_by_spark
from metastore.adapters.table_facts import Refusal, TableFacts
from metastore.errors import AnalyzeFailed
from metastore.format.block_writer import BlockContent, write_block
from metastore.format.data_files import divide_by_log_files, leave_out_files, select_files
from metastore.format.manifest import FULL, Block
from metastore.kernel.budget import BUDGET, choose_allowance
from metastore.kernel.parquet_file import find_spark_only_reason
from metastore.pipeline.block_task import BlockDestination, BlockTask, BlockTaskResult, run_block_task
from metastore.pipeline.row_task import analyze_spark_rows
from metastore.pipeline.settled_files import find_unsettled, mark_unsettled_columns
from metastore.spark_jobs.archive_imports import forget_archives
from metastore.spark_jobs.progress import Progress, StageProgress
from metastore.spark_jobs.session_jobs import pack_files, run_cancellable, ship_package, weigh_files

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore.adapters.file_schemas import FilesOfOneSchema
    from metastore.format.data_files import DataFile
    from metastore.format.table_column import Column
    from metastore.pipeline.missing_statistics import MissingStatistics
    from metastore.pipeline.plan_inputs import PlanInputs
    from metastore.store import Store

_LONGEST_TASK = 100.0
"""Seconds that a task may take: 512 MiB at 5 MiB a second."""


@dataclass(frozen=True)
class ComputeResult:
    """The result of all tasks of a run.

    Attributes:
        blocks: Entries for the manifest.
        read: Paths of the data files that were read.
        refused: Data files that could not be analyzed.
        failed: User-defined statistics that failed, and why.
    """

    blocks: tuple[Block, ...] = ()
    read: frozenset[str] = frozenset()
    refused: tuple[Refusal, ...] = ()
    objects: int = 0
    failed: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: ComputeResult) -> ComputeResult:
        """Join two results."""
        return ComputeResult(
            blocks=self.blocks + other.blocks,
            read=self.read | other.read,
            refused=self.refused + other.refused,
            objects=self.objects + other.objects,
            failed=self.failed + other.failed,
        )


def compute_missing(
    spark: SparkSession, inputs: PlanInputs, work: Sequence[MissingStatistics], progress: Progress
) -> ComputeResult:
    """Compute what is missing, and write it as blocks."""
    if not work:
        return ComputeResult()
    inputs.store.ensure_writable()
    tasks_per_job = spark.sparkContext.defaultParallelism if inputs.is_automatic else None

    def compute(part: MissingStatistics) -> ComputeResult:
        destination = _choose_destination(inputs, part.columns)
        computation = BlockComputation(
            spark=spark,
            facts=inputs.facts,
            store=inputs.store,
            destination=destination,
            progress=progress,
            tasks_per_job=tasks_per_job,
        )
        return computation.run(part)

    with raise_as_ours(inputs.facts.name):
        return sum(map(compute, work), ComputeResult())


def _choose_destination(inputs: PlanInputs, columns: Sequence[Column]) -> BlockDestination:
    """Return the destination of blocks of columns or expressions, with the user-defined statistics of these."""
    statistics = inputs.user_statistics.pickles_of(columns)
    table_bytes = sum(file.size for file in inputs.facts.files)
    allowance = replace(choose_allowance(table_bytes), keeps_sketches=inputs.is_publishing)
    return BlockDestination(
        store=inputs.task_store,
        table=inputs.facts.identity,
        settings=inputs.block_settings,
        budget=BUDGET,
        statistics=statistics,
        allowance=allowance,
        access=inputs.access,
    )


@dataclass(frozen=True, kw_only=True)
class BlockComputation:
    """Runs the work of one ANALYZE.

    Attributes:
        store: Where the driver writes.
        destination: Where tasks write.
        tasks_per_job: The number of tasks in a job, so that other jobs of the session can run between two jobs; None
            runs all tasks in one job.
    """

    spark: SparkSession
    facts: TableFacts
    store: Store
    destination: BlockDestination
    progress: Progress
    tasks_per_job: int | None = None

    def run(self, work: MissingStatistics) -> ComputeResult:
        """Compute the missing statistics of files."""
        if any(column.is_expression for column in work.columns):
            return ExpressionComputation(self, work).run()
        if not work.columns:
            return ComputeResult((self._list_files(work.files),), objects=1)
        return self._read(work)

    def _list_files(self, files: tuple[DataFile, ...]) -> Block:
        content = BlockContent("files", (), files)
        return write_block(self.store.put, content, self.destination.table, self.destination.settings)

    def _read(self, work: MissingStatistics) -> ComputeResult:
        """Read data files by the kernel; Spark reads the files that the kernel cannot."""
        reasons = self._find_spark_only_reasons(work.files)
        result = ComputeResult()
        kernel_files = leave_out_files(work.files, reasons)
        if kernel_files:
            results = self.run_job(work, kernel_files)
            replaced, other_reasons = _split_unread(results)
            result = _join_results(results) + ComputeResult(refused=replaced)
            reasons |= other_reasons
        remaining = select_files(work.files, reasons)
        if remaining:
            result += self._read_remaining(replace(work, files=remaining), reasons)
        return result

    def _read_remaining(self, work: MissingStatistics, reasons: Mapping[str, str]) -> ComputeResult:
        """Read data files by Spark; if Spark cannot give the requested statistics, only list the files."""
        if work.depth == FULL and not self.facts.field_ids:
            return self._read_by_spark(work, reasons)
        refused = tuple(Refusal(path, reason) for path, reason in reasons.items())
        if work.is_listed:
            return ComputeResult(refused=refused)
        return ComputeResult((self._list_files(work.files),), refused=refused, objects=1)

    def _find_spark_only_reasons(self, files: Sequence[DataFile]) -> dict[str, str]:
        """Return by path the reasons that the kernel cannot read data files."""
        reasons = {}
        for file in files:
            reason = find_spark_only_reason(file, self.destination.access)
            if reason is not None:
                reasons[file.path] = reason
        return reasons

    def _read_by_spark(self, work: MissingStatistics, reasons: Mapping[str, str]) -> ComputeResult:
        ship_package(self.spark.sparkContext)
        self.progress.begin(f"reading {len(work.files)} files")
        unsupported = self._find_spark_only_reasons(work.files)
        python_errors = {path: reason for path, reason in reasons.items() if path not in unsupported}
        try:
            results, unreadable = leave_out_unreadable(
                work.files,
                lambda files: self._read_rows(replace(work, files=tuple(files))),
                python_errors=python_errors,
                opens_others=opens_other_files(self.spark, self.facts),
            )
        except SPARK_JOB_ERRORS as failure:
            path, reason = next(iter(reasons.items()))
            message = f"{find_cause(failure)}. Spark reads files such as {path}, because Python cannot: {reason}"
            raise AnalyzeFailed(self.facts.name, message) from failure
        return sum(results, ComputeResult(refused=unreadable))

    def _read_rows(self, work: MissingStatistics) -> ComputeResult:
        """Read data files by Spark; a file that has left the table meanwhile is refused."""
        merged_files, stored_files = divide_by_log_files(work.files)
        result = ComputeResult()
        if merged_files:
            result += self._read_merged_rows(replace(work, files=merged_files))
        if stored_files:
            result += self._read_stored_rows(replace(work, files=stored_files))
        return result

    def _read_merged_rows(self, work: MissingStatistics) -> ComputeResult:
        """Read data files with their log files."""
        access = self.destination.access
        files = mark_unsettled_columns(self.spark, self.facts, work.columns, work.files, access)
        rows = read_rows_by_spark(self.spark, self.facts, work.columns, files)
        # A column that a data file lacks is unknown: other nulls are those of rows.
        task = replace(self.make_task(work, files), absent_is_null=True)
        return self._analyze_rows(rows, task)

    def _read_stored_rows(self, work: MissingStatistics) -> ComputeResult:
        """Read data files as they are stored."""
        groups: list[FilesOfOneSchema] = []
        cast_columns: tuple[Refusal, ...] = ()
        if self.facts.casts:
            groups = group_by_file_schema(self.spark, work.files)
            files, cast_columns = mark_unknown_columns(groups, work.columns)
            work = replace(work, files=files)
        rows = read_rows_by_spark(self.spark, self.facts, work.columns, work.files, groups=groups)
        task = replace(self.make_task(work, work.files), name_mapping=self.facts.name_mapping)
        return self._analyze_rows(rows, task) + ComputeResult(refused=cast_columns)

    def _analyze_rows(self, rows: DataFrame, task: BlockTask) -> ComputeResult:
        results = run_cancellable(self.spark, lambda: analyze_spark_rows(rows, self.destination, task))
        result = _join_results(results)
        unread = _list_unread(results)
        seen_paths = result.read.union(refusal.subject for refusal in unread)
        gone = _refuse_files_without_rows(task.files, seen_paths)
        return replace(result, refused=(*result.refused, *unread, *gone))

    def make_task(self, work: MissingStatistics, files: tuple[DataFile, ...]) -> BlockTask:
        """Return the work of one task."""
        facts = self.facts
        return BlockTask(
            depth=work.depth,
            columns=work.columns,
            files=files,
            defaults=facts.defaults,
            absent_is_null=facts.absent_is_null,
            field_ids=facts.field_ids,
            nameless_is_null=facts.nameless_is_null,
        )

    def run_job(self, work: MissingStatistics, chosen: tuple[DataFile, ...]) -> list[BlockTaskResult]:
        """Read data files by tasks that open them."""
        context = self.spark.sparkContext
        ship_package(context)
        tasks: list[BlockTask] = []
        for packed in pack_files(chosen, context.defaultParallelism):
            tasks += self.make_task(work, packed).split_columns()
        destination = self.destination
        files = context.accumulator(0.0)
        rows = context.accumulator(0.0)
        weight = context.accumulator(0.0)

        def run(task: BlockTask) -> BlockTaskResult:
            forget_archives()
            result = run_block_task(destination, task)
            share = 1 / task.tasks_per_file
            files.add(share * len(task.files))
            rows.add(share * sum(file.physical_rows for file in task.files))
            weight.add(share * weigh_files(task.files))
            return result

        total = len(chosen)
        total_weight = weigh_files(chosen)

        def read_progress() -> StageProgress:
            return StageProgress(round(files.value), total, round(rows.value), weight.value / total_weight)

        self.progress.begin("reading", read_progress)
        results: list[BlockTaskResult] = []
        while tasks:
            size = self._choose_job_size(len(tasks))
            wave = tasks[:size]
            tasks = tasks[size:]
            job = context.parallelize(wave, len(wave)).map(run)
            results += run_cancellable(self.spark, partial(destination.store.collect, job))
        return results

    def _choose_job_size(self, tasks: int) -> int:
        """Choose how many of the remaining tasks run in one job: its tasks use the keys that it begins with."""
        if self.tasks_per_job:
            return self.tasks_per_job
        destination = self.destination
        keys_end = min(destination.access.renew_keys(), destination.store.access.renewed().expires)
        if math.isinf(keys_end):
            return tasks
        return count_tasks_in_time(keys_end - time.time(), self.spark.sparkContext.defaultParallelism)


def count_tasks_in_time(seconds: float, cores: int) -> int:
    """Count the tasks of one job that end while its keys are valid.

    Half of the time is kept back: keys are renewed between two jobs only if half of theirs is over.

    Example:
        >>> count_tasks_in_time(3600, cores=4), count_tasks_in_time(90, cores=4)
        (72, 4)
    """
    tasks_per_core = max(1, int(seconds / 2 / _LONGEST_TASK))
    return tasks_per_core * cores


@dataclass
class ExpressionComputation:
    """Computes expressions by Spark; a file with a row on which an expression fails is left out.

    Attributes:
        attempts: The number of jobs that may still fail.
    """

    blocks: BlockComputation
    work: MissingStatistics
    attempts: int = 64

    def run(self) -> ComputeResult:
        """Compute what is missing, and write it as blocks."""
        ship_package(self.blocks.spark.sparkContext)
        self.blocks.progress.begin(f"evaluating expressions over {len(self.work.files)} files")
        if self.blocks.facts.format not in WITH_LOG_FILES:
            return self._compute(self.work)
        unsettled = find_unsettled(
            self.blocks.spark,
            self.blocks.facts,
            self.work.columns,
            self.work.files,
            self.blocks.destination.access,
        )
        return sum(map(self._compute_settled, self.work.columns, unsettled), ComputeResult())

    def _compute_settled(self, expression: Column, unsettled: Sequence[Refusal]) -> ComputeResult:
        """Compute an expression over the settled files, and refuse the others."""
        unsettled_paths = {refusal.subject for refusal in unsettled}
        settled = leave_out_files(self.work.files, unsettled_paths)
        work = replace(self.work, columns=(expression,), files=settled)
        result = self._compute(work) if settled else ComputeResult()
        return result + ComputeResult(refused=self._refuse_expressions(work, unsettled))

    def _compute(self, work: MissingStatistics) -> ComputeResult:
        facts = self.blocks.facts
        spark = self.blocks.spark
        destination = self.blocks.destination
        # Spark computed the nulls of an expression: they do not mean that a column is absent.
        task = replace(self.blocks.make_task(work, work.files), absent_is_null=True)
        rows = read_expressions_by_spark(spark, facts, work.columns, work.files)
        try:
            results = run_cancellable(spark, lambda: analyze_spark_rows(rows, destination, task))
        except SPARK_JOB_ERRORS as failure:
            return self._divide(work, failure)
        return _join_results(results) + ComputeResult(refused=self._refuse_expressions(work, _list_unread(results)))

    def _divide(self, work: MissingStatistics, failure: Exception) -> ComputeResult:
        """Compute parts of the work that failed: each expression by itself, then half of the files."""
        if "SPARK_JOB_CANCELLED" in str(failure):
            raise failure
        self.attempts -= 1
        if self.attempts < 0:
            reason = f"jobs over its rows fail too often: {find_cause(failure)}"
            refusal = Refusal(f"{len(work.files)} data files", reason)
            return ComputeResult(refused=self._refuse_expressions(work, (refusal,)))
        parts = _split(work)
        if not parts:
            return self._note_failure(work, Refusal(work.files[0].path, find_cause(failure)))
        return sum(map(self._compute, parts), ComputeResult())

    def _note_failure(self, work: MissingStatistics, refusal: Refusal) -> ComputeResult:
        """Store that an expression fails on a row of a file, so that the next ANALYZE does not try again."""
        keys = frozenset(column.key for column in work.columns)
        files = tuple(replace(file, unknown=file.unknown | keys) for file in work.files)
        noted = _join_results(self.blocks.run_job(work, files))
        return replace(noted, read=frozenset()) + ComputeResult(refused=self._refuse_expressions(work, (refusal,)))

    def _refuse_expressions(self, work: MissingStatistics, refused: Sequence[Refusal]) -> tuple[Refusal, ...]:
        subject = f"expression {', '.join(column.path[0] for column in work.columns)}"
        return tuple(Refusal(subject, f"{refusal.subject}: {refusal.reason}") for refusal in refused)


def _refuse_files_without_rows(files: Sequence[DataFile], seen_paths: Collection[str]) -> list[Refusal]:
    """Refuse the files that no row was read of."""
    return [Refusal(file.path, refusals.NO_ROWS_FOUND) for file in leave_out_files(files, seen_paths)]


def _split(work: MissingStatistics) -> list[MissingStatistics]:
    """Split work by expressions, else into two halves of its files; a single file is not split."""
    if len(work.columns) > 1:
        return [replace(work, columns=(column,)) for column in work.columns]
    if len(work.files) > 1:
        middle = len(work.files) // 2
        first_half = replace(work, files=work.files[:middle])
        second_half = replace(work, files=work.files[middle:])
        return [first_half, second_half]
    return []


def _split_unread(results: Sequence[BlockTaskResult]) -> tuple[tuple[Refusal, ...], dict[str, str]]:
    """Split the unread files into those that were replaced meanwhile, and the reasons of all others by path."""
    replaced = {}
    reasons = {}
    for refusal in _list_unread(results):
        if refusal.reason == refusals.REPLACED:
            replaced[refusal.subject] = refusal
        else:
            reasons[refusal.subject] = refusal.reason
    return tuple(replaced.values()), reasons


def _list_unread(results: Sequence[BlockTaskResult]) -> list[Refusal]:
    unread: list[Refusal] = []
    for result in results:
        unread += result.unread
    return unread


def _join_results(results: Sequence[BlockTaskResult]) -> ComputeResult:
    blocks: list[Block] = []
    paths: set[str] = set()
    failed: list[tuple[str, str]] = []
    objects = 0
    for result in results:
        if result.block is not None:
            blocks.append(result.block)
        paths.update(result.paths)
        failed += result.failed
        objects += result.objects
    return ComputeResult(
        blocks=tuple(blocks),
        read=frozenset(paths),
        refused=tuple(_refuse_cast_columns(results)),
        objects=objects,
        failed=tuple(failed),
    )


def _refuse_cast_columns(results: Sequence[BlockTaskResult]) -> list[Refusal]:
    """Refuse columns that files have in another type: one refusal for each column and type."""
    paths_by_type: dict[tuple[Column, str, str], list[str]] = defaultdict(list)
    for result in results:
        for cast in result.cast_columns:
            paths_by_type[cast.column, cast.file_type, cast.knowledge].append(cast.path)
    refused = []
    for (column, file_type, knowledge), paths in paths_by_type.items():
        reason = refusals.describe_other_type(file_type, column.type, paths, knowledge)
        refused.append(Refusal(column.name, reason))
    return refused
