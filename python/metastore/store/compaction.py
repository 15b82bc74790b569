"""Rewrites the blocks of a store, so that few remain."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metastore.errors import DamagedObject, NoStatistics
from metastore.format.data_files import FileKey, read_file_keys
from metastore.store.block_merge import compact_blocks
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from metastore.format.manifest import Manifest
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
