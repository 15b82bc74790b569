"""Keeps a manifest small: it limits the blocks, the snapshots and the bytes."""

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
    from metastore.format.manifest import Manifest, Snapshot
    from metastore.store.table_store import Store


_LOG = get_logger(__name__)


@dataclass(frozen=True)
class Compaction:
    """The manifests before and after a compaction.

    Attributes:
        before: The manifest that it read.
        after: The manifest that it committed; the same one if there was nothing to do.
    """

    before: Manifest
    after: Manifest


def compact_store(store: Store) -> Compaction:
    """Rewrite `files` and `summary` objects so that few blocks remain, and commit that.

    Data files in no analyzed snapshot of the manifest are left out. Nothing is deleted: `gc` does that. If
    another writer commits meanwhile, the compaction starts again from the new manifest.
    """
    manifests: list[Manifest] = []

    def change(old: Manifest | None) -> Manifest | None:
        if old is None:
            return None
        manifests.append(old)
        smaller = compact_blocks(old, store, _find_live_files(old, store))
        return smaller if smaller != old else None

    manifest = store.read()
    if manifest is None:
        raise NoStatistics(store.uri)
    after = store.commit(manifest.table, change, keep=sys.maxsize, replaceable=frozenset())
    before = manifests[-1]
    return Compaction(before, after or before)


def _find_live_files(manifest: Manifest, store: Store) -> set[FileKey] | None:
    """Find the data files of all snapshots; None if they are unknown."""
    if not manifest.snapshots:
        return None
    live: set[FileKey] = set()
    try:
        for snapshot in manifest.snapshots:
            table_files = store.get(snapshot.table_files, FileKey._fields)
            live.update(read_file_keys(table_files))
    except DamagedObject as damage:
        _LOG.warning("all data files are kept: %s", damage)
        return None
    return live


_FEW_BLOCKS = 8


def shrink_to_limits(manifest: Manifest, store: Store, keep: int) -> Manifest:
    """Keep a manifest's last `keep` snapshots and merge its small blocks until it is small enough.

    Blocks that cannot be merged stay apart, as many as readers accept.
    """
    manifest = _keep_last_snapshots(manifest, keep)
    smaller = _shrink_once(manifest, store)
    while smaller != manifest:
        manifest = smaller
        smaller = _shrink_once(manifest, store)
    _require_readable(manifest)
    return manifest


def _keep_last_snapshots(manifest: Manifest, keep: int) -> Manifest:
    """Keep the last entry of each snapshot, and only the last `keep` of these entries."""
    last_entries: dict[str, Snapshot] = {}
    for snapshot in manifest.snapshots:
        last_entries.pop(snapshot.id, None)
        last_entries[snapshot.id] = snapshot
    snapshots = tuple(last_entries.values())
    return replace(manifest, snapshots=snapshots[-max(keep, 1) :])


def _shrink_once(manifest: Manifest, store: Store) -> Manifest:
    """Merge half of the blocks, or drop the oldest snapshot, if a manifest is too large and this is possible."""
    has_many_bytes = len(manifest.to_bytes()) > MAX_MANIFEST_BYTES
    count = len(manifest.blocks)
    if count <= MAX_BLOCKS and not has_many_bytes:
        return manifest
    without_oldest = _drop_oldest_snapshot(manifest) if has_many_bytes else manifest
    if count <= _FEW_BLOCKS and without_oldest != manifest:
        return without_oldest
    merged = merge_blocks(manifest, store, at_most=max(1, count // 2))
    return merged if len(merged.blocks) < count else without_oldest


def _drop_oldest_snapshot(manifest: Manifest) -> Manifest:
    """Drop the oldest snapshot unless it is the only one."""
    if len(manifest.snapshots) <= 1:
        return manifest
    return replace(manifest, snapshots=manifest.snapshots[1:])


def _require_readable(manifest: Manifest) -> None:
    """Raise an error for a manifest that is too large for readers."""
    count = len(manifest.blocks)
    if count > MAX_READ_BLOCKS:
        reason = f"its statistics are in {count} blocks that cannot be merged"
        raise UnsupportedTable(manifest.table.name, reason, "Analyze many columns at a time.")
    size = len(manifest.to_bytes())
    if size > MAX_READ_BYTES:
        raise UnsupportedTable(manifest.table.name, f"its schema needs a manifest of {size} bytes")
