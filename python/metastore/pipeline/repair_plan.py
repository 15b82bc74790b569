"""Damage that one ANALYZE meets or looks for: what is computed again, what is kept, what is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters import refusals
from metastore.adapters.table_facts import Refusal
from metastore.errors import DamagedObject
from metastore.format.data_files import FileKey, read_file_keys
from metastore.store.block_files import DEPTHS
from metastore.store.repair import list_lost_parts, repair_snapshot, salvage_block
from metastore.store.verification import Damage, find_damage
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.manifest import Block, Manifest, Snapshot
    from metastore.pipeline.request import AnalyzeRequest
    from metastore.store import Store
    from metastore.store.coverage import Coverage
    from metastore.store.repair import ColumnKeys, Salvage


_LOG = get_logger(__name__)


class RepairPlan:
    """What of the stored statistics is damaged, and what is put in its place.

    Attributes:
        asked: Whether damage is looked for, and computed again as deep as it was.
        damage: What was found where it was looked for.
    """

    def __init__(self, store: Store, facts: TableFacts, *, asked: bool) -> None:
        """Begin with nothing that is damaged."""
        self.asked = asked
        self.damage = Damage()
        self._store, self._facts = store, facts
        self._examined: set[str] = set()
        self._damaged: set[str] = set()
        self._left: set[str] = set()
        self._salvaged: dict[str, Salvage] = {}
        self._rewritten: dict[str, Block] = {}
        self._entries: dict[str, tuple[str, ...] | None] = {}

    def mark_damaged(self, blocks: Iterable[str]) -> None:
        """Take blocks, by their ids, for damaged."""
        self._damaged.update(blocks)

    def examine(self, manifest: Manifest, snapshot: str) -> Manifest:
        """What is sound of a manifest, where damage is looked for."""
        if not self.asked:
            return manifest
        if manifest.digest not in self._examined:
            self._examined.add(manifest.digest)
            self.damage = find_damage(self._store, manifest)
            self.mark_damaged(self.damage.blocks)
            lost = ((entry.id, list_lost_parts(entry, self.damage.objects)) for entry in manifest.snapshots)
            self._entries |= {name: parts for name, parts in lost if parts != ()}
            self._entries.pop(snapshot, None)
        wrong = self.damage.objects
        if not wrong:
            return manifest
        blocks = tuple(self._with_zones(manifest, block) for block in manifest.blocks)
        entries = (repair_snapshot(entry, wrong) for entry in manifest.snapshots)
        nodes = tuple(ref for ref in manifest.nodes if ref.name not in wrong)
        return replace(manifest, blocks=blocks, snapshots=tuple(one for one in entries if one), nodes=nodes)

    def damaged_entry(self, manifest: Manifest, snapshot: str) -> Snapshot | None:
        """The entry of a snapshot where objects of it are damaged."""
        same = (entry for entry in manifest.snapshots if entry.id == snapshot)
        return next((entry for entry in same if repair_snapshot(entry, self.damage.objects) != entry), None)

    def find_sound_blocks(self, manifest: Manifest) -> list[Block]:
        """The blocks that are not damaged."""
        return [block for block in manifest.blocks if block.id not in self._damaged]

    @property
    def blocks_left_damaged(self) -> frozenset[str]:
        """The ids of damaged blocks that stay as they are."""
        return frozenset(self._left)

    def is_damaged(self, block: Block) -> bool:
        """Tell whether a block is."""
        return block.id in self._damaged

    def make_requests(self, manifest: Manifest | None, request: AnalyzeRequest) -> list[AnalyzeRequest]:
        """Ask again for what damaged blocks held; those that would need deeper reading than the statement stay."""
        damaged = [block for block in manifest.blocks if self.is_damaged(block)] if manifest else []
        deeper = {block.id for block in damaged if DEPTHS[block.computed] > DEPTHS[request.depth]}
        self._left = set() if self.asked else deeper
        return [self._held(block, request) for block in damaged if block.id not in self._left]

    def find_replacements(self, manifest: Manifest | None, coverage: Coverage) -> Mapping[str, Block | None]:
        """What takes the place of blocks, by their ids: what is left of them, or nothing."""
        redundant = coverage.find_redundant_blocks()
        found: dict[str, Block | None] = dict.fromkeys(redundant)
        found |= {old: None if new.id in redundant else new for old, new in self._rewritten.items()}
        if manifest is not None:
            damaged = (block for block in manifest.blocks if self.is_damaged(block) and block.id not in self._left)
            found |= {block.id: self._left_of(manifest, block, coverage) for block in damaged}
        return found

    def refusals(self) -> tuple[Refusal, ...]:
        """What could not be computed again."""
        left = (Refusal(f"block {block}", refusals.DAMAGED) for block in sorted(self._left))
        lost = [one.lost for one in self._salvaged.values() if one.lost is not None]
        earlier = (
            Refusal(refusals.EARLIER, refusals.describe_lost_files(one.files, one.columns, one.kinds)) for one in lost
        )
        entries = (
            Refusal(
                f"snapshot {name}", refusals.SNAPSHOT_DAMAGED if parts is None else refusals.describe_lost_parts(parts)
            )
            for name, parts in self._entries.items()
        )
        return (*left, *earlier, *entries)

    def _with_zones(self, manifest: Manifest, block: Block) -> Block:
        """A block of which only zones are damaged with others."""
        if block.id not in self.damage.zones:
            return block
        if block.id not in self._rewritten:
            whole = self._salvage(manifest, block, lambda _: None).block
            self._rewritten |= {} if whole is None else {block.id: whole}
        return self._rewritten.get(block.id, block)

    def _left_of(self, manifest: Manifest, block: Block, coverage: Coverage) -> Block | None:
        if block.id not in self._salvaged:
            self._salvaged[block.id] = self._salvage(manifest, block, coverage.columns_known_elsewhere(block))
        return self._salvaged[block.id].block

    def _salvage(self, manifest: Manifest, block: Block, elsewhere: Callable[[FileKey], ColumnKeys | None]) -> Salvage:
        """What is left of a block, which is not verified again where damage was looked for."""
        is_known = block.id in self.damage.blocks | self.damage.zones
        wrong = self.damage.objects if is_known else None
        return salvage_block(self._store, manifest, block, elsewhere, wrong=wrong)

    def _held(self, block: Block, request: AnalyzeRequest) -> AnalyzeRequest:
        """The columns of a block as the table has them now, of those of its data files that are live."""
        keys = {column.key for column in block.columns}
        columns = tuple(column for column in self._facts.columns if column.key in keys)
        files = self._facts.files
        try:
            listed = set(read_file_keys(self._store.get(block.files, FileKey._fields)))
            files = tuple(file for file in files if file.key in listed)
        except DamagedObject:
            _LOG.warning("the list of files of block %s is damaged: it may have held any", block.id)
        return replace(request, depth=block.computed, columns=columns, files=files)
