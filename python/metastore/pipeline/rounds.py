"""One ANALYZE from the statement to the commit: plan, compute, commit, until nothing is missing."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from metastore import jvm_session
from metastore.adapters.spark_errors import raise_as_ours
from metastore.adapters.table_facts import Refusal
from metastore.errors import AnalyzeFailed, MetastoreError
from metastore.format.data_files import select_files
from metastore.pipeline.commit import commit_plan
from metastore.pipeline.compute import compute_missing
from metastore.pipeline.plan import RoundState, make_plan
from metastore.pipeline.plan_inputs import PlanInputs, open_table, read_inputs
from metastore.pipeline.published_sketches import publish_sketches
from metastore.pipeline.repair_plan import list_refusals
from metastore.pipeline.report import AnalyzeReport
from metastore.spark_jobs.interpreter import use_driver_python
from metastore.spark_jobs.progress import Progress, make_progress
from metastore.store.block_files import BlockDamageError
from metastore.store.claims import claim
from metastore.store.commit_log import refuse_other_table
from metastore.table_level.snapshot_level import snapshot_id
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from metastore.format.manifest import Manifest
    from metastore.pipeline.request import AnalyzeStatement
    from metastore.store import Store


_ROUNDS = 5
_TIDY_EVERY = 100  # manifests
_TIDY_GRACE = 24 * 3600.0  # seconds

_LOG = get_logger(__name__)


def run_statement(spark: SparkSession, statement: AnalyzeStatement, progress: bool | Progress) -> AnalyzeReport:  # noqa: FBT001 - passed on
    """Run a statement."""
    started = time.monotonic()
    with _running(spark, statement, progress) as running_progress:
        inputs = read_inputs(spark, statement, open_table(spark, statement))
        return _run(spark, inputs, running_progress, started)


def run_in_turn(spark: SparkSession, statement: AnalyzeStatement, progress: bool | Progress) -> AnalyzeReport | None:  # noqa: FBT001 - passed on
    """Run a statement that nobody typed; return None if another driver already runs the same one."""
    started = time.monotonic()
    with _running(spark, statement, progress) as running_progress:
        table = open_table(spark, statement, is_automatic=True)
        with claim(table.store, statement.depth) as is_ours:
            if not is_ours:
                return None
            # Statistics are read after the claim: another driver may have finished the same work before it.
            report = _run(spark, read_inputs(spark, statement, table), running_progress, started)
        if report.committed:
            _tidy(table.store)
        return report


@contextmanager
def _running(spark: SparkSession, statement: AnalyzeStatement, progress: bool | Progress) -> Iterator[Progress]:  # noqa: FBT001 - passed on
    """Show progress, make workers run the driver's Python, and raise errors as `MetastoreError`."""
    with (
        raise_as_ours(statement.table),
        use_driver_python(spark.sparkContext),
        closing(_begin(statement, progress)) as running_progress,
    ):
        yield running_progress


def _tidy(store: Store) -> None:
    """Delete objects that were unused for a day, after every hundredth commit: queries list all manifests."""
    try:
        manifest = store.read()
        if manifest is not None and manifest.sequence % _TIDY_EVERY == 0:
            store.writable().find_garbage(_TIDY_GRACE, delete=True)
    except MetastoreError as error:
        _LOG.warning("nothing was tidied in %s: %s", store.uri, error)


def _begin(statement: AnalyzeStatement, progress: bool | Progress) -> Progress:  # noqa: FBT001 - passed on
    running_progress = make_progress(progress, statement.table)
    running_progress.begin("looking up what changed")
    return running_progress


def _run(spark: SparkSession, inputs: PlanInputs, progress: Progress, started: float) -> AnalyzeReport:
    state = _run_rounds(spark, inputs, progress)
    if state.is_committed:
        jvm_session.note_new_statistics(spark)
    unpublished = publish_sketches(spark, inputs)
    return _report(inputs, state, unpublished, time.monotonic() - started)


def _run_rounds(spark: SparkSession, inputs: PlanInputs, progress: Progress) -> RoundState:
    """Compute and commit missing statistics; repeat this if other writers committed meanwhile or damage appears."""
    state = RoundState.of(inputs)
    manifest = inputs.manifest
    for _ in range(_ROUNDS):
        state = _refuse_other_table(inputs, state, manifest)
        try:
            plan = make_plan(inputs, state, manifest)
            computed = compute_missing(spark, inputs, plan.work, progress)
            state = replace(plan.state, result=plan.state.result + computed)
            has_changes = plan.reason is not None or computed.blocks
            if not has_changes:
                return replace(state, coverage=plan.coverage)
            state = commit_plan(inputs, plan, state, computed.blocks, progress)
        except BlockDamageError as damage:
            _LOG.warning("block %s is computed again: %s", damage.block, damage.reason)
            state = state.with_damage([damage.block])
        if not state.is_stale:
            return state
        manifest = inputs.store.read()
    if state.is_committed:  # other writers go on, but this snapshot has its statistics
        return state
    raise AnalyzeFailed(inputs.facts.name, "other writers kept changing its statistics", "Try again later.")


def _refuse_other_table(inputs: PlanInputs, state: RoundState, manifest: Manifest | None) -> RoundState:
    """Refuse a manifest of a table that replaced this one after the first manifest was read."""
    replaceable = state.replaceable
    if replaceable is None:
        replaceable = frozenset({manifest.table.uuid} if manifest else ())
        state = replace(state, replaceable=replaceable)
    if manifest is not None:
        refuse_other_table(manifest, inputs.facts.identity, replaceable)
    return state


def _report(inputs: PlanInputs, state: RoundState, unpublished: tuple[Refusal, ...], seconds: float) -> AnalyzeReport:
    facts = inputs.facts
    result = state.result
    coverage = state.coverage or inputs.cover(())
    read = result.read | inputs.read_for_deletes
    refused = (
        *facts.refused,
        *result.refused,
        *_list_failures(inputs, state),
        *list_refusals(state.damage),
        *unpublished,
    )
    return AnalyzeReport(
        table=facts.name,
        format=facts.format,
        snapshot=snapshot_id(facts),
        files=coverage.count_files(),
        files_read=len(read),
        files_total=len(facts.files),
        rows=facts.live_rows,
        columns=coverage.count_columns(facts.columns),
        bytes_read=sum(file.size for file in select_files(facts.files, read)),
        objects=result.objects + state.objects,
        committed=state.is_committed,
        refused=refused,
        seconds=seconds,
    )


def _list_failures(inputs: PlanInputs, state: RoundState) -> tuple[Refusal, ...]:
    """List user-defined statistics that failed, each with its first failure, and then other failures."""
    first_failures = dict(reversed(state.result.failed))
    statistics = {**first_failures, **state.failed}
    failures: dict[str, str] = {}
    for extra in state.extras:
        failures.update(extra.failed)
    for text, reason in inputs.failed_expressions.items():
        failures[f"expression {text}"] = reason
    failures.update(inputs.wrong_names)
    refusals = []
    for subject, reason in sorted(statistics.items()):
        refusals.append(Refusal(f"statistic {subject}", reason))
    for subject, reason in sorted(failures.items()):
        refusals.append(Refusal(subject, reason))
    return tuple(refusals)
