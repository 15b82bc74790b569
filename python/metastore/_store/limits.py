"""Keeps a manifest small: few blocks, few snapshots, one megabyte."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore._format.manifest import MAX_BLOCKS, MAX_MANIFEST_BYTES, MAX_READ_BLOCKS, MAX_READ_BYTES
from metastore._store.merge import merge_blocks
from metastore.errors import UnsupportedTable

if TYPE_CHECKING:
    from metastore._format.manifest import Manifest
    from metastore._store.store import Store

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
