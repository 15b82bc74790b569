"""One ANALYZE from the statement to the commit."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metastore.adapters.loading import load_facts
from metastore.adapters.spark_errors import SPARK_JOB_ERRORS, find_cause
from metastore.adapters.table_facts import Refusal
from metastore.errors import AnalyzeFailed
from metastore.format.manifest import FULL
from metastore.pipeline.block_task import BlockDestination
from metastore.pipeline.commit import ManifestChange
from metastore.pipeline.compute import BlockComputation, ComputeResult
from metastore.pipeline.extras import RanksExtra, ValueIndexExtra
from metastore.pipeline.plan_inputs import count_rows
from metastore.pipeline.repair_plan import RepairPlan
from metastore.pipeline.report import AnalyzeReport
from metastore.pipeline.request import AnalyzeRequest, AnalyzeStatement, resolve_request
from metastore.spark_jobs.hadoop_store import open_table_store
from metastore.spark_jobs.progress import Progress, make_progress
from metastore.spark_jobs.session_jobs import pickle_statistics
from metastore.statistics import collect_statistics
from metastore.store.block_damage import BlockDamageError
from metastore.store.block_files import BlockFilesCache, list_block_objects
from metastore.store.commit_log import refuse_other_table
from metastore.store.coverage import Coverage
from metastore.store.orphan_blocks import find_orphan_blocks
from metastore.table_level.rank_sort import RankSort
from metastore.table_level.snapshot_level import list_snapshot_objects, snapshot_id, write_table_level
from metastore.table_level.table_details import TableLevelOptions
from metastore.table_level.value_jobs import AUTO, ValueJobs
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.manifest import Block, Manifest
    from metastore.spark_jobs.task_store import TaskStore
    from metastore.statistics import Statistic
    from metastore.store import Store


BLOCK_SETTINGS: Mapping[str, Any] = {"theta_lgk": 12, "theta_hash": "iceberg"}
_BUDGET = 1 << 30
_ROUNDS = 5
_NO_MODULE = "Executors need Python with numpy and pyarrow: set spark.pyspark.python to one."

_LOG = get_logger(__name__)


def run_statement(spark: SparkSession, statement: AnalyzeStatement, progress: bool | Progress) -> AnalyzeReport:  # noqa: FBT001 - passed on
    """Run a statement."""
    started = time.monotonic()
    shown = make_progress(progress, statement.table)
    shown.begin("looking up what changed")
    try:
        run = _prepare(spark, statement, shown)
        run.until_current()
    finally:
        shown.close()
    return run.report(time.monotonic() - started)


def _prepare(spark: SparkSession, statement: AnalyzeStatement, progress: Progress) -> _Run:
    facts = load_facts(spark, statement.table)
    store, place = open_table_store(spark, facts.identity, writable=True)
    indexed = BlockFilesCache(store)
    facts = count_rows(spark, facts, store, indexed)
    request = resolve_request(
        facts,
        columns=statement.columns,
        partition=statement.partition,
        partition_columns=statement.partition_columns,
        depth=statement.depth,
        case_sensitive=spark.conf.get("spark.sql.caseSensitive", "false") == "true",
        zone=spark.conf.get("spark.sql.session.timeZone") or "UTC",
    )
    statistics, unusable = (
        collect_statistics(statement.statistics) if statement.depth == FULL or statement.repair else ((), {})
    )
    run = _Run(spark, facts, request, progress, statistics, statement, (store, place, indexed))
    run.note_failures(unusable)
    return run


class _Run:
    """The state of one ANALYZE: rounds of looking, computing and committing, until nothing is missing."""

    def __init__(
        self,
        spark: SparkSession,
        facts: TableFacts,
        request: AnalyzeRequest,
        progress: Progress,
        statistics: Sequence[Statistic],
        statement: AnalyzeStatement,
        stored: tuple[Store, TaskStore, BlockFilesCache],
    ) -> None:
        packed, self._failed = pickle_statistics(statistics)
        self._statistics = [one for one in statistics if one.name not in self._failed]
        self._facts = facts
        wanted = frozenset((one.name, one.version) for one in self._statistics)
        self._request = replace(request, statistics=wanted)
        self._identity = facts.identity
        self._keep = statement.settings["spark.metastore.snapshots.keep"]
        self._options = _options(statement.settings)
        self._settings = {
            **BLOCK_SETTINGS,
            "histogram_bins": self._options.bins,
            "histogram_kind": self._options.kind,
            "frequencies_top": self._options.top,
        }
        self._store, place, self._indexed = stored
        files = {file.path: file for file in facts.files}
        self._jobs = ValueJobs(spark.sparkContext, place, files, facts.local, field_ids=facts.field_ids)
        destination = BlockDestination(place, self._identity, self._settings, _BUDGET, packed)
        self._ranking = RanksExtra(RankSort(spark, facts, place), request, statement.ranks, self._store)
        self._distribution = ValueIndexExtra(spark, facts, request, statement.distribution, self._store)
        self._progress = progress
        self._runner = BlockComputation(spark, facts, self._store, destination, progress)
        self._outcome = ComputeResult()
        self._coverage = Coverage([], facts.files)
        self._repair = RepairPlan(self._store, facts, asked=statement.repair)
        self._over: frozenset[str] | None = None
        self._level_objects = 0
        self._committed = False

    def until_current(self) -> None:
        """Compute and commit what is missing; again when other writers committed meanwhile."""
        stale = False
        for _ in range(_ROUNDS):
            try:
                stale = self._round(stale=stale)
            except BlockDamageError as damage:
                _LOG.warning("block %s is computed again: %s", damage.block, damage.reason)
                self._repair.add([damage.block])
                stale = True
            if not stale:
                return
        raise AnalyzeFailed(self._facts.name, "other writers kept changing its statistics", "Try again later.")

    def _round(self, *, stale: bool) -> bool:
        """Do one round; tell whether another one is needed."""
        manifest = self._store.read()
        if self._over is None:
            self._over = frozenset({manifest.table.uuid} if manifest else ())
        if manifest is not None:
            refuse_other_table(manifest, self._identity, self._over)
        if manifest is not None and manifest.table.uuid != self._identity.uuid:
            manifest = None
        if manifest is not None:
            manifest = self._examined(manifest)
        base = self._repair.sound(manifest) if manifest else []
        self._cover(base)
        new = [] if self._repair.asked else self._adopt(manifest)  # they may name the details that are damaged
        for request in (self._request, *self._repair.requests(manifest, self._request)):
            self._cover([*base, *new])
            new += self._compute(request)
        if not new and not stale and not self._repair.damage and self._is_current(manifest):
            broken = self._broken_blocks()
            if broken:
                _LOG.warning("blocks %s are computed again: objects of theirs are not there", ", ".join(sorted(broken)))
                self._repair.add(broken)
                return True
            if manifest is None or not self._store.absent(list_snapshot_objects(manifest.snapshots[-1])):
                return False
            _LOG.warning("the table level is written again: objects of it are not there")
        self._cover([*base, *new])
        return self._commit(frozenset(block.id for block in base), new, manifest)

    def _examined(self, manifest: Manifest) -> Manifest:
        """What is sound of a manifest, where damage is looked for; what this snapshot's entry lost is wanted again."""
        snapshot = snapshot_id(self._facts)
        sound = self._repair.examined(manifest, snapshot)
        lost = self._repair.damaged_entry(manifest, snapshot)
        if lost is not None:
            self._ranking.restore(lost)
            self._distribution.restore(lost)
        return sound

    def _cover(self, blocks: Sequence[Block]) -> None:
        self._coverage = Coverage(self._indexed.of(blocks), self._facts.files)

    def _adopt(self, manifest: Manifest | None) -> list[Block]:
        """Find blocks that a killed ANALYZE finished and nobody has committed."""
        coverage = self._coverage

        def wanted(block: Block, files: pa.Table) -> bool:
            gains = coverage.gains(block, files, self._facts.columns, self._request.statistics)
            return gains and not self._repair.is_damaged(block)

        return find_orphan_blocks(self._store, self._identity, manifest, settings=self._settings, wanted=wanted)

    def _compute(self, request: AnalyzeRequest) -> list[Block]:
        work = self._coverage.missing(request)
        if work:
            self._store.ensure_writable()
        try:
            outcome = self._runner.run(work, request.depth)
        except SPARK_JOB_ERRORS as failure:
            cause = find_cause(failure)
            raise AnalyzeFailed(self._facts.name, cause, _NO_MODULE if "No module named" in cause else "") from failure
        self._outcome += outcome
        return list(outcome.blocks)

    def _is_current(self, manifest: Manifest | None) -> bool:
        snapshots = manifest.snapshots if manifest else ()
        # The last entry is the one that readers without a catalog take: a rollback has to make it the last one again.
        entry = snapshots[-1] if snapshots else None
        covered = sum(1 for file in self._facts.files if self._coverage.holds(file))
        return (
            entry is not None
            and entry.id == snapshot_id(self._facts)
            and entry.columns == self._facts.columns
            and entry.files == covered
            and self._ranking.is_current(entry)
            and self._distribution.is_current(entry)
            and self._options.algorithm in (AUTO, entry.frequencies_asked)
        )

    def _broken_blocks(self) -> set[str]:
        """Name the blocks of live files whose objects are missing or have another length."""
        used = {
            indexed.block.id: list_block_objects(indexed)
            for indexed in self._coverage.blocks
            if any(file.key in indexed.ordinals for file in self._facts.files)
        }
        absent = self._store.absent({name: length for objects in used.values() for name, length in objects.items()})
        return {block for block, objects in used.items() if not absent.isdisjoint(objects)}

    def _commit(self, base: frozenset[str], new: Sequence[Block], manifest: Manifest | None) -> bool:
        instead = self._repair.instead(manifest, self._coverage)
        self._progress.begin("merging")
        try:
            level = write_table_level(
                self._store,
                self._facts,
                self._coverage,
                self._options,
                self._statistics,
                self._distribution.asked_of(self._jobs, manifest, snapshot_id(self._facts)),
                manifest.nodes if manifest else (),
            )
        except SPARK_JOB_ERRORS as failure:
            raise AnalyzeFailed(self._facts.name, find_cause(failure)) from failure
        self._failed |= level.failed
        self._distribution.note(level.snapshot)
        self._progress.begin("writing")
        snapshot = replace(level.snapshot, ranks=self._ranking.of(manifest))
        wrong = self._repair.damage.objects
        change = ManifestChange(self._identity, tuple(new), instead, snapshot, self._settings, level.nodes, wrong)
        self._store.commit(self._identity, change, keep=self._keep, over=self._over)
        self._level_objects += level.objects
        self._committed = True
        return not change.base <= base | instead.keys() | self._repair.left

    def note_failures(self, failed: Mapping[str, str]) -> None:
        """Note user-defined statistics that failed, and why."""
        self._failed |= failed

    def _failures(self) -> tuple[Refusal, ...]:
        found = {**dict(reversed(self._outcome.failed)), **self._failed}
        own = tuple(Refusal(f"statistic {subject}", reason) for subject, reason in sorted(found.items()))
        asked = {**self._ranking.failed, **self._distribution.failed}
        return own + tuple(Refusal(*failure) for failure in sorted(asked.items()))

    def report(self, seconds: float) -> AnalyzeReport:
        """Describe what was done."""
        files = self._facts.files
        return AnalyzeReport(
            table=self._facts.name,
            format=self._facts.format,
            snapshot=snapshot_id(self._facts),
            files=sum(1 for file in files if self._coverage.holds(file)),
            files_read=self._outcome.files_read,
            files_total=len(files),
            rows=self._facts.live_rows,
            columns=self._coverage.columns(self._facts.columns),
            bytes_read=self._outcome.bytes_read,
            objects=self._outcome.objects + self._level_objects,
            committed=self._committed,
            refused=self._facts.refused + self._outcome.refused + self._failures() + self._repair.refusals(),
            seconds=seconds,
        )


def _options(settings: Mapping[str, Any]) -> TableLevelOptions:
    return TableLevelOptions(
        bins=settings["spark.metastore.histogram.bins"],
        kind=settings["spark.metastore.histogram.kind"],
        top=settings["spark.metastore.frequencies.top"],
        algorithm=settings["spark.metastore.frequencies.algorithm"],
        threshold=settings["spark.metastore.frequencies.threshold"],
    )
