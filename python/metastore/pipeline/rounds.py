"""One ANALYZE from the statement to the commit: plan, compute, commit, until nothing is missing."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters.spark_errors import raise_as_ours
from metastore.adapters.table_facts import Refusal
from metastore.errors import AnalyzeFailed, MetastoreError
from metastore.pipeline.commit import commit_plan
from metastore.pipeline.compute import compute_missing
from metastore.pipeline.plan import RoundState, make_plan
from metastore.pipeline.plan_inputs import PlanInputs, read_inputs
from metastore.pipeline.published_sketches import publish_sketches
from metastore.pipeline.repair_plan import list_refusals
from metastore.pipeline.report import AnalyzeReport
from metastore.spark_jobs.interpreter import use_driver_python
from metastore.spark_jobs.progress import Progress, make_progress
from metastore.store.block_files import BlockDamageError
from metastore.store.claims import claim
from metastore.store.commit_log import refuse_other_table
from metastore.store.retention import collect_garbage
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
    with _running(spark, statement, progress) as shown:
        return _run(spark, read_inputs(spark, statement), shown, started)


def run_in_turn(spark: SparkSession, statement: AnalyzeStatement, progress: bool | Progress) -> AnalyzeReport | None:  # noqa: FBT001 - passed on
    """Run a statement that nobody typed; None where another driver is at the same, of which it may leave nothing."""
    started = time.monotonic()
    with _running(spark, statement, progress) as shown:
        inputs = replace(read_inputs(spark, statement), is_unasked=True)
        with claim(inputs.store, statement.depth) as is_ours:
            report = _run(spark, inputs, shown, started) if is_ours else None
        if report is not None and report.committed:
            _tidy(inputs.store)
        return report


@contextmanager
def _running(spark: SparkSession, statement: AnalyzeStatement, progress: bool | Progress) -> Iterator[Progress]:  # noqa: FBT001 - passed on
    """Show progress, have workers run the right Python, and raise errors of our own."""
    with (
        raise_as_ours(statement.table),
        use_driver_python(spark.sparkContext),
        closing(_begin(statement, progress)) as shown,
    ):
        yield shown


def _tidy(store: Store) -> None:
    """Delete now and then what nobody has needed for a day: each write leaves two manifests, and queries list them."""
    try:
        manifest = store.read()
        if manifest is not None and manifest.sequence % _TIDY_EVERY == 0:
            store.writable().run(collect_garbage(_TIDY_GRACE))
    except MetastoreError as e:
        _LOG.warning("nothing was tidied in %s: %s", store.uri, e)


def _begin(statement: AnalyzeStatement, progress: bool | Progress) -> Progress:  # noqa: FBT001 - passed on
    shown = make_progress(progress, statement.table)
    shown.begin("looking up what changed")
    return shown


def _run(spark: SparkSession, inputs: PlanInputs, progress: Progress, started: float) -> AnalyzeReport:
    state = _run_rounds(spark, inputs, progress)
    unpublished = publish_sketches(spark, inputs)
    return _report(inputs, state, unpublished, time.monotonic() - started)


def _run_rounds(spark: SparkSession, inputs: PlanInputs, progress: Progress) -> RoundState:
    """Compute and commit what is missing; again when other writers committed meanwhile, or where damage is met."""
    state = RoundState.of(inputs)
    for _ in range(_ROUNDS):
        manifest = inputs.store.read()
        state = _refuse_other_table(inputs, state, manifest)
        try:
            plan = make_plan(inputs, state, manifest)
            computed = compute_missing(spark, inputs, plan.work, progress)
            state = replace(plan.state, result=plan.state.result + computed)
            if plan.reason is None and not computed.blocks:
                return replace(state, coverage=plan.coverage)
            state = commit_plan(inputs, plan, state, computed.blocks, progress)
        except BlockDamageError as damage:
            _LOG.warning("block %s is computed again: %s", damage.block, damage.reason)
            state = state.with_damage([damage.block])
        if not state.is_stale:
            return state
    if state.is_committed:  # of this snapshot; others go on writing
        return state
    raise AnalyzeFailed(inputs.facts.name, "other writers kept changing its statistics", "Try again later.")


def _refuse_other_table(inputs: PlanInputs, state: RoundState, manifest: Manifest | None) -> RoundState:
    """Refuse a manifest of a table that took this one's place after the first manifest was read."""
    if state.over is None:
        state = replace(state, over=frozenset({manifest.table.uuid} if manifest else ()))
    if manifest is not None:
        refuse_other_table(manifest, inputs.facts.identity, state.over or frozenset())
    return state


def _report(inputs: PlanInputs, state: RoundState, unpublished: tuple[Refusal, ...], seconds: float) -> AnalyzeReport:
    facts, result, coverage = inputs.facts, state.result, state.coverage or inputs.cover(())
    read = result.read | (inputs.deleted.read if inputs.deleted else frozenset())
    return AnalyzeReport(
        table=facts.name,
        format=facts.format,
        snapshot=snapshot_id(facts),
        files=sum(1 for file in facts.files if coverage.holds(file)),
        files_read=len(read),
        files_total=len(facts.files),
        rows=facts.live_rows,
        columns=coverage.count_columns(facts.columns),
        bytes_read=sum(file.size for file in facts.files if file.path in read),
        objects=result.objects + state.objects,
        committed=state.is_committed,
        refused=facts.refused
        + result.refused
        + _list_failures(inputs, state)
        + list_refusals(state.damage)
        + unpublished,
        seconds=seconds,
    )


def _list_failures(inputs: PlanInputs, state: RoundState) -> tuple[Refusal, ...]:
    """What user-defined statistics and what else was wanted failed with; the first failure of a task is told."""
    statistics = {**dict(reversed(state.result.failed)), **state.failed}
    others = {subject: reason for extra in state.extras for subject, reason in extra.failed.items()}
    others |= {f"expression {text}": reason for text, reason in inputs.failed_expressions.items()}
    others |= inputs.wrong_names
    return (
        *(Refusal(f"statistic {subject}", reason) for subject, reason in sorted(statistics.items())),
        *(Refusal(subject, reason) for subject, reason in sorted(others.items())),
    )
