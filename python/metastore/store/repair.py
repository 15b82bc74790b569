"""What is left of damaged statistics: what is sound stays, the rest is told; and of an ANALYZE that was killed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject, StoreNotWritable
from metastore.format.block_writer import BlockWriter
from metastore.format.data_files import FileKey, read_file_keys
from metastore.format.manifest import parse_block_description
from metastore.format.object_layout import ZONED_FILES
from metastore.format.object_schemas import DETAILS, FILES, SUMMARY
from metastore.format.objects import BLOCK_KEY, decode_object, identify_object
from metastore.store.contradictions import check_file_list, check_statistics
from metastore.store.verification import verify_block
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from metastore.format.manifest import Block, Manifest, RanksRef, Snapshot, SummaryRef, TableIdentity
    from metastore.format.objects import ObjectRef
    from metastore.store.table_store import Store

    ColumnKeys = frozenset[tuple[str, str]]
    """Keys and types of columns."""


_LOG = get_logger(__name__)
_LISTS = "frequencies"
_OPTIONAL = ("summary", "sketches", "histograms", "placed")
"""The single objects that an entry may lack."""


@dataclass(frozen=True)
class LostStatistics:
    """What a damaged block told, and nothing tells any more.

    Attributes:
        files: Of these data files; None: its list of files was damaged, so that nothing is left.
        columns: The names of columns of which all is lost.
        kinds: The kinds of details that are lost.
    """

    files: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Salvage:
    """What is left of a damaged block.

    Attributes:
        block: A block with all of it; None where nothing is left, or nothing is of use.
        lost: What is lost, if anything is.
    """

    block: Block | None
    lost: LostStatistics | None


def salvage_block(
    store: Store,
    manifest: Manifest,
    block: Block,
    elsewhere: Callable[[FileKey], ColumnKeys | None],
    *,
    wrong: Collection[str] | None = None,
    zoned: int = ZONED_FILES,
) -> Salvage:
    """Write a block with what is sound of a damaged one.

    Data files of which all that the block may tell is known elsewhere are left out. Without its list of data files
    nothing is left of it.
    """
    if wrong is None:
        wrong = {found.object for found in verify_block(store, block) if found.is_wrong}
    listed = _listed(store, block)
    if listed is None:
        return Salvage(None, LostStatistics() if _has_unknown_files(store, manifest, elsewhere) else None)
    known = list(map(elsewhere, read_file_keys(listed)))
    untold = _untold(block, known)
    kept = listed.filter(pa.array([one is not None for one in untold], pa.bool_()))
    if not kept.num_rows:
        return Salvage(None, None)
    gone = np.array([of is None for of, one in zip(known, untold, strict=True) if one is not None])
    columns = frozenset[tuple[str, str]]().union(*(one for one in untold if one is not None))
    return _Remains(store, block, wrong, kept).written(manifest, columns, gone, zoned)


def repair_snapshot(entry: Snapshot, wrong: Collection[str]) -> Snapshot | None:
    """A snapshot's entry without objects that are damaged; None where nothing is left of it.

    Lists of values stay together: that one is missing would say that its values occur nowhere.
    """
    if entry.table_files.name in wrong:
        return None

    def sound(ref: ObjectRef | None) -> ObjectRef | None:
        return None if ref is None or ref.name in wrong else ref

    whole: dict[str, Any] = {name: sound(getattr(entry, name)) for name in _OPTIONAL}
    if any(ref.object.name in wrong for ref in entry.frequencies):
        whole |= {"frequencies": (), "distribution": (), "placed": None}
    return replace(entry, **whole, ranks=_sound_ranks(entry.ranks, wrong))


def list_lost_parts(entry: Snapshot, wrong: Collection[str]) -> tuple[str, ...] | None:
    """What `repair_snapshot` takes from an entry, in the words of a manifest; None: all of it."""
    after = repair_snapshot(entry, wrong)
    if after is None:
        return None
    return tuple(name for name in (*_OPTIONAL, "frequencies", "ranks") if getattr(after, name) != getattr(entry, name))


def _sound_ranks(ranks: Sequence[RanksRef], wrong: Collection[str]) -> tuple[RanksRef, ...]:
    lost = {ordinal for ref in ranks if ref.object.name in wrong for ordinal in ref.columns}
    kept = []
    for ref in ranks:
        columns = tuple(ordinal for ordinal in ref.columns if ordinal not in lost)
        if columns:
            kept.append(replace(ref, columns=columns, before_first=tuple(map(ref.before, columns))))
    return tuple(kept)


def _listed(store: Store, block: Block) -> pa.Table | None:
    """The data files of a block in the order of their ordinals, None where they are not known."""
    try:
        listed = store.get(block.files).sort_by("file")
    except DamagedObject as damage:
        _LOG.warning("nothing is left of block %s: %s", block.id, damage)
        return None
    return None if check_file_list(listed) else listed


def _has_unknown_files(store: Store, manifest: Manifest, elsewhere: Callable[[FileKey], ColumnKeys | None]) -> bool:
    """Whether a snapshot lists data files that no other block is known to tell of."""
    for entry in manifest.snapshots:
        try:
            keys = read_file_keys(store.get(entry.table_files, FileKey._fields))
        except DamagedObject as damage:
            _LOG.warning("it is not known which data files snapshot %s has: %s", entry.id, damage)
            return True
        if any(elsewhere(key) is None for key in keys):
            return True
    return False


def _untold(block: Block, elsewhere: Sequence[ColumnKeys | None]) -> list[ColumnKeys | None]:
    """For each data file the columns that no other block tells of; None where others tell all."""
    own = frozenset((column.key, column.type) for column in block.columns)
    left: dict[ColumnKeys | None, ColumnKeys | None] = {None: own}
    found = []
    for known in elsewhere:
        if known not in left:
            left[known] = own - known if known is not None and own - known else None
        found.append(left[known])
    return found


class _Remains:
    """A block that is written again without its damaged objects."""

    def __init__(self, store: Store, block: Block, wrong: Collection[str], kept: pa.Table) -> None:
        self._store, self._block, self._wrong = store, block, wrong
        self._ordinals = np.full(block.files.rows, -1, np.int32)
        self._ordinals[kept["file"].to_numpy()] = np.arange(kept.num_rows)
        lost = pa.array(sorted(wrong), pa.string())
        self._damaged = {kind: pc.is_in(kept[f"{kind}_name"], lost) for kind in DETAILS}
        self._unlisted = np.flatnonzero(self._damaged[_LISTS].to_numpy())
        self._files = self._without_details(kept)
        self._lost: set[int] = set()

    def written(self, manifest: Manifest, untold: ColumnKeys, gone: NDArray[np.bool_], zoned: int) -> Salvage:
        """Write it; `untold` is what no other block tells, `gone` which of its data files none lists."""
        writer = BlockWriter(self._store.put, self._block.columns, self._files, zoned)
        for ref in self._block.summary:
            self._add(writer, ref)
        block = writer.finish(self._block.computed, self._block.statistics, manifest.table, manifest.settings)
        columns = (self._block.columns[ordinal] for ordinal in sorted(self._lost))
        names = tuple(column.name for column in columns if (column.key, column.type) in untold)
        hurt = {kind: damaged.to_numpy() & gone for kind, damaged in self._damaged.items()}
        paths = self._files["path"].filter(pa.array(np.logical_or.reduce([*hurt.values()]) | bool(names))).to_pylist()
        lost = LostStatistics(tuple(paths), names, tuple(kind for kind in DETAILS if hurt[kind].any()))
        return Salvage(block, lost if paths else None)

    def _without_details(self, kept: pa.Table) -> pa.Table:
        files = kept.set_column(0, FILES.field("file"), pa.array(np.arange(kept.num_rows, dtype=np.int32)))
        for kind, damaged in self._damaged.items():
            for place, field in enumerate(FILES):
                if field.name.startswith(f"{kind}_"):
                    none = pa.scalar(None, field.type)
                    files = files.set_column(place, field, pc.if_else(damaged, none, files[field.name]))
        return files

    def _add(self, writer: BlockWriter, ref: SummaryRef) -> None:
        is_wrong = ref.object.name in self._wrong
        rows = self._readable(ref)
        if not is_wrong and (self._ordinals >= 0).all() and not len(self._unlisted):
            writer.add_reference(ref, rows)
            return
        known = set(rows["column"].to_pylist())
        rows = self._without_lists(self._of_kept(rows))
        if is_wrong and check_statistics(rows, self._block.columns, ref.columns, self._files):
            rows, known = rows.slice(0, 0), set()
        if is_wrong or not known:
            self._lost.update(set(ref.columns).difference(known))
        if rows.num_rows:
            writer.add(rows, sorted(set(rows["column"].to_pylist())))

    def _of_kept(self, rows: pa.Table) -> pa.Table:
        """The rows of data files that are kept, with their new ordinals."""
        places = rows["file"].to_numpy()
        inside = (places >= 0) & (places < len(self._ordinals))
        files = np.where(inside, self._ordinals[np.where(inside, places, 0)], -1).astype(np.int32)
        return rows.set_column(1, SUMMARY.field("file"), pa.array(files)).filter(pa.array(files >= 0))

    def _readable(self, ref: SummaryRef) -> pa.Table:
        """The rows of a summary; of a damaged one those of row groups that are not."""
        if ref.object.name not in self._wrong:
            return self._store.get(ref.object)
        parts = [SUMMARY.empty_table()]
        try:
            part = self._store.open_part(ref.object)
        except DamagedObject as damage:
            _LOG.warning("nothing is left of it: %s", damage)
            return parts[0]
        for group in range(part.groups):
            try:
                parts.append(part.read_rows([group], SUMMARY.names))
            except DamagedObject as damage:
                _LOG.warning("row group %d is lost: %s", group, damage)
        return pa.concat_tables(parts)

    def _without_lists(self, rows: pa.Table) -> pa.Table:
        """The rows without what they say of lists of values that are lost: a list that is not there would be empty."""
        unlisted = pa.array(np.isin(rows["file"].to_numpy(), self._unlisted))
        for name, nothing in (("frequencies", "none"), ("frequencies_floor", None)):
            place, field = SUMMARY.get_field_index(name), SUMMARY.field(name)
            changed = pc.if_else(unlisted, pa.scalar(nothing, field.type), rows[name])
            rows = rows.set_column(place, field, changed)
        return rows


NEWEST = 256
OLDEST = timedelta(days=1)
"""Older blocks are left to garbage collection, which must not meet a commit that names them again."""


def find_orphan_blocks(
    store: Store,
    identity: TableIdentity,
    manifest: Manifest | None,
    *,
    settings: dict[str, Any] | None = None,
    wanted: Callable[[Block, pa.Table], bool] | None = None,
) -> list[Block]:
    """Blocks that were finished and that the manifest does not name, oldest first.

    These are blocks of an ANALYZE that was killed, of one that is still running, and blocks that were merged into
    others since. All of them are sound; `wanted` decides which of them are of use.
    """
    named = {block.files.name for block in manifest.blocks} if manifest else set()
    candidates = sorted((at, name) for name, at in store.list_objects("files").items() if name not in named)
    if not candidates:
        return []
    try:
        recent = store.read_clock() - OLDEST
    except StoreNotWritable as e:
        _LOG.info("unfinished work is passed over: %s", e)
        return []
    newest = (name for at, name in candidates[-NEWEST:] if at > recent)
    blocks = (_useful(store, name, identity, settings, wanted) for name in newest)
    return [block for block in blocks if block is not None]


def _useful(
    store: Store,
    name: str,
    identity: TableIdentity,
    settings: dict[str, Any] | None,
    wanted: Callable[[Block, pa.Table], bool] | None,
) -> Block | None:
    try:
        data = store.read_bytes(name)
        ref, texts = identify_object(name, data)
        block, table, made_with = parse_block_description(texts.get(BLOCK_KEY, ""), ref)
        if table.uuid != identity.uuid or settings not in (None, made_with):
            return None
        if wanted is not None and not wanted(block, decode_object(ref, data)):
            return None
        for summary in block.summary:
            store.get(summary.object, ["column", "file"])
        for zones in block.zones:
            store.get(zones.object, ["column", "zone"])
    except DamagedObject as e:
        _LOG.info("%s is passed over: %s", name, e)
        return None
    return block
