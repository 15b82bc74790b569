"""Damage that one ANALYZE meets or looks for: what is computed again, what is kept, what is lost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from metastore.adapters import refusals
from metastore.adapters.table_facts import Refusal, TableFacts
from metastore.errors import DamagedObject
from metastore.format.data_files import FileKey, read_file_keys
from metastore.store.block_files import DEPTHS
from metastore.store.repair import Salvage, list_lost_parts, repair_snapshot, salvage_block
from metastore.store.verification import Damage, find_damage
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.format.manifest import Block, Manifest, Snapshot
    from metastore.pipeline.request import AnalyzeRequest
    from metastore.store import Store
    from metastore.store.coverage import Coverage


_LOG = get_logger(__name__)


@dataclass(frozen=True)
class KnownDamage:
    """What of the stored statistics is damaged, as far as it is known, and what was put in its place.

    Attributes:
        is_looked_for: Whether all is read to find damage, and computed again as deep as it was.
        found: What was found where it was looked for.
        examined: Digests of the manifests that were examined.
        blocks: Ids of the damaged blocks.
        left: Ids of those that stay as they are.
        entries: The lost parts of snapshots' entries; None: all of an entry.
        salvaged: What was left of damaged blocks, by their ids.
        rewritten: Blocks of which only zones were damaged to the same without them.
    """

    is_looked_for: bool = False
    found: Damage = field(default_factory=Damage)
    examined: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    entries: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    salvaged: Mapping[str, Salvage] = field(default_factory=dict)
    rewritten: Mapping[str, Block] = field(default_factory=dict)

    def with_blocks(self, blocks: Iterable[str]) -> KnownDamage:
        """Take more blocks, by their ids, for damaged."""
        return replace(self, blocks=self.blocks.union(blocks))


def examine_manifest(damage: KnownDamage, store: Store, manifest: Manifest, snapshot: str) -> KnownDamage:
    """Look for damage where that is asked for, once in every manifest."""
    if not damage.is_looked_for or manifest.digest in damage.examined:
        return damage
    found = find_damage(store, manifest)
    lost = ((entry.id, list_lost_parts(entry, found.objects)) for entry in manifest.snapshots)
    entries = {**damage.entries, **{name: parts for name, parts in lost if parts != ()}}
    entries.pop(snapshot, None)
    examined = damage.examined | {manifest.digest}
    return replace(damage.with_blocks(found.blocks), found=found, examined=examined, entries=entries)


def drop_damaged_parts(damage: KnownDamage, manifest: Manifest) -> Manifest:
    """A manifest without damaged objects of its snapshots and groups."""
    wrong = damage.found.objects
    if not wrong:
        return manifest
    entries = (repair_snapshot(entry, wrong) for entry in manifest.snapshots)
    nodes = tuple(ref for ref in manifest.nodes if ref.name not in wrong)
    return replace(manifest, snapshots=tuple(one for one in entries if one), nodes=nodes)


def find_damaged_entry(damage: KnownDamage, manifest: Manifest, snapshot: str) -> Snapshot | None:
    """The entry of a snapshot where objects of it are damaged."""
    same = (entry for entry in manifest.snapshots if entry.id == snapshot)
    return next((entry for entry in same if repair_snapshot(entry, damage.found.objects) != entry), None)


def leave_deeper_blocks(damage: KnownDamage, manifest: Manifest | None, depth: str) -> KnownDamage:
    """Leave damaged blocks that would need deeper reading than the statement, unless damage is looked for."""
    blocks = () if manifest is None or damage.is_looked_for else manifest.blocks
    deeper = (block.id for block in blocks if block.id in damage.blocks and DEPTHS[block.computed] > DEPTHS[depth])
    return replace(damage, left=frozenset(deeper))


def make_repair_requests(
    damage: KnownDamage, store: Store, facts: TableFacts, manifest: Manifest | None, request: AnalyzeRequest
) -> list[AnalyzeRequest]:
    """Ask again for what damaged blocks held: their columns as the table has them now, of live data files."""
    return [_request_block(store, facts, block, request) for block in _lost_blocks(damage, manifest)]


def _lost_blocks(damage: KnownDamage, manifest: Manifest | None) -> list[Block]:
    wanted = damage.blocks - damage.left
    return [block for block in manifest.blocks if block.id in wanted] if manifest else []


def _request_block(store: Store, facts: TableFacts, block: Block, request: AnalyzeRequest) -> AnalyzeRequest:
    if facts.name_mapping is not None:
        block = facts.name_mapping.resolve_block(block)
    keys = {column.key for column in block.columns}
    columns = tuple(column for column in facts.columns if column.key in keys)
    files = facts.files
    try:
        listed = set(read_file_keys(store.get(block.files, FileKey._fields)))
        files = tuple(file for file in files if file.key in listed)
    except DamagedObject:
        _LOG.warning("the list of files of block %s is damaged: it may have held any", block.id)
    return replace(request, depth=block.computed, columns=columns, files=files)


def rewrite_zones(damage: KnownDamage, store: Store, manifest: Manifest | None, blocks: Sequence[Block]) -> KnownDamage:
    """Write blocks again of which only zones are damaged."""
    if manifest is None:
        return damage
    hurt = [block for block in blocks if block.id in damage.found.zones - damage.rewritten.keys()]
    wrong = damage.found.objects
    found = {block.id: salvage_block(store, manifest, block, lambda _: None, wrong=wrong).block for block in hurt}
    whole = {name: block for name, block in found.items() if block is not None}
    return replace(damage, rewritten={**damage.rewritten, **whole})


def salvage_blocks(damage: KnownDamage, store: Store, manifest: Manifest | None, coverage: Coverage) -> KnownDamage:
    """Write what is left of damaged blocks; those that were examined are not verified again."""
    found = dict(damage.salvaged)
    for block in _lost_blocks(damage, manifest):
        if manifest is not None and block.id not in found:
            wrong = damage.found.objects if block.id in damage.found.blocks | damage.found.zones else None
            elsewhere = coverage.columns_known(DEPTHS[block.computed], frozenset(block.statistics.items()))
            found[block.id] = salvage_block(store, manifest, block, elsewhere, wrong=wrong)
    return replace(damage, salvaged=found)


def find_replacements(damage: KnownDamage, manifest: Manifest | None, coverage: Coverage) -> Mapping[str, Block | None]:
    """What takes the place of blocks, by their ids: what is left of them, or nothing."""
    redundant = coverage.find_redundant_blocks()
    found: dict[str, Block | None] = dict.fromkeys(redundant)
    found |= {old: None if new.id in redundant else new for old, new in damage.rewritten.items()}
    return found | {block.id: damage.salvaged[block.id].block for block in _lost_blocks(damage, manifest)}


def list_refusals(damage: KnownDamage) -> tuple[Refusal, ...]:
    """What could not be computed again."""
    left = (Refusal(f"block {block}", refusals.DAMAGED) for block in sorted(damage.left))
    lost = [one.lost for one in damage.salvaged.values() if one.lost is not None]
    earlier = (
        Refusal(refusals.EARLIER, refusals.describe_lost_files(one.files, one.columns, one.kinds)) for one in lost
    )
    entries = (
        Refusal(f"snapshot {name}", refusals.SNAPSHOT_DAMAGED if parts is None else refusals.describe_lost_parts(parts))
        for name, parts in damage.entries.items()
    )
    return (*left, *earlier, *entries)
