"""Plans one round of an ANALYZE, before anything is computed or written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from metastore.pipeline.compute import ComputeResult
from metastore.pipeline.missing_statistics import MissingStatistics, plan_work
from metastore.pipeline.repair_plan import (
    KnownDamage,
    drop_damaged_parts,
    examine_manifest,
    find_damaged_entry,
    make_repair_requests,
    skip_deeper_blocks,
)
from metastore.store.block_files import list_block_objects
from metastore.store.repair import find_orphan_blocks
from metastore.table_level.list_reduction import AUTO
from metastore.table_level.snapshot_level import is_entry_of, list_snapshot_objects, snapshot_id
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from metastore.format.manifest import Block, Manifest, Snapshot
    from metastore.pipeline.extras import Extra
    from metastore.pipeline.plan_inputs import PlanInputs
    from metastore.store.coverage import Coverage


_LOG = get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class RoundState:
    """The knowledge and the work of an ANALYZE so far.

    Attributes:
        damage: The damage of the stored statistics.
        extras: The ranks and value indexes to make besides statistics.
        replaceable: Ids of the tables whose statistics may be replaced; None before the first manifest was read.
        is_stale: Whether another round has to commit: blocks are damaged, or another writer committed blocks meanwhile.
        result: The results of the tasks.
        failed: User-defined statistics that failed, and why.
        objects: The number of objects of the table level that were written.
        is_committed: Whether a manifest was written.
        coverage: The files and columns that the statistics cover in the end.
    """

    damage: KnownDamage = field(default_factory=KnownDamage)
    extras: tuple[Extra, ...] = ()
    replaceable: frozenset[str] | None = None
    is_stale: bool = False
    result: ComputeResult = field(default_factory=ComputeResult)
    failed: Mapping[str, str] = field(default_factory=dict)
    objects: int = 0
    is_committed: bool = False
    coverage: Coverage | None = None

    @classmethod
    def of(cls, inputs: PlanInputs) -> RoundState:
        """Return the state before the first round."""
        return cls(
            damage=KnownDamage(is_repair=inputs.is_repair),
            extras=inputs.extras,
            failed=inputs.user_statistics.failed,
        )

    def with_damage(self, blocks: Iterable[str]) -> RoundState:
        """Note damaged blocks, by their ids: another round has to replace them."""
        return replace(self, damage=self.damage.with_blocks(blocks), is_stale=True)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The work of one round of an ANALYZE.

    Attributes:
        manifest: The sound parts of the manifest that it begins with; empty before the first commit.
        base: The blocks that stay.
        adopted: Blocks that a killed ANALYZE finished and nobody has committed.
        coverage: The files and columns that these blocks cover.
        work: The statistics to compute.
        reason: The reason to commit even if nothing is computed, or None.
        state: The state after planning.
    """

    manifest: Manifest
    base: tuple[Block, ...]
    adopted: tuple[Block, ...]
    coverage: Coverage
    work: tuple[MissingStatistics, ...]
    reason: str | None
    state: RoundState


def make_plan(inputs: PlanInputs, state: RoundState, manifest: Manifest | None) -> Plan:
    """Decide what has to be computed and committed; this writes nothing and starts no job."""
    stored = inputs.facts.own_manifest(manifest)
    state = _examine(inputs, state, stored)
    sound = drop_damaged_parts(state.damage, stored)
    damage = skip_deeper_blocks(state.damage, sound, inputs.request.depth)
    state = replace(state, damage=damage)
    base = _select_sound_blocks(sound, damage)
    coverage = inputs.cover(base)
    adopted = _find_adoptable_blocks(inputs, damage, sound, coverage)
    if adopted:
        coverage = inputs.cover([*base, *adopted])
    reason = "blocks of a killed ANALYZE" if adopted else _find_reason(inputs, state, sound, coverage)
    if reason is None:
        broken = _find_broken_blocks(inputs, coverage)
        if broken:
            _LOG.warning("blocks %s are computed again: some of their objects are missing", ", ".join(sorted(broken)))
            return make_plan(inputs, state.with_damage(broken), manifest)
        reason = _find_missing_objects(inputs, sound)
    repairs = make_repair_requests(damage, inputs.store, inputs.facts, sound, inputs.request)
    requests = [inputs.request, *inputs.request.expression_requests(), *repairs]
    return Plan(
        manifest=sound,
        base=base,
        adopted=adopted,
        coverage=coverage,
        work=plan_work(coverage, requests),
        reason=reason,
        state=state,
    )


def _examine(inputs: PlanInputs, state: RoundState, manifest: Manifest) -> RoundState:
    """Look for damage; if this snapshot's entry is damaged, its ranks and value indexes are computed again."""
    snapshot = snapshot_id(inputs.facts)
    damage = examine_manifest(state.damage, inputs.store, manifest, snapshot)
    entry = find_damaged_entry(damage, manifest, snapshot)
    if entry is None:
        return replace(state, damage=damage)
    extras = tuple(extra.with_columns_of(entry) for extra in state.extras)
    return replace(state, damage=damage, extras=extras)


def _select_sound_blocks(manifest: Manifest, damage: KnownDamage) -> tuple[Block, ...]:
    return tuple(block for block in manifest.blocks if block.id not in damage.blocks)


def _find_adoptable_blocks(
    inputs: PlanInputs, damage: KnownDamage, manifest: Manifest, coverage: Coverage
) -> tuple[Block, ...]:
    """Find blocks that a killed ANALYZE finished and nobody has committed."""
    if damage.is_repair:  # these blocks may refer to the damaged details
        return ()

    def is_useful(block: Block, files: pa.Table) -> bool:
        if block.id in damage.blocks:
            return False
        resolved = inputs.facts.resolve_block(block)
        return coverage.adds_knowledge(resolved, files, inputs.facts.columns, inputs.request.statistics)

    settings = dict(inputs.block_settings)
    orphans = find_orphan_blocks(inputs.store, inputs.facts.identity, manifest, settings=settings, is_useful=is_useful)
    return tuple(orphans)


def _find_reason(inputs: PlanInputs, state: RoundState, manifest: Manifest, coverage: Coverage) -> str | None:
    """Return the reason to write the table level again though no block is missing, or None."""
    if state.is_stale or state.damage.findings:
        return "damage, or a commit of another writer"
    entry = _find_current_entry(inputs, manifest)
    if entry is None:
        return "another snapshot"
    if _has_new_counts(inputs, entry, coverage):
        return "new row counts of data files"
    if not _has_all_extras(inputs, state, entry):
        return "statistics of expressions, ranks or a value index are missing"
    if inputs.options.algorithm not in (AUTO, entry.frequencies_asked):
        return "value counts of another kind are wanted"
    return None


def _find_current_entry(inputs: PlanInputs, manifest: Manifest) -> Snapshot | None:
    """Return the manifest's last entry if it is of the table's snapshot and columns."""
    if not manifest.snapshots:
        return None
    # Readers without a catalog take the last entry: a rollback has to make it the last one again.
    entry = inputs.facts.resolve_snapshot(manifest.snapshots[-1])
    return entry if is_entry_of(entry, inputs.facts) else None


def _has_new_counts(inputs: PlanInputs, entry: Snapshot, coverage: Coverage) -> bool:
    """Return whether data files were analyzed, or their deleted rows counted, after the entry was written."""
    return bool(inputs.newly_counted) or entry.files != coverage.count_files()


def _has_all_extras(inputs: PlanInputs, state: RoundState, entry: Snapshot) -> bool:
    requested_keys = {column.key for column in inputs.request.expressions}
    stored_keys = {column.key for column in entry.expressions}
    if not requested_keys <= stored_keys:
        return False
    return all(extra.is_current(entry) for extra in state.extras)


def _find_broken_blocks(inputs: PlanInputs, coverage: Coverage) -> set[str]:
    """Return the ids of the blocks of live files whose objects are missing or have another length."""
    objects = {block_files.block.id: list_block_objects(block_files) for block_files in coverage.live_blocks}
    lengths: dict[str, int] = {}
    for block_objects in objects.values():
        lengths.update(block_objects)
    absent = inputs.store.find_absent(lengths)
    return {block for block, block_objects in objects.items() if not absent.isdisjoint(block_objects)}


def _find_missing_objects(inputs: PlanInputs, manifest: Manifest) -> str | None:
    """Return the reason to write the table level again if objects of the last entry are missing."""
    if not inputs.store.find_absent(list_snapshot_objects(manifest.snapshots[-1])):
        return None
    reason = "objects of the table level are missing"
    _LOG.warning("the table level is written again: %s", reason)
    return reason
