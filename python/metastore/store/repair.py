"""Repair: finds the statistics that are lost with damaged objects, and the blocks of an ANALYZE that was killed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from metastore.errors import DamagedObject, StoreNotWritable
from metastore.format.data_files import FileKey, read_file_keys
from metastore.format.manifest import parse_block_description
from metastore.format.objects import BLOCK_KEY, decode_object, identify_object
from metastore.store.block_files import DEPTHS, ColumnKey, column_keys
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pyarrow as pa

    from metastore.format.manifest import Block, Manifest, RanksRef, Snapshot, SummaryRef, TableIdentity
    from metastore.format.objects import ObjectRef
    from metastore.store.coverage import Coverage
    from metastore.store.table_store import Store


R = TypeVar("R", "SummaryRef", "RanksRef")

_LOG = get_logger(__name__)
_OPTIONAL = ("summary", "sketches", "histograms", "placed")
"""The parts of an entry that are one object, or None."""


@dataclass(frozen=True)
class LostStatistics:
    """Statistics of a damaged block that cannot be computed again.

    Attributes:
        files: The paths of their data files; None if the block's list of files was damaged, so that they are unknown.
        columns: The names of their columns.
    """

    files: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()


def find_lost_statistics(store: Store, manifest: Manifest, block: Block, coverage: Coverage) -> LostStatistics | None:
    """Find the statistics that only a damaged block has, for data files or columns that the table no longer has.

    Args:
        store: The store.
        manifest: The manifest that names the block.
        block: The block.
        coverage: The statistics that other blocks have of the table's data files.
    """
    try:
        files = store.get(block.files, FileKey._fields)
    except DamagedObject as damage:
        _LOG.warning("it is not known which data files block %s has: %s", block.id, damage)
        return LostStatistics() if _has_unknown_files(store, manifest, coverage) else None
    lost_by_path = _find_lost_columns(block, read_file_keys(files), coverage)
    if not lost_by_path:
        return None
    lost_columns = frozenset[ColumnKey]().union(*set(lost_by_path.values()))
    names = [column.name for column in block.columns if (column.key, column.type) in lost_columns]
    return LostStatistics(tuple(lost_by_path), tuple(names))


def _find_lost_columns(block: Block, keys: Sequence[FileKey], coverage: Coverage) -> dict[str, frozenset[ColumnKey]]:
    """Find the columns of a block that no other block has, by the path of the data file."""
    find_known = coverage.columns_known(DEPTHS[block.computed], frozenset(block.statistics.items()))
    find_lost = cache(column_keys(block.columns).difference)  # most data files have the same columns
    lost_by_path = {}
    for key in keys:
        lost = find_lost(find_known(key))
        if lost:
            lost_by_path[key.path] = lost
    return lost_by_path


def _has_unknown_files(store: Store, manifest: Manifest, coverage: Coverage) -> bool:
    """Return whether a snapshot lists data files that no other block lists, or an unknown list."""
    for entry in manifest.snapshots:
        try:
            keys = read_file_keys(store.get(entry.table_files, FileKey._fields))
        except DamagedObject as damage:
            _LOG.warning("it is not known which data files snapshot %s has: %s", entry.id, damage)
            return True
        if not all(map(coverage.holds, keys)):
            return True
    return False


def repair_snapshot(entry: Snapshot, wrong: Collection[str]) -> Snapshot | None:
    """Remove damaged objects from a snapshot's entry; None if nothing remains.

    Lists of values stay together: a missing one would say that its values occur nowhere.
    """
    if entry.table_files.name in wrong:
        return None
    changes: dict[str, Any] = {"ranks": _select_sound_ranks(entry.ranks, wrong)}
    changes |= dict.fromkeys(_list_wrong_parts(entry, wrong))
    if _find_wrong(entry.frequencies, wrong):
        changes |= {"frequencies": (), "distribution": (), "placed": None}
    return replace(entry, **changes)


def _list_wrong_parts(entry: Snapshot, wrong: Collection[str]) -> list[str]:
    """List the optional parts of an entry whose object is wrong."""
    parts = []
    for part in _OPTIONAL:
        ref: ObjectRef | None = getattr(entry, part)
        if ref is not None and ref.name in wrong:
            parts.append(part)
    return parts


def _find_wrong(refs: Sequence[R], wrong: Collection[str]) -> list[R]:
    return [ref for ref in refs if ref.object.name in wrong]


def list_lost_parts(entry: Snapshot, wrong: Collection[str]) -> tuple[str, ...] | None:
    """List the parts that `repair_snapshot` removes from an entry, as a manifest names them; None for all."""
    repaired = repair_snapshot(entry, wrong)
    if repaired is None:
        return None
    parts = (*_OPTIONAL, "frequencies", "ranks")
    return tuple(part for part in parts if getattr(repaired, part) != getattr(entry, part))


def _select_sound_ranks(ranks: Sequence[RanksRef], wrong: Collection[str]) -> tuple[RanksRef, ...]:
    """Remove the columns of which some part is damaged."""
    lost: set[int] = set()
    for ref in _find_wrong(ranks, wrong):
        lost.update(ref.columns)
    sound_ranks = [_remove_columns(ref, lost) for ref in ranks]
    return tuple(filter(attrgetter("columns"), sound_ranks))


def _remove_columns(ref: RanksRef, lost: set[int]) -> RanksRef:
    columns = tuple(ordinal for ordinal in ref.columns if ordinal not in lost)
    before_first = tuple(map(ref.before, columns))
    return replace(ref, columns=columns, before_first=before_first)


NEWEST = 256
OLDEST = timedelta(days=1)
"""Older blocks are not used again, because garbage collection may delete them at the same time."""


def find_orphan_blocks(
    store: Store,
    identity: TableIdentity,
    manifest: Manifest | None,
    *,
    settings: dict[str, Any] | None = None,
    is_useful: Callable[[Block, pa.Table], bool] = lambda *_: True,
) -> list[Block]:
    """Find finished blocks that the manifest does not name, oldest first.

    These are blocks of an ANALYZE that was killed, of one that is still running, and blocks that were merged into
    others since. All of them are sound; `is_useful` selects some of them.
    """
    candidates = _list_candidates(store, manifest)
    if not candidates:
        return []
    try:
        oldest = store.read_clock() - OLDEST
    except StoreNotWritable as e:
        _LOG.info("unfinished work is passed over: %s", e)
        return []
    names = [name for modified, name in candidates[-NEWEST:] if modified > oldest]
    blocks = [_read_orphan(store, name, identity, settings, is_useful) for name in names]
    return list(filter(None, blocks))


def _list_candidates(store: Store, manifest: Manifest | None) -> list[tuple[datetime, str]]:
    """List the time and the name of each `files` object that the manifest does not name, oldest first."""
    times = store.list_objects("files")
    if manifest is not None:
        for block in manifest.blocks:
            times.pop(block.files.name, None)
    return sorted((modified, name) for name, modified in times.items())


def _read_orphan(
    store: Store,
    name: str,
    identity: TableIdentity,
    settings: dict[str, Any] | None,
    is_useful: Callable[[Block, pa.Table], bool],
) -> Block | None:
    """Read a block from its `files` object; None if it is damaged, of another table or other settings, or of no use."""
    try:
        data = store.read_bytes(name)
        ref, texts = identify_object(name, data)
        block, table, block_settings = parse_block_description(texts.get(BLOCK_KEY, ""), ref)
        if table.uuid != identity.uuid or settings not in (None, block_settings):
            return None
        if not is_useful(block, decode_object(ref, data)):
            return None
        _require_sound_objects(store, block)
    except DamagedObject as e:
        _LOG.info("%s is passed over: %s", name, e)
        return None
    return block


def _require_sound_objects(store: Store, block: Block) -> None:
    """Read the summaries and zones of a block, which raises `DamagedObject` for a damaged one."""
    for summary in block.summary:
        store.get(summary.object, ["column", "file"])
    for zones in block.zones:
        store.get(zones.object, ["column", "zone"])
