"""Writes the table level and commits it together with new blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metastore.adapters.spark_errors import raise_as_ours
from metastore.format.manifest import Block, Manifest, Snapshot, TableIdentity
from metastore.pipeline.repair_plan import find_replacements, rewrite_zones, salvage_blocks
from metastore.store.repair import repair_snapshot
from metastore.table_level.snapshot_level import TableLevel, snapshot_id, write_table_level

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.pipeline.plan import Plan, RoundState
    from metastore.pipeline.plan_inputs import PlanInputs
    from metastore.spark_jobs.progress import Progress
    from metastore.store.coverage import Coverage


def newest_versions(blocks: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The version of each statistic as the last block that has it was computed with."""
    return {name: version for statistics in blocks for name, version in statistics.items()}


@dataclass
class ManifestChange:
    """A commit as a change of whatever manifest is the newest.

    Attributes:
        instead: What takes the place of blocks, by their ids; None: nothing.
        base: Ids of the blocks that the manifest had when the change was applied last.
    """

    identity: TableIdentity
    blocks: tuple[Block, ...]
    instead: Mapping[str, Block | None]
    snapshot: Snapshot
    settings: Mapping[str, Any]
    nodes: tuple[ObjectRef, ...] = ()
    damaged: frozenset[str] = frozenset()
    base: frozenset[str] = frozenset()

    def __call__(self, old: Manifest | None) -> Manifest:
        """Apply the change."""
        start = old or Manifest(table=self.identity)
        self.base = frozenset(block.id for block in start.blocks)
        found = (self.instead.get(block.id, block) for block in start.blocks)
        kept = tuple(block for block in found if block is not None)
        added = tuple(block for block in self.blocks if block.id not in self.base | self.instead.keys())
        entries = [entry for one in start.snapshots if (entry := repair_snapshot(one, self.damaged)) is not None]
        others = (entry for entry in entries if entry.id != self.snapshot.id)
        snapshot = self._with_ranks(entries)
        own = newest_versions(block.statistics for block in kept + added)
        settings = {**self.settings, **({"statistics": own} if own else {})}
        return replace(start, blocks=kept + added, snapshots=(*others, snapshot), settings=settings, nodes=self.nodes)

    def _with_ranks(self, entries: Sequence[Snapshot]) -> Snapshot:
        """The entry with the ranks that another writer committed for the same snapshot meanwhile."""
        mine = self.snapshot
        same = (entry for entry in entries if (entry.id, entry.columns) == (mine.id, mine.columns))
        return mine if mine.ranks else replace(mine, ranks=next((entry.ranks for entry in same), ()))


def commit_plan(
    inputs: PlanInputs, plan: Plan, state: RoundState, computed: Sequence[Block], progress: Progress
) -> RoundState:
    """Write the table level of what is there now and commit it; the state says whether others committed meanwhile."""
    damage = rewrite_zones(state.damage, inputs.store, plan.manifest, plan.base)
    base = [damage.rewritten.get(block.id, block) for block in plan.base]
    new = (*plan.adopted, *computed)
    coverage = inputs.cover([*base, *new])
    damage = salvage_blocks(damage, inputs.store, plan.manifest, coverage)
    replacements = find_replacements(damage, plan.manifest, coverage)
    progress.begin("merging")
    level = _write_level(inputs, plan, state, coverage)
    progress.begin("writing")
    extras = tuple(extra.finish(level.snapshot, plan.manifest) for extra in state.extras)
    snapshot = level.snapshot
    for extra in extras:
        snapshot = extra.add_to(snapshot)
    identity, wrong = inputs.facts.identity, damage.found.objects
    change = ManifestChange(identity, new, replacements, snapshot, inputs.block_settings, level.nodes, wrong)
    inputs.store.commit(identity, change, keep=inputs.keep, over=state.over)
    return replace(
        state,
        damage=damage,
        extras=extras,
        is_stale=not change.base <= {block.id for block in base} | replacements.keys() | damage.left,
        failed={**state.failed, **level.failed},
        objects=state.objects + level.objects,
        is_committed=True,
        coverage=coverage,
    )


def _write_level(inputs: PlanInputs, plan: Plan, state: RoundState, coverage: Coverage) -> TableLevel:
    jobs, nodes = inputs.jobs, plan.manifest.nodes if plan.manifest else ()
    for extra in state.extras:
        jobs = jobs and extra.extend_jobs(jobs, plan.manifest)
    statistics = inputs.user_statistics.statistics
    options = replace(inputs.options, expressions=_list_expressions(inputs, plan.manifest))
    with raise_as_ours(inputs.facts.name):
        return write_table_level(inputs.store, inputs.facts, coverage, options, statistics, jobs, nodes)


def _list_expressions(inputs: PlanInputs, manifest: Manifest | None) -> tuple[Column, ...]:
    """The expressions that are wanted, and what the newest entry has of the same snapshot with the same columns."""
    wanted, facts = inputs.request.expressions, inputs.facts
    entries = manifest.snapshots if manifest else ()
    if facts.name_mapping is not None:
        entries = tuple(map(facts.name_mapping.resolve_snapshot, entries))
    same = (one for one in entries if (one.id, one.columns) == (snapshot_id(facts), facts.columns))
    taken = {name for column in wanted for name in (column.key, column.name)}
    stored = (column for entry in same for column in entry.expressions if column.is_expression)
    others = (column for column in stored if taken.isdisjoint((column.key, column.name)))
    return (*wanted, *others)
