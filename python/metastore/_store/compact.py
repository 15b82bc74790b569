"""Compaction: as few blocks as the columns allow, without data files that left the table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metastore._format.files import FileKey, read_file_keys
from metastore._store.merge import compact_blocks
from metastore._visible import get_logger
from metastore.errors import DamagedObject, NoStatistics

if TYPE_CHECKING:
    from metastore._format.manifest import Manifest
    from metastore._store.store import Store

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
