"""Repair of damaged statistics, in which sound parts remain; and the blocks of an ANALYZE that was killed."""

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
    from metastore.store.table_store import Store

    ColumnKeys = frozenset[tuple[str, str]]
    """Keys and types of columns."""


_LOG = get_logger(__name__)
_VALUE_LISTS = "frequencies"
_OPTIONAL = ("summary", "sketches", "histograms", "placed")
"""The single objects that an entry may lack."""


@dataclass(frozen=True)
class LostStatistics:
    """Statistics that only a damaged block had.

    Attributes:
        files: The paths of their data files; None if the block's list of files was damaged, so that all is lost.
        columns: The names of columns that lost all statistics.
        kinds: The kinds of details that are lost.
    """

    files: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Salvage:
    """The sound parts of a damaged block.

    Attributes:
        block: A block of them; None if there are none, or none of use.
        lost: The lost statistics, if any.
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
    """Write a block with the sound parts of a damaged one.

    Data files are left out if other blocks have all columns that this block may have. Without its list of data files
    nothing of the block remains.

    Args:
        store: The store.
        manifest: The manifest that names the block.
        block: The block.
        elsewhere: Returns the columns that other blocks have of a data file; None if they have none.
        wrong: The names of damaged objects, if they are known.
        zoned: Blocks of more data files have zones.
    """
    if wrong is None:
        wrong = {finding.object for finding in verify_block(store, block) if finding.is_wrong}
    files = _read_files(store, block)
    if files is None:
        lost = LostStatistics() if _has_unknown_files(store, manifest, elsewhere) else None
        return Salvage(None, lost)
    columns_elsewhere = list(map(elsewhere, read_file_keys(files)))
    unique_columns = _find_unique_columns(block, columns_elsewhere)
    has_unique = np.array([columns is not None for columns in unique_columns], np.bool_)
    if not has_unique.any():
        return Salvage(None, None)
    is_nowhere_else = np.array([columns is None for columns in columns_elsewhere], np.bool_)
    rewriter = _Rewriter(store, block, wrong, files.filter(pa.array(has_unique)))
    all_unique = frozenset[tuple[str, str]]().union(*filter(None, unique_columns))
    return rewriter.write(manifest, all_unique, is_nowhere_else[has_unique], zoned)


def repair_snapshot(entry: Snapshot, wrong: Collection[str]) -> Snapshot | None:
    """Remove damaged objects from a snapshot's entry; None if nothing remains.

    Lists of values stay together: a missing one would say that its values occur nowhere.
    """
    if entry.table_files.name in wrong:
        return None
    changes: dict[str, Any] = dict.fromkeys(_find_wrong_parts(entry, wrong))
    if any(ref.object.name in wrong for ref in entry.frequencies):
        changes |= {"frequencies": (), "distribution": (), "placed": None}
    return replace(entry, **changes, ranks=_select_sound_ranks(entry.ranks, wrong))


def _find_wrong_parts(entry: Snapshot, wrong: Collection[str]) -> list[str]:
    parts = []
    for part in _OPTIONAL:
        ref = getattr(entry, part)
        if ref is not None and ref.name in wrong:
            parts.append(part)
    return parts


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
    for ref in ranks:
        if ref.object.name in wrong:
            lost.update(ref.columns)
    sound_ranks = []
    for ref in ranks:
        columns = tuple(ordinal for ordinal in ref.columns if ordinal not in lost)
        if columns:
            before_first = tuple(map(ref.before, columns))
            sound_ranks.append(replace(ref, columns=columns, before_first=before_first))
    return tuple(sound_ranks)


def _read_files(store: Store, block: Block) -> pa.Table | None:
    """Read the data files of a block in the order of their ordinals; None if they are unknown."""
    try:
        files = store.get(block.files).sort_by("file")
    except DamagedObject as damage:
        _LOG.warning("nothing is left of block %s: %s", block.id, damage)
        return None
    return None if check_file_list(files) else files


def _has_unknown_files(store: Store, manifest: Manifest, elsewhere: Callable[[FileKey], ColumnKeys | None]) -> bool:
    """Whether a snapshot lists data files of which other blocks have no statistics, or an unknown list."""
    for entry in manifest.snapshots:
        try:
            keys = read_file_keys(store.get(entry.table_files, FileKey._fields))
        except DamagedObject as damage:
            _LOG.warning("it is not known which data files snapshot %s has: %s", entry.id, damage)
            return True
        if any(elsewhere(key) is None for key in keys):
            return True
    return False


def _find_unique_columns(block: Block, columns_elsewhere: Sequence[ColumnKeys | None]) -> list[ColumnKeys | None]:
    """Find for each data file the columns that no other block has; None if others have all."""
    columns = frozenset((column.key, column.type) for column in block.columns)
    cache: dict[ColumnKeys | None, ColumnKeys | None] = {None: columns}  # most data files have the same columns
    unique_columns = []
    for other_columns in columns_elsewhere:
        if other_columns is not None and other_columns not in cache:
            cache[other_columns] = columns - other_columns or None
        unique_columns.append(cache[other_columns])
    return unique_columns


class _Rewriter:
    """Writes a block again without its damaged objects.

    Args:
        store: The store.
        block: The block.
        wrong: The names of damaged objects.
        files: The rows of the block's `files` that remain.
    """

    def __init__(self, store: Store, block: Block, wrong: Collection[str], files: pa.Table) -> None:
        self._store = store
        self._block = block
        self._wrong = wrong
        self._new_ordinals = np.full(block.files.rows, -1, np.int32)
        self._new_ordinals[files["file"].to_numpy()] = np.arange(files.num_rows)
        wrong_names = pa.array(sorted(wrong), pa.string())
        self._lost_details = {kind: pc.is_in(files[f"{kind}_name"], wrong_names) for kind in DETAILS}
        self._files_without_lists = np.flatnonzero(self._lost_details[_VALUE_LISTS].to_numpy())
        self._files = self._remove_details(files)
        self._lost_columns: set[int] = set()

    def write(
        self, manifest: Manifest, unique_columns: ColumnKeys, is_nowhere_else: NDArray[np.bool_], zoned: int
    ) -> Salvage:
        """Write the block.

        Args:
            manifest: The manifest that names the block.
            unique_columns: The columns that no other block has.
            is_nowhere_else: A mask of the data files that no other block lists.
            zoned: Blocks of more data files have zones.
        """
        writer = BlockWriter(self._store.put, self._block.columns, self._files, zoned)
        for ref in self._block.summary:
            self._add_summary(writer, ref)
        block = writer.finish(self._block.computed, self._block.statistics, manifest.table, manifest.settings)
        return Salvage(block, self._describe_lost(unique_columns, is_nowhere_else))

    def _describe_lost(self, unique_columns: ColumnKeys, is_nowhere_else: NDArray[np.bool_]) -> LostStatistics | None:
        names = []
        for ordinal in sorted(self._lost_columns):
            column = self._block.columns[ordinal]
            if (column.key, column.type) in unique_columns:
                names.append(column.name)
        has_lost = np.full(self._files.num_rows, bool(names))
        kinds = []
        for kind in DETAILS:
            has_lost_kind = self._lost_details[kind].to_numpy() & is_nowhere_else
            has_lost |= has_lost_kind
            if has_lost_kind.any():
                kinds.append(kind)
        if not has_lost.any():
            return None
        paths = self._files["path"].filter(pa.array(has_lost)).to_pylist()
        return LostStatistics(tuple(paths), tuple(names), tuple(kinds))

    def _remove_details(self, files: pa.Table) -> pa.Table:
        """Number the data files, and remove the names of lost details."""
        files = files.set_column(0, FILES.field("file"), pa.array(np.arange(files.num_rows, dtype=np.int32)))
        for kind, is_lost in self._lost_details.items():
            for index, field in enumerate(FILES):
                if field.name.startswith(f"{kind}_"):
                    null = pa.scalar(None, field.type)
                    files = files.set_column(index, field, pc.if_else(is_lost, null, files[field.name]))
        return files

    def _add_summary(self, writer: BlockWriter, ref: SummaryRef) -> None:
        if ref.object.name in self._wrong:
            self._add_damaged_summary(writer, ref)
            return
        rows = self._store.get(ref.object)
        if self._has_same_files():
            writer.add_reference(ref, rows)
            return
        if not rows.num_rows:
            self._lost_columns.update(ref.columns)
        self._add_rows(writer, self._remove_lists(self._select_files(rows)))

    def _add_damaged_summary(self, writer: BlockWriter, ref: SummaryRef) -> None:
        rows = self._read_readable_rows(ref)
        columns = set(rows["column"].to_pylist())
        rows = self._remove_lists(self._select_files(rows))
        if check_statistics(rows, self._block.columns, ref.columns, self._files):
            rows = rows.slice(0, 0)
            columns = set()
        self._lost_columns.update(set(ref.columns) - columns)
        self._add_rows(writer, rows)

    def _add_rows(self, writer: BlockWriter, rows: pa.Table) -> None:
        if rows.num_rows:
            writer.add(rows, sorted(set(rows["column"].to_pylist())))

    def _has_same_files(self) -> bool:
        """Whether all data files of the block remain, with their lists of values."""
        return bool((self._new_ordinals >= 0).all()) and not len(self._files_without_lists)

    def _select_files(self, rows: pa.Table) -> pa.Table:
        """Select the rows of data files that remain, with their new ordinals."""
        ordinals = rows["file"].to_numpy()
        is_listed = (ordinals >= 0) & (ordinals < len(self._new_ordinals))
        new_ordinals = self._new_ordinals[np.where(is_listed, ordinals, 0)]
        files = np.where(is_listed, new_ordinals, -1).astype(np.int32)
        return rows.set_column(1, SUMMARY.field("file"), pa.array(files)).filter(pa.array(files >= 0))

    def _read_readable_rows(self, ref: SummaryRef) -> pa.Table:
        """Read the row groups of a damaged summary that are sound."""
        try:
            part = self._store.open_part(ref.object)
        except DamagedObject as damage:
            _LOG.warning("nothing is left of it: %s", damage)
            return SUMMARY.empty_table()
        tables = [SUMMARY.empty_table()]
        for group in range(part.groups):
            try:
                tables.append(part.read_rows([group], SUMMARY.names))
            except DamagedObject as damage:
                _LOG.warning("row group %d is lost: %s", group, damage)
        return pa.concat_tables(tables)

    def _remove_lists(self, rows: pa.Table) -> pa.Table:
        """Remove the facts about lost lists of values: a list without rows would be empty."""
        has_no_lists = pa.array(np.isin(rows["file"].to_numpy(), self._files_without_lists))
        for name, default in (("frequencies", "none"), ("frequencies_floor", None)):
            field = SUMMARY.field(name)
            values = pc.if_else(has_no_lists, pa.scalar(default, field.type), rows[name])
            rows = rows.set_column(SUMMARY.get_field_index(name), field, values)
        return rows


NEWEST = 256
OLDEST = timedelta(days=1)
"""Garbage collection deletes older blocks: it must not meet a commit that names them again."""


def find_orphan_blocks(
    store: Store,
    identity: TableIdentity,
    manifest: Manifest | None,
    *,
    settings: dict[str, Any] | None = None,
    is_useful: Callable[[Block, pa.Table], bool] | None = None,
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
    blocks = []
    for modified, name in candidates[-NEWEST:]:
        if modified <= oldest:
            continue
        block = _read_orphan(store, name, identity, settings, is_useful)
        if block is not None:
            blocks.append(block)
    return blocks


def _list_candidates(store: Store, manifest: Manifest | None) -> list[tuple[Any, str]]:
    """List the time and the name of each `files` object that the manifest does not name, oldest first."""
    named = {block.files.name for block in manifest.blocks} if manifest else set()
    times = store.list_objects("files")
    return sorted((modified, name) for name, modified in times.items() if name not in named)


def _read_orphan(
    store: Store,
    name: str,
    identity: TableIdentity,
    settings: dict[str, Any] | None,
    is_useful: Callable[[Block, pa.Table], bool] | None,
) -> Block | None:
    """Read a block from its `files` object; None if it is damaged, of another table or other settings, or of no use."""
    try:
        data = store.read_bytes(name)
        ref, texts = identify_object(name, data)
        block, table, block_settings = parse_block_description(texts.get(BLOCK_KEY, ""), ref)
        if table.uuid != identity.uuid or settings not in (None, block_settings):
            return None
        if is_useful is not None and not is_useful(block, decode_object(ref, data)):
            return None
        _require_sound_objects(store, block)
    except DamagedObject as e:
        _LOG.info("%s is passed over: %s", name, e)
        return None
    return block


def _require_sound_objects(store: Store, block: Block) -> None:
    for summary in block.summary:
        store.get(summary.object, ["column", "file"])
    for zones in block.zones:
        store.get(zones.object, ["column", "zone"])
