"""Keeps a manifest small: few blocks, few snapshots, one megabyte."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from metastore.errors import DamagedObject, NoStatistics, UnsupportedTable
from metastore.format.data_files import FileKey, read_file_keys
from metastore.format.manifest import MAX_BLOCKS, MAX_MANIFEST_BYTES, MAX_READ_BLOCKS, MAX_READ_BYTES
from metastore.store.block_merge import compact_blocks, merge_blocks
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from metastore.format.manifest import Manifest
    from metastore.store.table_store import Store


_LOG = get_logger(__name__)


@dataclass(frozen=True)
class Compaction:
    """What a compaction did.

    Attributes:
        before: The manifest that it found.
        after: The manifest that it left; the same one where there was nothing to do.
    """

    before: Manifest
    after: Manifest


def compact_store(store: Store) -> Compaction:
    """Rewrites `files` and `summary` objects so that few blocks are left, and commits that.

    Data files in no analyzed snapshot that the manifest keeps are left out. Nothing is deleted: `gc` does that.
    Analyzers may commit meanwhile; the compaction is then made again on top.
    """
    found: list[Manifest] = []

    def change(old: Manifest | None) -> Manifest | None:
        if old is None:
            return None
        found.append(old)
        smaller = compact_blocks(old, store, _live(old, store))
        return None if smaller is old else smaller

    manifest = store.read()
    if manifest is None:
        raise NoStatistics(store.uri)
    after = store.commit(manifest.table, change, keep=sys.maxsize, over=frozenset())
    return Compaction(found[-1], after or found[-1])


def _live(manifest: Manifest, store: Store) -> set[FileKey] | None:
    """The data files of all snapshots, None where that is not known."""
    live: set[FileKey] = set()
    try:
        for snapshot in manifest.snapshots:
            live.update(read_file_keys(store.get(snapshot.table_files, FileKey._fields)))
    except DamagedObject as damage:
        _LOG.warning("all data files are kept: %s", damage)
        return None
    return live if manifest.snapshots else None


_FEW_BLOCKS = 8


def shrink_to_limits(manifest: Manifest, store: Store, keep: int) -> Manifest:
    """The manifest with the last `keep` snapshots and its small blocks merged until it is small enough.

    Blocks that cannot be merged stay apart, as many as readers take.
    """
    manifest = _retained(manifest, keep)
    while True:
        size = len(manifest.to_bytes())
        if len(manifest.blocks) <= MAX_BLOCKS and size <= MAX_MANIFEST_BYTES:
            return manifest
        smaller = _shrunk(manifest, store)
        if smaller is manifest:
            break
        manifest = smaller
    if len(manifest.blocks) > MAX_READ_BLOCKS:
        told = f"its statistics are in {len(manifest.blocks)} blocks that cannot be merged"
        raise UnsupportedTable(manifest.table.name, told, "Analyze many columns at a time.")
    if size > MAX_READ_BYTES:
        raise UnsupportedTable(manifest.table.name, f"its schema needs a manifest of {size} bytes")
    return manifest


def _retained(manifest: Manifest, keep: int) -> Manifest:
    newest = {snapshot.id: snapshot for snapshot in manifest.snapshots}
    last = [snapshot for snapshot in manifest.snapshots if newest[snapshot.id] is snapshot][-max(keep, 1) :]
    return replace(manifest, snapshots=tuple(last))


def _shrunk(manifest: Manifest, store: Store) -> Manifest:
    blocks, snapshots = manifest.blocks, manifest.snapshots
    too_large = len(manifest.to_bytes()) > MAX_MANIFEST_BYTES
    fewer = replace(manifest, snapshots=snapshots[1:]) if too_large and len(snapshots) > 1 else manifest
    if len(blocks) <= _FEW_BLOCKS and fewer is not manifest:
        return fewer
    together = merge_blocks(manifest, store, at_most=max(1, len(blocks) // 2))
    return together if len(together.blocks) < len(blocks) else fewer
