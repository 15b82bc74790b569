"""Merged blocks: `files` and `summary` are written again; detail objects stay as they are if they can."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, product, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.block_writer import BlockWriter
from metastore.format.data_files import FileKey, list_detail_references, read_file_keys
from metastore.format.object_layout import ZONED_FILES
from metastore.format.object_schemas import DETAILS
from metastore.store.block_files import BlockDamageError, attribute_damage, number_cells
from metastore.store.detail_merge import BlockMapping, merge_details, replace_detail_fields
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from metastore.format.manifest import Block, Manifest, SummaryRef
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.store.stored_objects import StoredObjects

    Rule = Callable[[Sequence["_Source"], "_Source"], bool]
    Ordinals = NDArray[np.int32]


_LOG = get_logger(__name__)

_DECODED_OBJECTS = 16
JOINED_BYTES = 64 << 20
JOINED_VALUES = 1 << 22
JOINED_CELLS = 50_000_000
"""Blocks with more details to write again stay apart: a commit shall take neither long nor much memory.

A cell is a column of a data file: for each cell the block whose details remain is in memory.
"""


class ColumnIdentity(NamedTuple):
    """The properties of a column in which merged blocks have to agree."""

    key: str
    type: str
    encoding: str | None
    collation: str | None


@dataclass(frozen=True)
class _Source:
    """A block to be merged.

    Attributes:
        block: The block.
        files: Its data files that remain in the table.
        store: The store of its objects.
    """

    block: Block
    files: pa.Table
    store: StoredObjects

    @cached_property
    def file_keys(self) -> list[FileKey]:
        """The keys of its data files."""
        return read_file_keys(self.files)

    @cached_property
    def columns(self) -> list[ColumnIdentity]:
        """Its columns without their names, which may change."""
        return list(map(_identify, self.block.columns))

    @cached_property
    def columns_by_key(self) -> dict[str, ColumnIdentity]:
        """Its columns by key."""
        return {column.key: column for column in self.columns}

    @cached_property
    def details(self) -> dict[tuple[str, FileKey], str]:
        """Names of the detail objects by kind and data file."""
        details: dict[tuple[str, FileKey], str] = {}
        for kind in DETAILS:
            files = self.files.filter(pc.is_valid(self.files[f"{kind}_name"]))
            keys = zip(repeat(kind), read_file_keys(files), strict=False)
            names = files[f"{kind}_name"].to_pylist()
            details.update(zip(keys, names, strict=True))
        return details

    @cached_property
    def detail_bytes(self) -> int:
        """Bytes of its detail objects."""
        return sum(ref.length for ref in list_detail_references(self.files))

    @cached_property
    def detail_values(self) -> int:
        """Number of values of its value lists."""
        references = list_detail_references(self.files, ["frequencies"])
        with attribute_damage(self.block.id):
            return sum(self.store.open_part(ref).num_rows for ref in references)

    @property
    def has_lost_files(self) -> bool:
        """Whether some data files of the block left the table."""
        return bool(self.files.num_rows < self.block.files.rows)

    @property
    def has_lost_all_files(self) -> bool:
        """Whether all data files of the block left the table."""
        return self.has_lost_files and not self.files.num_rows


def merge_blocks(manifest: Manifest, store: StoredObjects, *, at_most: int, zoned: int = ZONED_FILES) -> Manifest:
    """Merge the smallest blocks of a manifest until about `at_most` remain.

    Blocks are merged if they were computed in the same way. Those are merged first in which the columns of one are the
    first columns of the other: the ordinals in their detail objects stay right. Other detail objects are written again.
    If both describe a column of a data file, the later one remains. Damaged blocks stay as they are. Merged blocks of
    more than `zoned` data files have zones.
    """
    return _retry_without_damaged(lambda damaged: _merge_smallest(manifest, store, at_most, damaged, zoned))


def compact_blocks(
    manifest: Manifest, store: StoredObjects, live: AbstractSet[FileKey] | None, *, zoned: int = ZONED_FILES
) -> Manifest:
    """Merge the blocks of a manifest into as few as its columns allow, without data files that are not live.

    A large block whose zones are missing gets them.
    """
    return _retry_without_damaged(lambda damaged: _compact(manifest, store, live, damaged, zoned))


def rewrite_block(manifest: Manifest, block: Block, store: StoredObjects, *, zoned: int = ZONED_FILES) -> Block:
    """Write a block of a manifest again from its data files and summaries: it gets new zones."""
    return _merge([_read_source(block, store)], manifest, store, zoned)


def _retry_without_damaged(attempt: Callable[[set[str]], Manifest]) -> Manifest:
    damaged: set[str] = set()
    while True:
        try:
            return attempt(damaged)
        except BlockDamageError as damage:
            _LOG.warning("block %s is left out of merging: %s", damage.block, damage.reason)
            damaged.add(damage.block)


def _compact(
    manifest: Manifest, store: StoredObjects, live: AbstractSet[FileKey] | None, damaged: set[str], zoned: int
) -> Manifest:
    empty = set()
    remaining = []
    for source in _read_sources(manifest.blocks, damaged, store):
        live_source = _select_live_files(source, live)
        if live_source.has_lost_all_files:
            empty.add(source.block.id)
        else:
            remaining.append(live_source)
    groups = [group for group in _group(remaining, _can_join) if _needs_rewriting(group, store, zoned)]
    return _replace_groups(manifest, groups, store, zoned, empty)


def _needs_rewriting(group: Sequence[_Source], store: StoredObjects, zoned: int) -> bool:
    if len(group) > 1:
        return True
    (source,) = group
    return source.has_lost_files or _lacks_zones(source, store, zoned)


def _lacks_zones(source: _Source, store: StoredObjects, zoned: int) -> bool:
    """Return whether a large block has no zones, or not all that it names."""
    try:
        for ref in source.block.zones:
            store.get(ref.object)
    except DamagedObject as damage:
        _LOG.warning("zones of block %s are made again: %s", source.block.id, damage)
        return True
    return not source.block.zones and source.files.num_rows > zoned


def _select_live_files(source: _Source, live: AbstractSet[FileKey] | None) -> _Source:
    """Leave out the data files that are not live; none if the live ones are unknown."""
    if live is None:
        return source
    is_live = [key in live for key in source.file_keys]
    files = source.files.filter(pa.array(is_live, pa.bool_()))
    return replace(source, files=files)


def _merge_smallest(manifest: Manifest, store: StoredObjects, at_most: int, damaged: set[str], zoned: int) -> Manifest:
    """Merge as many of the smallest blocks as needed if they fit each other, else those of all blocks that fit."""
    by_size = sorted(manifest.blocks, key=lambda block: block.files.rows)
    first_larger = len(by_size) - at_most + 1
    larger = {block.id for block in by_size[first_larger:]}
    for fits, skipped in product((_are_compatible, _can_join), (damaged | larger, damaged)):
        groups = _group(_read_sources(manifest.blocks, skipped, store), fits)
        groups = [group for group in groups if len(group) > 1]
        if groups:
            return _replace_groups(manifest, groups, store, zoned)
    return manifest


def _read_sources(blocks: Sequence[Block], skipped: set[str], store: StoredObjects) -> list[_Source]:
    return [_read_source(block, store) for block in blocks if block.id not in skipped]


def _read_source(block: Block, store: StoredObjects) -> _Source:
    with attribute_damage(block.id):
        files = store.get(block.files)
        if sorted(files["file"].to_pylist()) != list(range(files.num_rows)):
            raise DamagedObject(block.files.name, "its ordinals are not 0, 1, 2, …")
        return _Source(block, files, store)


def _replace_groups(
    manifest: Manifest,
    groups: Sequence[Sequence[_Source]],
    store: StoredObjects,
    zoned: int,
    removed: AbstractSet[str] = frozenset(),
) -> Manifest:
    """Replace the last block of each group by the merged one, and remove the other blocks of the groups."""
    groups_by_last = {group[-1].block.id: group for group in groups}
    merged = {source.block.id for source in chain.from_iterable(groups)}
    blocks = []
    for block in manifest.blocks:
        if block.id in groups_by_last:
            blocks.append(_merge(groups_by_last[block.id], manifest, store, zoned))
        elif block.id not in merged | removed:
            blocks.append(block)
    return replace(manifest, blocks=tuple(blocks))


def _group(sources: Sequence[_Source], fits: Rule) -> list[list[_Source]]:
    """Put each block into the first group that it fits."""
    groups: list[list[_Source]] = []
    for source in sources:
        for group in groups:
            if fits(group, source):
                group.append(source)
                break
        else:
            groups.append([source])
    return groups


def _are_compatible(group: Sequence[_Source], other: _Source) -> bool:
    """Return whether blocks can be merged without writing detail objects again."""
    return all(_is_compatible(source, other) for source in group)


def _is_compatible(source: _Source, other: _Source) -> bool:
    if not _are_computed_alike(source.block, other.block):
        return False
    common = min(len(source.columns), len(other.columns))
    if source.columns[:common] != other.columns[:common]:  # ordinals would change
        return False
    return _agree(source.details, other.details)


def _are_computed_alike(block: Block, other: Block) -> bool:
    return (block.computed, block.statistics) == (other.computed, other.statistics)


def _agree(first: dict[Any, Any], second: dict[Any, Any]) -> bool:
    """Return whether the common keys of two dictionaries have the same values."""
    return first | second == second | first


def _can_join(group: Sequence[_Source], other: _Source) -> bool:
    """Return whether blocks can be merged by writing their detail objects again, with the details of all columns."""
    if _are_compatible(group, other):
        return True
    if not _are_computed_alike(group[0].block, other.block):
        return False
    if not _is_small_enough((*group, other)):
        return False
    return all(_agree(source.columns_by_key, other.columns_by_key) for source in group)


def _is_small_enough(sources: Sequence[_Source]) -> bool:
    if sum(source.detail_bytes for source in sources) > JOINED_BYTES:
        return False
    if sum(source.detail_values for source in sources) > JOINED_VALUES:
        return False
    return _count_cells(sources) <= JOINED_CELLS


def _count_cells(sources: Sequence[_Source]) -> int:
    """Count the columns of all data files if blocks with details are merged."""
    if not any(source.detail_bytes for source in sources):
        return 0
    files: set[FileKey] = set()
    columns: set[ColumnIdentity] = set()
    for source in sources:
        files.update(source.file_keys)
        columns.update(source.columns)
    return len(files) * len(columns)


def _identify(column: Column) -> ColumnIdentity:
    return ColumnIdentity(column.key, column.type, column.encoding, column.collation)


def _merge(group: Sequence[_Source], manifest: Manifest, store: StoredObjects, zoned: int) -> Block:
    files, file_ordinals = _merge_files(group)
    if files.num_rows > zoned:
        files, file_ordinals = _order_as_listed(files, file_ordinals, manifest, store)
    columns, column_ordinals = _merge_columns(group)
    parts = []
    for source, new_files, new_columns in zip(group, file_ordinals, column_ordinals, strict=True):
        parts.append(BlockMapping(source.block, source.files, ordinals=new_files, columns=new_columns))
    shape = (len(columns), files.num_rows)
    files = merge_details(files, parts, lambda: _find_winners(parts, shape, store), store)
    writer = BlockWriter(store.put, columns, files, zoned)
    _merge_summaries(writer, parts, store)
    first_block = group[0].block  # the others are computed alike
    return writer.finish(first_block.computed, first_block.statistics, manifest.table, manifest.settings)


def _merge_files(group: Sequence[_Source]) -> tuple[pa.Table, list[Ordinals]]:
    """List each data file once, and for each block the new ordinals by the old ones; -1 of files that left."""
    ordinals_by_key: dict[FileKey, int] = {}
    ordinals = []
    tables = []
    for source in group:
        new_ordinals = [ordinals_by_key.setdefault(key, len(ordinals_by_key)) for key in source.file_keys]
        new_by_old = np.full(source.block.files.rows, -1, np.int32)
        new_by_old[source.files["file"].to_numpy()] = new_ordinals
        ordinals.append(new_by_old)
        tables.append(_number_files(source.files, np.array(new_ordinals, np.int32)))
    rows = pa.concat_tables(tables)
    merged = rows.take(_choose_latest(rows, np.ones(rows.num_rows, bool)))
    for kind in DETAILS:
        # Of several rows for one data file, each kind of detail is taken from the latest that names one.
        has_details = pc.is_valid(rows[f"{kind}_name"]).to_numpy()
        latest = rows.take(_choose_latest(rows, has_details))
        merged = replace_detail_fields(merged, kind, latest, pc.is_valid(latest[f"{kind}_name"]).to_numpy())
    return merged, ordinals


def _number_files(files: pa.Table, ordinals: Ordinals) -> pa.Table:
    return files.set_column(0, files.schema.field(0), pa.array(ordinals))


def _order_as_listed(
    files: pa.Table, ordinals: Sequence[Ordinals], manifest: Manifest, store: StoredObjects
) -> tuple[pa.Table, list[Ordinals]]:
    """Order the data files as the newest snapshot lists them, and number them again.

    Tables list them as they were written, mostly: files that are clustered so stay clustered in zones, and a scan lists
    the files of a zone one after the other.
    """
    listed_positions = _read_positions(manifest, store)
    behind = len(listed_positions)
    positions = [listed_positions.get(key, behind) for key in read_file_keys(files)]
    order = np.argsort(positions, kind="stable")
    numbers = np.arange(len(order), dtype=np.int32)
    new_ordinals = np.empty(len(order), np.int32)
    new_ordinals[order] = numbers
    ordered_files = _number_files(files.take(order), numbers)
    renumbered = []
    for old in ordinals:
        new = np.where(old < 0, -1, new_ordinals[old])
        renumbered.append(new.astype(np.int32))
    return ordered_files, renumbered


def _read_positions(manifest: Manifest, store: StoredObjects) -> dict[FileKey, int]:
    """Read the position of each data file in the list of the newest snapshot; none if it is unknown."""
    if not manifest.snapshots:
        return {}
    try:
        listed = store.get(manifest.snapshots[-1].table_files, FileKey._fields)
    except DamagedObject as damage:
        _LOG.warning("data files keep their order: %s", damage)
        return {}
    return dict(zip(read_file_keys(listed), range(listed.num_rows), strict=True))


def _choose_latest(rows: pa.Table, is_preferred: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Choose for each data file, in order, the last of the preferred rows, or else the last row."""
    files = rows["file"].to_numpy()
    order = np.lexsort((-np.arange(rows.num_rows), ~is_preferred, files))
    _, first = np.unique(files[order], return_index=True)
    latest: NDArray[np.intp] = order[first]
    return latest


def _merge_columns(group: Sequence[_Source]) -> tuple[tuple[Column, ...], list[Ordinals]]:
    """List the columns of all blocks, by their later names, and for each block the new ordinals of its columns."""
    schemas = [source.block.columns for source in group]
    longest = max(reversed(schemas), key=len)
    columns_by_identity: dict[ColumnIdentity, Column] = {}
    for column in chain(longest, *schemas):
        columns_by_identity[_identify(column)] = column
    numbers = range(len(columns_by_identity))
    ordinals_by_identity = dict(zip(columns_by_identity, numbers, strict=True))
    ordinals = []
    for source in group:
        new_ordinals = map(ordinals_by_identity.__getitem__, source.columns)
        ordinals.append(np.fromiter(new_ordinals, np.int32))
    return tuple(columns_by_identity.values()), ordinals


def _find_winners(parts: Sequence[BlockMapping], shape: tuple[int, int], store: StoredObjects) -> NDArray[np.int16]:
    """Find the number of the block whose row remains, by column and data file; -1 if there is no row."""
    winners = np.full(shape, -1, np.int16)
    for number, part in enumerate(parts):
        for ref in part.block.summary:
            summary = _read_summary(ref.object, part, lambda ref: store.get(ref, ["column", "file"]))
            remains = summary.files >= 0
            winners[summary.columns[remains], summary.files[remains]] = number
    return winners


class _SummaryRows(NamedTuple):
    """Rows of a summary, and the ordinals of their columns and data files in the merged block.

    Attributes:
        rows: The rows.
        columns: The ordinal of the column of each row.
        files: The ordinal of the data file of each row; -1 of one that left the table.
    """

    rows: pa.Table
    columns: Ordinals
    files: Ordinals


def _read_summary(ref: ObjectRef, part: BlockMapping, read: Callable[[ObjectRef], pa.Table]) -> _SummaryRows:
    with attribute_damage(part.block.id):
        rows = read(ref)
        columns = part.map_columns(ref.name, rows["column"].to_numpy())
        files = part.map_files(ref.name, rows["file"].to_numpy())
    return _SummaryRows(rows, columns, files)


class _SummaryObject(NamedTuple):
    """A summary object of a block, and the ordinals of its columns in the merged block."""

    part: BlockMapping
    ref: ObjectRef
    columns: set[int]


def _merge_summaries(writer: BlockWriter, parts: Sequence[BlockMapping], store: StoredObjects) -> None:
    read = lru_cache(_DECODED_OBJECTS)(store.get)
    objects = _list_summaries(parts)
    ordinals = sorted(set().union(*(summary.columns for summary in objects)))
    for start in range(0, len(ordinals), writer.width):
        columns = ordinals[start : start + writer.width]
        objects_with_columns = [summary for summary in objects if not summary.columns.isdisjoint(columns)]
        writer.add(_merge_rows(objects_with_columns, columns, read), columns)


def _list_summaries(parts: Sequence[BlockMapping]) -> list[_SummaryObject]:
    objects: list[_SummaryObject] = []
    for part in parts:
        objects += [_SummaryObject(part, ref.object, _map_columns(part, ref)) for ref in part.block.summary]
    return objects


def _map_columns(part: BlockMapping, ref: SummaryRef) -> set[int]:
    with attribute_damage(part.block.id):
        columns = part.map_columns(ref.object.name, np.array(ref.columns, np.int32))
    return set(columns.tolist())


def _merge_rows(
    objects: Sequence[_SummaryObject], columns: Sequence[int], read: Callable[[ObjectRef], pa.Table]
) -> pa.Table:
    """Merge the rows of these columns; the latest one of a column and data file remains."""
    tables = []
    for summary_object in objects:
        summary = _read_summary(summary_object.ref, summary_object.part, read)
        rows = summary.rows.set_column(0, summary.rows.schema.field(0), pa.array(summary.columns))
        rows = rows.set_column(1, rows.schema.field(1), pa.array(summary.files))
        remains = (summary.files >= 0) & np.isin(summary.columns, columns)
        tables.append(rows.filter(pa.array(remains)))
    rows = pa.concat_tables(tables)
    keys = number_cells(rows)
    # np.unique takes the first of equal keys, in order of the keys: reversed, that is the latest block's row.
    _, from_end = np.unique(keys[::-1], return_index=True)
    return rows.take(rows.num_rows - 1 - from_end)
