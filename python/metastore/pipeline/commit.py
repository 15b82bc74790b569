"""Writes the table level and commits it together with new blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metastore.adapters.spark_errors import raise_as_ours
from metastore.format.manifest import Block, Manifest, Snapshot, TableIdentity
from metastore.pipeline.repair_plan import find_replacements, note_lost_statistics, repair_entries, rewrite_zones
from metastore.table_level.snapshot_level import TableLevel, is_entry_of, write_table_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.pipeline.plan import Plan, RoundState
    from metastore.pipeline.plan_inputs import PlanInputs
    from metastore.spark_jobs.progress import Progress
    from metastore.store.coverage import Coverage


def newest_versions(blocks: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the version of each statistic in the last block that has it."""
    versions: dict[str, int] = {}
    for statistics in blocks:
        versions.update(statistics)
    return versions


@dataclass(kw_only=True)
class ManifestChange:
    """A commit, as a change of the newest manifest.

    Attributes:
        blocks: New blocks.
        replacements: Id of an old block to the block that replaces it; None removes the old block.
        damaged: Names of damaged objects.
        base: Ids of the blocks in the manifest to which the change was applied last.
    """

    identity: TableIdentity
    blocks: tuple[Block, ...]
    replacements: Mapping[str, Block | None]
    snapshot: Snapshot
    settings: Mapping[str, Any]
    nodes: tuple[ObjectRef, ...] = ()
    damaged: frozenset[str] = frozenset()
    base: frozenset[str] = frozenset()

    def __call__(self, old: Manifest | None) -> Manifest:
        """Apply the change."""
        manifest = old or Manifest(table=self.identity)
        self.base = frozenset(block.id for block in manifest.blocks)
        blocks = (*self._replace_blocks(manifest.blocks), *self._select_new_blocks())
        entries = repair_entries(manifest.snapshots, self.damaged)
        other_entries = [entry for entry in entries if entry.id != self.snapshot.id]
        return replace(
            manifest,
            blocks=blocks,
            snapshots=(*other_entries, self._with_ranks(entries)),
            settings=self._with_versions(blocks),
            nodes=self.nodes,
        )

    def _with_versions(self, blocks: Sequence[Block]) -> dict[str, Any]:
        """Return the settings with the versions of user-defined statistics, if there are any."""
        settings = dict(self.settings)
        versions = newest_versions(block.statistics for block in blocks)
        if versions:
            settings["statistics"] = versions
        return settings

    def _replace_blocks(self, blocks: Sequence[Block]) -> list[Block]:
        replaced = [self.replacements.get(block.id, block) for block in blocks]
        return [block for block in replaced if block is not None]

    def _select_new_blocks(self) -> list[Block]:
        present = self.base | self.replacements.keys()
        return [block for block in self.blocks if block.id not in present]

    def _with_ranks(self, entries: Sequence[Snapshot]) -> Snapshot:
        """Return the snapshot's entry with the ranks that another writer committed for it meanwhile."""
        snapshot = self.snapshot
        if snapshot.ranks:
            return snapshot
        for entry in entries:
            if (entry.id, entry.columns) == (snapshot.id, snapshot.columns):
                return replace(snapshot, ranks=entry.ranks)
        return snapshot


def commit_plan(
    inputs: PlanInputs, plan: Plan, state: RoundState, computed: Sequence[Block], progress: Progress
) -> RoundState:
    """Write the table level and commit it; the returned state says whether other writers committed meanwhile."""
    damage = rewrite_zones(state.damage, inputs.store, plan.manifest, plan.base)
    base = [damage.rewritten.get(block.id, block) for block in plan.base]
    new = (*plan.adopted, *computed)
    coverage = inputs.cover([*base, *new])
    damage = note_lost_statistics(damage, inputs.store, inputs.facts, plan.manifest, coverage)
    replacements = find_replacements(damage, plan.manifest, coverage)
    progress.begin("merging")
    level = _write_level(inputs, plan, state, coverage)
    progress.begin("writing")
    extras = tuple(extra.finish(level.snapshot, plan.manifest.snapshots) for extra in state.extras)
    snapshot = level.snapshot
    for extra in extras:
        snapshot = extra.add_to(snapshot)
    replaced = replacements.keys() | damage.skipped
    change = ManifestChange(
        identity=inputs.facts.identity,
        blocks=new,
        replacements=replacements,
        snapshot=snapshot,
        settings=inputs.block_settings,
        nodes=level.nodes,
        damaged=damage.findings.objects,
    )
    inputs.store.commit(change.identity, change, keep=inputs.snapshots_to_keep, replaceable=state.replaceable)
    return replace(
        state,
        damage=damage,
        extras=extras,
        is_stale=not change.base <= replaced.union(block.id for block in base),
        failed={**state.failed, **level.failed},
        objects=state.objects + level.objects,
        is_committed=True,
        coverage=coverage,
    )


def _write_level(inputs: PlanInputs, plan: Plan, state: RoundState, coverage: Coverage) -> TableLevel:
    jobs = inputs.jobs
    if jobs is not None:
        for extra in state.extras:
            jobs = extra.extend_jobs(jobs, plan.manifest.snapshots)
    options = replace(inputs.options, expressions=_list_expressions(inputs, plan.manifest))
    with raise_as_ours(inputs.facts.name):
        return write_table_level(
            inputs.store,
            inputs.facts,
            coverage,
            options,
            statistics=inputs.user_statistics.statistics,
            jobs=jobs,
            nodes=plan.manifest.nodes,
        )


def _list_expressions(inputs: PlanInputs, manifest: Manifest) -> tuple[Column, ...]:
    """Return the requested expressions, and others that are stored for this snapshot."""
    expressions = inputs.request.expressions
    requested: set[str] = set()
    for column in expressions:
        requested.update((column.key, column.name))
    stored = _list_stored_expressions(inputs.facts, manifest)
    additional = [column for column in stored if requested.isdisjoint((column.key, column.name))]
    return (*expressions, *additional)


def _list_stored_expressions(facts: TableFacts, manifest: Manifest) -> list[Column]:
    expressions: list[Column] = []
    for entry in map(facts.resolve_snapshot, manifest.snapshots):
        if is_entry_of(entry, facts):
            expressions += [column for column in entry.expressions if column.is_expression]
    return expressions
