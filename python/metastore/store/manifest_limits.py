"""Keeps a manifest small: it limits the blocks, the snapshots and the bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.errors import UnsupportedTable
from metastore.format.manifest import MAX_BLOCKS, MAX_MANIFEST_BYTES, MAX_READ_BLOCKS, MAX_READ_BYTES
from metastore.store.block_merge import merge_blocks

if TYPE_CHECKING:
    from metastore.format.manifest import Manifest, Snapshot
    from metastore.store.stored_objects import StoredObjects


_FEW_BLOCKS = 8


def shrink_to_limits(manifest: Manifest, store: StoredObjects, keep: int) -> Manifest:
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


def _shrink_once(manifest: Manifest, store: StoredObjects) -> Manifest:
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
