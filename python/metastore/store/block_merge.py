"""Merging blocks: `files` and `summary` are written again; detail objects stay where they are if they can."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.block_writer import BlockWriter
from metastore.format.data_files import FileKey, list_detail_objects, read_file_keys
from metastore.format.object_layout import ZONED_FILES
from metastore.format.object_part import ANY_ROWS
from metastore.format.object_schemas import DETAILS, FILES
from metastore.format.objects import ObjectRef
from metastore.store.block_files import BlockDamageError, attribute_damage
from metastore.store.detail_merge import BlockMapping, merge_details
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from metastore.format.manifest import Block, Manifest, SummaryRef
    from metastore.format.table_column import Column
    from metastore.store.table_store import Store

    Rule = Callable[[Sequence["_Source"], "_Source"], bool]


_LOG = get_logger(__name__)

_DECODED_OBJECTS = 16
JOINED_BYTES, JOINED_VALUES, JOINED_CELLS = 64 << 20, 1 << 22, 50_000_000
"""Blocks with more details to write again stay apart: a commit shall take neither long nor much memory.

A cell is a column of a data file: of each it is noted whose details are kept.
"""


@dataclass(frozen=True)
class _Source:
    block: Block
    files: pa.Table
    """The data files to keep, not all of the block where some left the table."""
    store: Store

    @cached_property
    def identities(self) -> list[FileKey]:
        """What identifies each of its data files."""
        return read_file_keys(self.files)

    @cached_property
    def counted(self) -> dict[FileKey, bool]:
        """Whether each of its data files names a list of values."""
        return dict(zip(self.identities, pc.is_valid(self.files["frequencies_name"]).to_pylist(), strict=True))

    @cached_property
    def details(self) -> dict[tuple[str, FileKey], str]:
        """Names of the detail objects by kind and data file."""
        found: dict[tuple[str, FileKey], str] = {}
        keys = self.identities
        for kind in DETAILS:
            names = self.files[f"{kind}_name"].to_pylist()
            found |= {(kind, key): name for key, name in zip(keys, names, strict=True) if name is not None}
        return found

    @cached_property
    def detail_bytes(self) -> int:
        """How large its detail objects are."""
        objects = set().union(*(list_detail_objects(self.files, kind) for kind in DETAILS))
        return sum(length or 0 for _, length, _ in objects)

    @cached_property
    def detail_values(self) -> int:
        """How many values its value lists have."""
        fields = ("name", "length", "sha256", "footer_length", "footer_sha256")
        named = zip(*(self.files[f"frequencies_{field}"].to_pylist() for field in fields), strict=True)
        with attribute_damage(self.block.id):
            return sum(
                self.store.open_part(ObjectRef(name, length, digest, ANY_ROWS, footer, of_footer)).num_rows
                for name, length, digest, footer, of_footer in set(named)
                if name is not None
            )

    @property
    def shrunk(self) -> bool:
        """Whether the block holds data files that are not kept."""
        return bool(self.files.num_rows < self.block.files.rows)


def merge_blocks(manifest: Manifest, store: Store, *, at_most: int, zoned: int = ZONED_FILES) -> Manifest:
    """The manifest with its smallest blocks merged, so that about `at_most` are left.

    Blocks are merged when they were computed alike. Those are merged first in which the columns of one are the first
    columns of the other: the ordinals in their detail objects stay right. Of others these are written again. Where both
    describe a column of a data file, the later one is kept. Damaged blocks stay as they are. Merged blocks of more than
    `zoned` data files have zones.
    """
    return _around_damage(lambda damaged: _merged(manifest, store, at_most, damaged, zoned))


def compact_blocks(
    manifest: Manifest, store: Store, live: AbstractSet[FileKey] | None, *, zoned: int = ZONED_FILES
) -> Manifest:
    """The manifest with as few blocks as its columns allow and without data files that nobody asks for.

    A large block whose zones are missing gets them.
    """
    return _around_damage(lambda damaged: _compacted(manifest, store, live, damaged, zoned))


def _around_damage(attempt: Callable[[set[str]], Manifest]) -> Manifest:
    damaged: set[str] = set()
    while True:
        try:
            return attempt(damaged)
        except BlockDamageError as damage:
            _LOG.warning("block %s is left out of merging: %s", damage.block, damage.reason)
            damaged.add(damage.block)


def _compacted(
    manifest: Manifest, store: Store, live: AbstractSet[FileKey] | None, damaged: set[str], zoned: int
) -> Manifest:
    sources = [_living(_source(block, store), live) for block in manifest.blocks if block.id not in damaged]
    empty = {source.block.id for source in sources if source.shrunk and not source.files.num_rows}
    groups = _groups([source for source in sources if source.block.id not in empty], _joinable)
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
    keep = [key in live for key in source.identities]
    return source if all(keep) else replace(source, files=source.files.filter(pa.array(keep, pa.bool_())))


def _merged(manifest: Manifest, store: Store, at_most: int, damaged: set[str], zoned: int) -> Manifest:
    smallest = sorted(manifest.blocks, key=lambda block: block.files.rows)
    some = smallest[: len(smallest) - at_most + 1]
    for victims, fits in ((some, _compatible), (smallest, _compatible), (some, _joinable), (smallest, _joinable)):
        ids = {block.id for block in victims} - damaged
        groups = _groups([_source(block, store) for block in manifest.blocks if block.id in ids], fits)
        if any(len(group) > 1 for group in groups):
            return _replaced(manifest, [group for group in groups if len(group) > 1], store, zoned)
    return manifest


def _source(block: Block, store: Store) -> _Source:
    with attribute_damage(block.id):
        files = store.get(block.files)
        if sorted(files["file"].to_pylist()) != list(range(files.num_rows)):
            raise DamagedObject(block.files.name, "its ordinals are not 0, 1, 2, …")
        return _Source(block, files, store)


def _refuse_ordinals(ref: ObjectRef, ordinals: np.ndarray, files: int) -> None:
    if len(ordinals) and (ordinals.min() < 0 or ordinals.max() >= files):
        raise DamagedObject(ref.name, f"it has rows of data files that are not among {files}")


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


def _groups(sources: Sequence[_Source], fits: Rule) -> list[list[_Source]]:
    groups: list[list[_Source]] = []
    for source in sources:
        home = next((group for group in groups if fits(group, source)), None)
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
    return not any(other.details.get(key, name) != name for source in group for key, name in source.details.items())


def _joinable(group: Sequence[_Source], other: _Source) -> bool:
    """Whether blocks can be merged by writing their detail objects again, with what they tell of other columns."""
    if _compatible(group, other):
        return True
    alike = (group[0].block.computed, group[0].block.statistics) == (other.block.computed, other.block.statistics)
    sources = (*group, other)
    if not alike or sum(source.detail_bytes for source in sources) > JOINED_BYTES:
        return False
    if sum(source.detail_values for source in sources) > JOINED_VALUES or _count_cells(sources) > JOINED_CELLS:
        return False
    mine = {column.key: _identity(column) for column in other.block.columns}
    return all(
        mine.get(column.key, _identity(column)) == _identity(column)
        for source in group
        for column in source.block.columns
    ) and all(_count_alike(source, other) for source in group)


def _count_cells(sources: Sequence[_Source]) -> int:
    """How many columns of data files there are when blocks with details are joined."""
    if not any(source.detail_bytes for source in sources):
        return 0
    files = set().union(*(source.identities for source in sources))
    return len(files) * len({_identity(column) for source in sources for column in source.block.columns})


def _count_alike(a: _Source, b: _Source) -> bool:
    """Whether both name value lists of the data files that both describe: earlier versions counted no values."""
    return all(a.counted[key] == b.counted[key] for key in a.counted.keys() & b.counted.keys())


def _identity(column: Column) -> tuple[str, str, str | None, str | None]:
    return column.key, column.type, column.encoding, column.collation


def _share_ordinals(a: Sequence[Column], b: Sequence[Column]) -> bool:
    return all(_identity(x) == _identity(y) for x, y in zip(a, b, strict=False))


def _merge(group: Sequence[_Source], manifest: Manifest, store: Store, zoned: int) -> Block:
    files, ordinals = _merge_files(group)
    if files.num_rows > zoned:
        files, ordinals = _as_listed(files, ordinals, manifest, store)
    columns, places = _shared_columns(group)
    parts = [
        BlockMapping(source.block.id, source.files, of_files, of_columns)
        for source, of_files, of_columns in zip(group, ordinals, places, strict=True)
    ]
    files = merge_details(files, parts, lambda: _winners(group, parts, (len(columns), files.num_rows), store), store)
    writer = BlockWriter(store.put, columns, files, zoned)
    _merge_summaries(writer, group, parts, store)
    return writer.finish(group[-1].block.computed, group[0].block.statistics, manifest.table, manifest.settings)


def _merge_files(group: Sequence[_Source]) -> tuple[pa.Table, list[np.ndarray]]:
    """All data files once, and for each block the new ordinals of its old ones."""
    positions: dict[FileKey, int] = {}
    ordinals = []
    for source in group:
        new = [positions.setdefault(key, len(positions)) for key in source.identities]
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
            places = {key: i for i, key in enumerate(read_file_keys(store.get(snapshot.table_files, FileKey._fields)))}
    except DamagedObject as damage:
        _LOG.warning("data files keep their order: %s", damage)
    order = np.argsort([places.get(key, len(places)) for key in read_file_keys(files)], kind="stable")
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


def _shared_columns(group: Sequence[_Source]) -> tuple[tuple[Column, ...], list[np.ndarray]]:
    """The columns of all blocks, by their later names, and for each block the new ordinals of its own ones."""
    longest = max((source.block.columns for source in reversed(group)), key=len)
    places: dict[tuple[str | None, ...], int] = {}
    named: dict[int, Column] = {}
    for columns in (longest, *(source.block.columns for source in group)):
        for column in columns:
            named[places.setdefault(_identity(column), len(places))] = column
    ordinals = [np.array([places[_identity(one)] for one in source.block.columns], np.int32) for source in group]
    return tuple(named[place] for place in range(len(named))), ordinals


def _winners(
    group: Sequence[_Source], parts: Sequence[BlockMapping], shape: tuple[int, int], store: Store
) -> np.ndarray:
    """Which block's row is kept, by column and data file; -1 where there is none."""
    found = np.full(shape, -1, np.int16)
    for at, (source, part) in enumerate(zip(group, parts, strict=True)):
        for ref in source.block.summary:
            columns, files, _ = _placed(ref.object, part, lambda ref: store.get(ref, ["column", "file"]))
            found[columns[files >= 0], files[files >= 0]] = at
    return found


def _placed(
    ref: ObjectRef, part: BlockMapping, read: Callable[[ObjectRef], pa.Table]
) -> tuple[np.ndarray, np.ndarray, pa.Table]:
    """The rows of a summary, with the columns and data files of the merged block that they are of."""
    with attribute_damage(part.block):
        rows = read(ref)
        _refuse_ordinals(ref, rows["file"].to_numpy(), len(part.ordinals))
        columns = part.map_columns(ref.name, rows["column"].to_numpy())
    return columns, part.ordinals[rows["file"].to_numpy()], rows


def _merge_summaries(
    writer: BlockWriter, group: Sequence[_Source], parts: Sequence[BlockMapping], store: Store
) -> None:
    read = lru_cache(_DECODED_OBJECTS)(store.get)
    held = [
        (part, ref.object, _held(part, ref))
        for source, part in zip(group, parts, strict=True)
        for ref in source.block.summary
    ]
    present = sorted(set().union(*(columns for *_, columns in held)))
    for start in range(0, len(present), writer.width):
        columns = present[start : start + writer.width]
        chosen = [(part, ref) for part, ref, has in held if not has.isdisjoint(columns)]
        writer.add(_rows_of(chosen, columns, read), columns)


def _held(part: BlockMapping, ref: SummaryRef) -> set[int]:
    with attribute_damage(part.block):
        return set(part.map_columns(ref.object.name, np.array(ref.columns, np.int32)).tolist())


def _rows_of(
    chosen: Sequence[tuple[BlockMapping, ObjectRef]], wanted: Sequence[int], read: Callable[[ObjectRef], pa.Table]
) -> pa.Table:
    found = []
    for part, ref in chosen:
        columns, files, rows = _placed(ref, part, read)
        rows = rows.set_column(0, rows.schema.field(0), pa.array(columns))
        rows = rows.set_column(1, rows.schema.field(1), pa.array(files))
        found.append(rows.filter(pa.array((files >= 0) & np.isin(columns, wanted))))
    rows = pa.concat_tables(found)
    keys = (rows["column"].to_numpy().astype(np.int64) << 32) | rows["file"].to_numpy()
    # np.unique keeps the first of equal keys, in order of the keys: reversed, that is the latest block's row.
    last = rows.num_rows - 1 - np.unique(keys[::-1], return_index=True)[1]
    return rows.take(last)
