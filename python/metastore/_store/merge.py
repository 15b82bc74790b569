"""Merging blocks: `files` and `summary` are rewritten, detail objects stay where they are."""

from __future__ import annotations

import logging
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore._format.files import FileKey, file_keys
from metastore._format.layout import ZONED_FILES
from metastore._format.manifest import Block, block_to_footer
from metastore._format.objects import BLOCK_KEY
from metastore._format.schemas import DETAILS, FILES
from metastore._format.summaries import Summaries, identities
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from metastore._format.columns import Column
    from metastore._format.manifest import Manifest
    from metastore._format.objects import ObjectRef
    from metastore._store.store import Store

_LOG = logging.getLogger(__name__)

_DECODED_OBJECTS = 16


class _DamagedBlock(Exception):  # noqa: N818 - caught here, never shown
    def __init__(self, block: str, reason: str) -> None:
        super().__init__(block, reason)
        self.block = block
        self.reason = reason


@dataclass(frozen=True)
class _Source:
    block: Block
    files: pa.Table
    """The data files to keep, not all of the block where some left the table."""

    def identities(self) -> list[FileKey]:
        """What identifies each of its data files."""
        return file_keys(self.files)

    @property
    def shrunk(self) -> bool:
        """Whether the block holds data files that are not kept."""
        return bool(self.files.num_rows < self.block.files.rows)


def merged(manifest: Manifest, store: Store, *, at_most: int, zoned: int = ZONED_FILES) -> Manifest:
    """The manifest with its smallest blocks merged, so that about `at_most` are left.

    Blocks are merged when they were computed alike and the columns of one are the first columns of the other: the
    ordinals in their detail objects stay right. Where both describe a data file, the later one is kept. Damaged blocks
    stay as they are. Merged blocks of more than `zoned` data files have zones.
    """
    return _around_damage(lambda damaged: _merged(manifest, store, at_most, damaged, zoned))


def compacted(
    manifest: Manifest, store: Store, live: AbstractSet[FileKey] | None, *, zoned: int = ZONED_FILES
) -> Manifest:
    """The manifest with as few blocks as its columns allow and without data files that nobody asks for.

    A large block whose zones are missing gets them.

    Args:
        manifest: The state to make smaller; returned as it is where nothing becomes smaller.
        store: Where its objects are.
        live: The data files to keep; None keeps all.
        zoned: Blocks of more data files have zones.
    """
    return _around_damage(lambda damaged: _compacted(manifest, store, live, damaged, zoned))


def _around_damage(attempt: Callable[[set[str]], Manifest]) -> Manifest:
    damaged: set[str] = set()
    while True:
        try:
            return attempt(damaged)
        except _DamagedBlock as damage:
            _LOG.warning("block %s is left out of merging: %s", damage.block, damage.reason)
            damaged.add(damage.block)


def _compacted(
    manifest: Manifest, store: Store, live: AbstractSet[FileKey] | None, damaged: set[str], zoned: int
) -> Manifest:
    sources = [_living(_source(block, store), live) for block in manifest.blocks if block.id not in damaged]
    empty = {source.block.id for source in sources if source.shrunk and not source.files.num_rows}
    groups = _groups([source for source in sources if source.block.id not in empty])
    rewritten = [group for group in groups if len(group) > 1 or group[0].shrunk or _lacks_zones(group[0], store, zoned)]
    if not rewritten and not empty:
        return manifest
    kept = replace(manifest, blocks=tuple(block for block in manifest.blocks if block.id not in empty))
    return _replaced(kept, rewritten, store, zoned)


def _lacks_zones(source: _Source, store: Store, zoned: int) -> bool:
    """Whether a block that is to have zones has none, or not all that it names."""
    try:
        for ref in source.block.zones:
            store.get(ref.object)
    except DamagedObject as damage:
        _LOG.warning("zones of block %s are made again: %s", source.block.id, damage)
        return True
    return not source.block.zones and source.files.num_rows > zoned


def _living(source: _Source, live: AbstractSet[FileKey] | None) -> _Source:
    if live is None:
        return source
    keep = [key in live for key in source.identities()]
    return source if all(keep) else replace(source, files=source.files.filter(pa.array(keep, pa.bool_())))


def _merged(manifest: Manifest, store: Store, at_most: int, damaged: set[str], zoned: int) -> Manifest:
    smallest = sorted(manifest.blocks, key=lambda block: block.files.rows)
    for victims in (smallest[: len(smallest) - at_most + 1], smallest):
        ids = {block.id for block in victims} - damaged
        groups = _groups([_source(block, store) for block in manifest.blocks if block.id in ids])
        if any(len(group) > 1 for group in groups):
            return _replaced(manifest, [group for group in groups if len(group) > 1], store, zoned)
    return manifest


def _source(block: Block, store: Store) -> _Source:
    with _damage_of(block):
        files = store.get(block.files)
        if sorted(files["file"].to_pylist()) != list(range(files.num_rows)):
            raise DamagedObject(block.files.name, "its ordinals are not 0, 1, 2, …")
        return _Source(block, files)


def _refuse_ordinals(ref: ObjectRef, ordinals: np.ndarray, files: int) -> None:
    if len(ordinals) and (ordinals.min() < 0 or ordinals.max() >= files):
        raise DamagedObject(ref.name, f"it has rows of data files that are not among {files}")


@contextmanager
def _damage_of(block: Block) -> Iterator[None]:
    try:
        yield
    except DamagedObject as damage:
        raise _DamagedBlock(block.id, str(damage)) from damage


def _replaced(manifest: Manifest, groups: Sequence[Sequence[_Source]], store: Store, zoned: int) -> Manifest:
    by_last = {group[-1].block.id: group for group in groups}
    gone = {source.block.id for group in groups for source in group}
    blocks = []
    for block in manifest.blocks:
        if block.id in by_last:
            blocks.append(_merge(by_last[block.id], manifest, store, zoned))
        elif block.id not in gone:
            blocks.append(block)
    return replace(manifest, blocks=tuple(blocks))


def _groups(sources: Sequence[_Source]) -> list[list[_Source]]:
    groups: list[list[_Source]] = []
    for source in sources:
        home = next((group for group in groups if _compatible(group, source)), None)
        if home is None:
            groups.append([source])
        else:
            home.append(source)
    return groups


def _compatible(group: Sequence[_Source], other: _Source) -> bool:
    if any(source.block.computed != other.block.computed for source in group):
        return False
    if group[0].block.statistics != other.block.statistics:
        return False
    if not all(_share_ordinals(source.block.columns, other.block.columns) for source in group):
        return False
    named = _details(other)
    return not any(named.get(key, name) != name for source in group for key, name in _details(source).items())


def _share_ordinals(a: Sequence[Column], b: Sequence[Column]) -> bool:
    return all(
        (x.key, x.type, x.encoding, x.collation) == (y.key, y.type, y.encoding, y.collation)
        for x, y in zip(a, b, strict=False)
    )


def _details(source: _Source) -> dict[tuple[str, FileKey], str]:
    """Names of the detail objects by kind and data file."""
    found: dict[tuple[str, FileKey], str] = {}
    keys = source.identities()
    for kind in DETAILS:
        names = source.files[f"{kind}_name"].to_pylist()
        found |= {(kind, key): name for key, name in zip(keys, names, strict=True) if name is not None}
    return found


def _merge(group: Sequence[_Source], manifest: Manifest, store: Store, zoned: int) -> Block:
    files, ordinals = _merge_files(group)
    if files.num_rows > zoned:
        files, ordinals = _as_listed(files, ordinals, manifest, store)
    columns = max((source.block.columns for source in reversed(group)), key=len)
    summaries = Summaries(store.put, columns, files, zoned)
    _merge_summaries(summaries, group, ordinals, store)
    summary, zones = tuple(summaries.written), summaries.zones()
    block_id, computed = str(uuid.uuid4()), group[-1].block.computed
    settings = {name: value for name, value in manifest.settings.items() if name != "statistics"}
    own = group[0].block.statistics
    footer = block_to_footer(block_id, computed, columns, (*summary, *zones), manifest.table, settings, own)
    row_groups, extra = [files.num_rows] if files.num_rows else [], {BLOCK_KEY: footer, **identities(files, zoned)}
    return Block(block_id, computed, columns, store.put("files", files, row_groups, extra), summary, own, zones)


def _merge_files(group: Sequence[_Source]) -> tuple[pa.Table, list[np.ndarray]]:
    """All data files once, and for each block the new ordinals of its old ones."""
    positions: dict[FileKey, int] = {}
    ordinals = []
    for source in group:
        new = [positions.setdefault(key, len(positions)) for key in source.identities()]
        by_old = np.full(source.block.files.rows, -1, np.int32)
        by_old[source.files["file"].to_numpy()] = new
        ordinals.append(by_old)
    rows = pa.concat_tables(
        source.files.set_column(0, source.files.schema.field(0), pa.array(by_old[source.files["file"].to_numpy()]))
        for source, by_old in zip(group, ordinals, strict=True)
    )
    merged_rows = rows.take(_latest(rows, np.ones(rows.num_rows, bool)))
    for kind in DETAILS:
        # Of several rows for one data file, each kind of detail is taken from the latest that names one.
        chosen = rows.take(_latest(rows, pc.is_valid(rows[f"{kind}_name"]).to_numpy()))
        for name in (field for field in FILES.names if field.startswith(f"{kind}_")):
            place = merged_rows.schema.get_field_index(name)
            merged_rows = merged_rows.set_column(place, merged_rows.schema.field(place), chosen[name])
    return merged_rows, ordinals


def _as_listed(
    files: pa.Table, ordinals: Sequence[np.ndarray], manifest: Manifest, store: Store
) -> tuple[pa.Table, list[np.ndarray]]:
    """The data files in the order in which the newest snapshot lists them, and their ordinals.

    Tables list them as they were written, mostly: what is clustered so stays clustered in zones, and a scan lists the
    files of a zone one behind the other.
    """
    places: dict[FileKey, int] = {}
    try:
        for snapshot in manifest.snapshots[-1:]:
            places = {key: i for i, key in enumerate(file_keys(store.get(snapshot.table_files, FileKey._fields)))}
    except DamagedObject as damage:
        _LOG.warning("data files keep their order: %s", damage)
    order = np.argsort([places.get(key, len(places)) for key in file_keys(files)], kind="stable")
    new = np.empty(len(order), np.int32)
    new[order] = np.arange(len(order))
    sorted_files = files.take(order).set_column(
        0, files.schema.field(0), pa.array(np.arange(len(order), dtype=np.int32))
    )
    return sorted_files, [np.where(old < 0, -1, new[old]).astype(np.int32) for old in ordinals]


def _latest(rows: pa.Table, wanted: np.ndarray) -> np.ndarray:
    """For each data file, in order, the last row of those wanted, else the last of all."""
    order = np.lexsort((-np.arange(rows.num_rows), ~wanted, rows["file"].to_numpy()))
    first = np.unique(rows["file"].to_numpy()[order], return_index=True)[1]
    latest: np.ndarray = order[first]
    return latest


def _merge_summaries(
    summaries: Summaries, group: Sequence[_Source], ordinals: Sequence[np.ndarray], store: Store
) -> None:
    read = lru_cache(_DECODED_OBJECTS)(store.get)
    present = sorted({column for source in group for ref in source.block.summary for column in ref.columns})
    for start in range(0, len(present), summaries.width):
        columns = present[start : start + summaries.width]
        summaries.add(_rows_of(group, ordinals, columns, read), columns)


def _rows_of(
    group: Sequence[_Source],
    ordinals: Sequence[np.ndarray],
    columns: Sequence[int],
    read: Callable[[ObjectRef], pa.Table],
) -> pa.Table:
    wanted, parts = pa.array(columns, pa.int32()), []
    for source, by_old in zip(group, ordinals, strict=True):
        for ref in source.block.summary:
            if not set(columns).isdisjoint(ref.columns):
                with _damage_of(source.block):
                    rows = read(ref.object)
                    _refuse_ordinals(ref.object, rows["file"].to_numpy(), len(by_old))
                rows = rows.filter(pc.is_in(rows["column"], wanted))
                files = by_old[rows["file"].to_numpy()]
                parts.append(rows.set_column(1, rows.schema.field(1), pa.array(files)).filter(pa.array(files >= 0)))
    rows = pa.concat_tables(parts)
    keys = (rows["column"].to_numpy().astype(np.int64) << 32) | rows["file"].to_numpy()
    # np.unique keeps the first of equal keys, in order of the keys: reversed, that is the latest block's row.
    last = rows.num_rows - 1 - np.unique(keys[::-1], return_index=True)[1]
    return rows.take(last)
