"""Damaged statistics in one ANALYZE: they are dropped, and computed again where the table has the data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from metastore.adapters import refusals
from metastore.adapters.table_facts import Refusal
from metastore.errors import DamagedObject
from metastore.format.data_files import FileKey, read_file_keys
from metastore.store.block_files import DEPTHS
from metastore.store.block_merge import rewrite_block
from metastore.store.repair import LostStatistics, find_lost_statistics, list_lost_parts, repair_snapshot
from metastore.store.verification import Damage, find_damage
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.manifest import Block, Manifest, Snapshot
    from metastore.pipeline.request import AnalyzeRequest
    from metastore.store import Store
    from metastore.store.coverage import Coverage


_LOG = get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class KnownDamage:
    """Damage of the stored statistics, as far as this ANALYZE knows it, and the repairs so far.

    Attributes:
        is_repair: Whether all objects are read to find damage, and damaged blocks computed again at their own depth.
        findings: The result of that examination.
        examined: Digests of the manifests that were examined.
        blocks: Ids of the damaged blocks.
        skipped: Ids of the damaged blocks that are not computed again.
        entries: The lost parts of snapshots' entries by snapshot id; None if all of the entry is lost.
        unrepaired: Statistics that cannot be computed again, such as those of removed files, by the id of their block.
        rewritten: New blocks that replace blocks whose zones were damaged, by the ids of the old ones.
    """

    is_repair: bool = False
    findings: Damage = field(default_factory=Damage)
    examined: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()
    entries: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    unrepaired: Mapping[str, LostStatistics] = field(default_factory=dict)
    rewritten: Mapping[str, Block] = field(default_factory=dict)

    def with_blocks(self, blocks: Iterable[str]) -> KnownDamage:
        """Add the ids of damaged blocks."""
        return replace(self, blocks=self.blocks.union(blocks))

    def list_blocks_to_repair(self, manifest: Manifest) -> list[Block]:
        """List the damaged blocks of a manifest that have to be computed again."""
        to_repair = self.blocks - self.skipped
        return [block for block in manifest.blocks if block.id in to_repair]


def examine_manifest(damage: KnownDamage, store: Store, manifest: Manifest, snapshot: str) -> KnownDamage:
    """Find the damage of a manifest, once, if the statement is a repair."""
    if not damage.is_repair or manifest.digest in damage.examined:
        return damage
    findings = find_damage(store, manifest)
    entries = dict(damage.entries)
    for entry in manifest.snapshots:
        if _is_damaged(entry, findings.objects):
            entries[entry.id] = list_lost_parts(entry, findings.objects)
    entries.pop(snapshot, None)  # it is computed again
    return replace(
        damage.with_blocks(findings.blocks),
        findings=findings,
        examined=damage.examined | {manifest.digest},
        entries=entries,
    )


def drop_damaged_parts(damage: KnownDamage, manifest: Manifest) -> Manifest:
    """Return the manifest without damaged objects of its snapshots and groups."""
    damaged = damage.findings.objects
    return replace(
        manifest,
        snapshots=repair_entries(manifest.snapshots, damaged),
        nodes=tuple(ref for ref in manifest.nodes if ref.name not in damaged),
    )


def repair_entries(entries: Sequence[Snapshot], damaged: Collection[str]) -> tuple[Snapshot, ...]:
    """Remove damaged objects from entries, and entries of which nothing remains."""
    repaired = [repair_snapshot(entry, damaged) for entry in entries]
    return tuple(filter(None, repaired))


def find_damaged_entry(damage: KnownDamage, manifest: Manifest, snapshot: str) -> Snapshot | None:
    """Return a snapshot's entry if some of its objects are damaged, else None."""
    for entry in manifest.snapshots:
        if entry.id == snapshot and _is_damaged(entry, damage.findings.objects):
            return entry
    return None


def _is_damaged(entry: Snapshot, damaged: Collection[str]) -> bool:
    return repair_snapshot(entry, damaged) != entry


def skip_deeper_blocks(damage: KnownDamage, manifest: Manifest, depth: str) -> KnownDamage:
    """Skip damaged blocks that need deeper reading than the statement, unless the statement is a repair."""
    if damage.is_repair:
        return replace(damage, skipped=frozenset())
    deeper = [block.id for block in manifest.blocks if DEPTHS[block.computed] > DEPTHS[depth]]
    return replace(damage, skipped=damage.blocks.intersection(deeper))


def make_repair_requests(
    damage: KnownDamage, store: Store, facts: TableFacts, manifest: Manifest, request: AnalyzeRequest
) -> list[AnalyzeRequest]:
    """Request the columns and live data files of each damaged block again."""
    return [_request_block(store, facts, block, request) for block in damage.list_blocks_to_repair(manifest)]


def _request_block(store: Store, facts: TableFacts, block: Block, request: AnalyzeRequest) -> AnalyzeRequest:
    keys = {column.key for column in facts.resolve_block(block).columns}
    return replace(
        request,
        depth=block.computed,
        columns=tuple(column for column in facts.columns if column.key in keys),
        files=_select_files(store, facts, block),
    )


def _select_files(store: Store, facts: TableFacts, block: Block) -> tuple[DataFile, ...]:
    """Return the live data files of a block; all of the table if the block's list of files is damaged."""
    try:
        listed = set(read_file_keys(store.get(block.files, FileKey._fields)))
    except DamagedObject:
        _LOG.warning("the list of files of block %s is damaged: it may have held any", block.id)
        return facts.files
    return tuple(file for file in facts.files if file.key in listed)


def rewrite_zones(damage: KnownDamage, store: Store, manifest: Manifest, blocks: Sequence[Block]) -> KnownDamage:
    """Write new blocks in place of those whose zones are damaged."""
    rewritten = dict(damage.rewritten)
    for block in blocks:
        if block.id in damage.findings.zones:
            rewritten[block.id] = rewrite_block(manifest, block, store)
    return replace(damage, rewritten=rewritten)


def note_lost_statistics(
    damage: KnownDamage, store: Store, facts: TableFacts, manifest: Manifest, coverage: Coverage
) -> KnownDamage:
    """Note the statistics in damaged blocks of a manifest that cannot be computed again."""
    unrepaired = dict(damage.unrepaired)
    for block in damage.list_blocks_to_repair(manifest):
        lost = find_lost_statistics(store, manifest, facts.resolve_block(block), coverage)
        if lost is not None:
            unrepaired[block.id] = lost
    return replace(damage, unrepaired=unrepaired)


def find_replacements(damage: KnownDamage, manifest: Manifest, coverage: Coverage) -> Mapping[str, Block | None]:
    """Map the ids of blocks to the blocks that replace them, or to None to remove them."""
    redundant = coverage.find_redundant_blocks()
    replacements: dict[str, Block | None] = dict.fromkeys(redundant)
    for old, new in damage.rewritten.items():
        replacements[old] = None if new.id in redundant else new
    for block in damage.list_blocks_to_repair(manifest):
        replacements[block.id] = None
    return replacements


def list_refusals(damage: KnownDamage) -> tuple[Refusal, ...]:
    """List the statistics that were not computed again, each with the reason."""
    refused = [Refusal(f"block {block}", refusals.DAMAGED) for block in sorted(damage.skipped)]
    for lost in damage.unrepaired.values():
        reason = refusals.describe_lost_files(lost.files, lost.columns)
        refused.append(Refusal(refusals.EARLIER, reason))
    for snapshot, parts in damage.entries.items():
        reason = _explain_loss(parts)
        refused.append(Refusal(f"snapshot {snapshot}", reason))
    return tuple(refused)


def _explain_loss(parts: Sequence[str] | None) -> str:
    return refusals.SNAPSHOT_DAMAGED if parts is None else refusals.describe_lost_parts(parts)
