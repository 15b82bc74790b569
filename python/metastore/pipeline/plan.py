"""What an ANALYZE is going to do: read from the table and its statistics, before anything is computed or written."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from metastore.format.manifest import FILES, FULL, Block, Manifest
from metastore.pipeline.compute import ComputeResult
from metastore.pipeline.repair_plan import (
    KnownDamage,
    drop_damaged_parts,
    examine_manifest,
    find_damaged_entry,
    leave_deeper_blocks,
    make_repair_requests,
)
from metastore.store.block_files import DEPTHS, column_keys, list_block_objects
from metastore.store.coverage import Coverage, FileKnowledge, union_columns
from metastore.store.repair import find_orphan_blocks
from metastore.table_level.list_reduction import AUTO
from metastore.table_level.snapshot_level import list_snapshot_objects, snapshot_id
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from metastore.adapters.table_facts import DataFile
    from metastore.format.data_files import FileKey
    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column
    from metastore.pipeline.extras import Extra
    from metastore.pipeline.plan_inputs import PlanInputs
    from metastore.pipeline.request import AnalyzeRequest


_LOG = get_logger(__name__)


@dataclass(frozen=True)
class MissingStatistics:
    """Files that miss the same columns.

    Attributes:
        depth: How deep they are to be computed.
        columns: What to compute; none where files are only to be listed.
        is_listed: Whether some block lists the files already.
    """

    depth: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    is_listed: bool


@dataclass(frozen=True)
class RoundState:
    """What an ANALYZE has learned and done so far.

    Attributes:
        damage: What of the stored statistics is damaged.
        extras: What is wanted besides statistics.
        over: Ids of the tables whose statistics may be replaced; None before the first manifest was read.
        is_stale: Whether the newest manifest lacks something, whatever it says.
        result: What was computed.
        failed: User-defined statistics that failed, and why.
        objects: Objects of the table level that were written.
        is_committed: Whether a manifest was written.
        coverage: What the statistics cover in the end.
    """

    damage: KnownDamage = field(default_factory=KnownDamage)
    extras: tuple[Extra, ...] = ()
    over: frozenset[str] | None = None
    is_stale: bool = False
    result: ComputeResult = field(default_factory=ComputeResult)
    failed: Mapping[str, str] = field(default_factory=dict)
    objects: int = 0
    is_committed: bool = False
    coverage: Coverage | None = None

    @classmethod
    def of(cls, inputs: PlanInputs) -> RoundState:
        """Nothing learned, nothing done."""
        damage = KnownDamage(is_looked_for=inputs.is_repair)
        return cls(damage, inputs.extras, failed=inputs.user_statistics.failed)

    def with_damage(self, blocks: Iterable[str]) -> RoundState:
        """Know of damaged blocks: what they held is missing."""
        return replace(self, damage=self.damage.with_blocks(blocks), is_stale=True)


@dataclass(frozen=True)
class Plan:
    """What one round of an ANALYZE does.

    Attributes:
        manifest: The sound parts of the manifest that it begins with.
        base: The blocks that stay.
        adopted: Blocks that a killed ANALYZE finished and nobody has committed.
        coverage: What these blocks cover.
        work: What is to be computed.
        reason: Why there is to be a commit even where nothing is computed; None if there need not be one.
        state: What is known after planning.
    """

    manifest: Manifest | None
    base: tuple[Block, ...]
    adopted: tuple[Block, ...]
    coverage: Coverage
    work: tuple[MissingStatistics, ...]
    reason: str | None
    state: RoundState


def make_plan(inputs: PlanInputs, state: RoundState, manifest: Manifest | None) -> Plan:
    """Decide what to do about a manifest: nothing is written, and no job started."""
    if manifest is not None and manifest.table.uuid != inputs.facts.identity.uuid:
        manifest = None
    sound = manifest
    if manifest is not None:
        state = _examine(inputs, state, manifest)
        sound = drop_damaged_parts(state.damage, manifest)
    damage = leave_deeper_blocks(state.damage, sound, inputs.request.depth)
    base = tuple(block for block in sound.blocks if block.id not in damage.blocks) if sound else ()
    adopted = _find_adoptable_blocks(inputs, damage, sound, inputs.cover(base))
    coverage = inputs.cover([*base, *adopted])
    state = replace(state, damage=damage)
    reason = "blocks of a killed ANALYZE" if adopted else _find_reason(inputs, state, sound, coverage)
    if reason is None:
        broken = _find_broken_blocks(inputs, coverage)
        if broken:
            _LOG.warning("blocks %s are computed again: objects of theirs are not there", ", ".join(sorted(broken)))
            return make_plan(inputs, state.with_damage(broken), manifest)
        if sound and inputs.store.find_absent(list_snapshot_objects(sound.snapshots[-1])):
            reason = "objects of the table level are not there"
            _LOG.warning("the table level is written again: %s", reason)
    repairs = make_repair_requests(damage, inputs.store, inputs.facts, sound, inputs.request)
    work = plan_work(coverage, [inputs.request, *inputs.request.of_expressions(), *repairs])
    return Plan(sound, base, adopted, coverage, work, reason, state)


def _examine(inputs: PlanInputs, state: RoundState, manifest: Manifest) -> RoundState:
    """Look for damage; what this snapshot's entry lost is wanted again."""
    snapshot = snapshot_id(inputs.facts)
    damage = examine_manifest(state.damage, inputs.store, manifest, snapshot)
    lost = find_damaged_entry(damage, manifest, snapshot)
    extras = state.extras if lost is None else tuple(extra.with_lost(lost) for extra in state.extras)
    return replace(state, damage=damage, extras=extras)


def _find_adoptable_blocks(
    inputs: PlanInputs, damage: KnownDamage, manifest: Manifest | None, coverage: Coverage
) -> tuple[Block, ...]:
    """Find blocks that a killed ANALYZE finished and nobody has committed."""
    if damage.is_looked_for:  # they may name the details that are damaged
        return ()

    def wanted(block: Block, files: pa.Table) -> bool:
        mapping = inputs.facts.name_mapping
        block = block if mapping is None else mapping.resolve_block(block)
        gains = coverage.adds_knowledge(block, files, inputs.facts.columns, inputs.request.statistics)
        return gains and block.id not in damage.blocks

    settings = dict(inputs.block_settings)
    return tuple(find_orphan_blocks(inputs.store, inputs.facts.identity, manifest, settings=settings, wanted=wanted))


def _find_reason(inputs: PlanInputs, state: RoundState, manifest: Manifest | None, coverage: Coverage) -> str | None:
    """Return the reason to write the table level again though no block is missing, or None."""
    if state.is_stale or state.damage.found:
        return "damage, or a commit of another writer"
    entry = _find_current_entry(inputs, manifest)
    if entry is None:
        return "another snapshot"
    has_new_counts = inputs.deleted is not None and bool(inputs.deleted.counted)
    analyzed_files = [file for file in inputs.facts.files if coverage.holds(file)]
    if has_new_counts or entry.files != len(analyzed_files):
        return "data files or their deleted rows are known that were not"
    if not _has_all_extras(inputs, state, entry):
        return "something that is wanted besides the statistics of columns is not there"
    if inputs.options.algorithm not in (AUTO, entry.frequencies_asked):
        return "value counts of another kind are wanted"
    return None


def _find_current_entry(inputs: PlanInputs, manifest: Manifest | None) -> Snapshot | None:
    """Return the manifest's last entry if it is of the table's snapshot and columns."""
    if manifest is None or not manifest.snapshots:
        return None
    # Readers without a catalog take the last entry: a rollback has to make it the last one again.
    entry = manifest.snapshots[-1]
    mapping = inputs.facts.name_mapping
    if mapping is not None:
        entry = mapping.resolve_snapshot(entry)
    is_current = entry.id == snapshot_id(inputs.facts) and entry.columns == inputs.facts.columns
    return entry if is_current else None


def _has_all_extras(inputs: PlanInputs, state: RoundState, entry: Snapshot) -> bool:
    stored_keys = {column.key for column in entry.expressions}
    has_expressions = all(column.key in stored_keys for column in inputs.request.expressions)
    return has_expressions and all(extra.is_current(entry) for extra in state.extras)


def _find_broken_blocks(inputs: PlanInputs, coverage: Coverage) -> set[str]:
    """Name the blocks of live files whose objects are missing or have another length."""
    used = {block_files.block.id: list_block_objects(block_files) for block_files in coverage.live_blocks}
    absent = inputs.store.find_absent({name: length for objects in used.values() for name, length in objects.items()})
    return {block for block, objects in used.items() if not absent.isdisjoint(objects)}


def plan_work(coverage: Coverage, requests: Sequence[AnalyzeRequest]) -> tuple[MissingStatistics, ...]:
    """Find what requests ask for and no block holds; what a request before is going to compute counts as there."""
    knowledge = {key: tuple(known) for key, known in coverage.knowledge.items()}
    work: list[MissingStatistics] = []
    for request in requests:
        for part in find_missing(knowledge, request):
            planned = FileKnowledge(DEPTHS[part.depth], column_keys(part.columns), request.statistics)
            knowledge |= {file.key: (*knowledge[file.key], planned) for file in part.files}
            work.append(part)
    return tuple(work)


def find_missing(
    knowledge: Mapping[FileKey, tuple[FileKnowledge, ...]], request: AnalyzeRequest
) -> list[MissingStatistics]:
    """Find what a request asks for and is not known, files that miss the same together."""
    groups: dict[tuple[FileKnowledge, ...], list[DataFile]] = defaultdict(list)
    for file in request.files:
        groups[knowledge[file.key]].append(file)
    work: dict[tuple[tuple[Column, ...], bool], list[DataFile]] = defaultdict(list)
    for known, files in groups.items():
        columns = _find_unknown_columns(known, request)
        if columns or not known:
            work[columns, bool(known)] += files
    return [
        MissingStatistics(request.depth if columns else FILES, columns, tuple(files), is_listed)
        for (columns, is_listed), files in work.items()
    ]


def _find_unknown_columns(knowledge: Sequence[FileKnowledge], request: AnalyzeRequest) -> tuple[Column, ...]:
    if request.depth == FILES:
        return ()
    known = union_columns(knowledge, DEPTHS[request.depth])
    if request.depth == FULL:
        for one in request.statistics:
            known &= union_columns((some for some in knowledge if one in some.statistics), DEPTHS[FULL])
    return tuple(column for column in request.columns if (column.key, column.type) not in known)
