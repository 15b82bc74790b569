"""Reads the statistics of a snapshot's live files column by column, and merges them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.manifest import FULL
from metastore.format.object_schemas import DETAILS, SUMMARY
from metastore.format.table_column import Column, is_compatible
from metastore.kernel.distinct_sketch import DistinctSketch, make_sketches, parse_sketches
from metastore.store.block_files import DEPTHS, BlockFiles, attribute_damage
from metastore.store.prefetch import prefetch
from metastore.table_level.block_summaries import RowSource, read_summaries
from metastore.table_level.column_groups import ColumnGroups, reduce_groups
from metastore.table_level.column_merge import ColumnLevel, ColumnMerge, ColumnRows
from metastore.table_level.detail_selection import DetailSelection, DetailSlice, read_detail_object
from metastore.table_level.group_tree import FileGroups, digest_of_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.data_files import DataFile, FileKey
    from metastore.store import Store
    from metastore.table_level.column_groups import Words
    from metastore.table_level.group_cache import GroupCache

    Longs = NDArray[np.int64]


_ROWS_AT_ONCE = 200_000
_FEWEST_COLUMNS = 16
_SKETCH_FIELDS = ["column", "file", "theta", "registers"]
_VALUE_FIELDS = ["column", "file", "value_long", "value_double", "value_binary"]
_ALL_FIELDS = [name for name in SUMMARY.names if name != "extra"]
_FIELDS_WITHOUT_PERCENTILES = [name for name in _ALL_FIELDS if not name.startswith("percentiles_")]
_NO_ROWS = pa.schema([SUMMARY.field(name) for name in _ALL_FIELDS]).empty_table()


@dataclass(frozen=True)
class UserDefinedRows:
    """User-defined statistics of one column that one block holds.

    Attributes:
        files: The positions of the live data files.
        values: For each of these files the stored values by the names of their statistics.
    """

    block_files: BlockFiles
    column: Column
    files: list[int]
    values: list[dict[str, bytes]]


class LiveStatistics:
    """The statistics of a snapshot's live files, read column by column.

    Of several statistics of one column of one file the deepest is taken, then that of the latest block.
    """

    def __init__(
        self,
        store: Store,
        blocks: Sequence[BlockFiles],
        files: Sequence[DataFile],
        nodes: GroupCache,
    ) -> None:
        self._store = store
        self._nodes = nodes
        self._live = {file.key: position for position, file in enumerate(files)}
        self._count = len(files)
        self._blocks: list[BlockFiles] = []
        self._positions: dict[str, Longs] = {}
        self._identities: dict[str, Words] = {}
        with_columns = [block_files for block_files in blocks if block_files.block.columns]
        for block_files in _rank_blocks(with_columns):
            if not block_files.ordinals.keys().isdisjoint(self._live):
                self._blocks.append(block_files)
                self._positions[block_files.block.id] = _find_live_positions(block_files, self._live)
                self._identities[block_files.block.id] = _identify_files(block_files)
        self._orders: dict[bytes, tuple[Longs, FileGroups]] = {}

    @cached_property
    def _path_ranks(self) -> Longs:
        """The ranks of the live files in the order of their paths."""
        # A listing gives all files a modification time, or none: None is never compared with a time.
        by_path = list(map(self._live.__getitem__, sorted(self._live)))
        ranks = np.zeros(self._count, np.int64)
        ranks[by_path] = np.arange(len(by_path))
        return ranks

    def read_columns(self, columns: Sequence[Column]) -> Iterator[ColumnLevel]:
        """Read the statistics of columns, a few columns at a time, and merge them."""
        step = max(_FEWEST_COLUMNS, _ROWS_AT_ONCE // max(len(self._live), 1))
        for start in range(0, len(columns), step):
            yield from self._merge_columns(columns[start : start + step])

    def read_user_defined(self, columns: Sequence[Column]) -> Iterator[UserDefinedRows]:
        """Read user-defined statistics, those of the latest blocks first."""
        selection = self._select_user_defined(columns)
        for part in read_summaries(self._store, selection, ["column", "file", "extra"]):
            positions = self._positions[part.block_files.block.id][part.files]
            has_values = (positions >= 0) & np.asarray(part.rows["extra"].is_valid())
            extras = part.rows["extra"].filter(pa.array(has_values)).to_pylist()
            yield UserDefinedRows(
                block_files=part.block_files,
                column=part.target,
                files=positions[has_values].tolist(),
                values=list(map(dict, extras)),
            )

    def _select_user_defined(self, columns: Sequence[Column]) -> list[tuple[BlockFiles, dict[int, Column]]]:
        """Select the blocks with user-defined statistics, each with its columns by their ordinals there."""
        by_type = {(column.key, column.type): column for column in columns}
        selection = []
        for block_files in self._blocks:
            block = block_files.block
            if block.computed == FULL and block.statistics:
                selection.append((block_files, _select_columns_by_type(block.columns, by_type)))
        return selection

    def _merge_columns(self, columns: Sequence[Column]) -> Iterator[ColumnLevel]:
        # Without stored groups every row is merged: all fields are read at once.
        fields = _ALL_FIELDS
        if self._nodes:
            fields = _FIELDS_WITHOUT_PERCENTILES
        merges = list(map(self._plan_merge, self._collect_rows(columns, fields)))
        sketches = self._read_sketches(merges)
        rows_to_merge: Sequence[pa.Table | None] = [None] * len(merges)
        if self._nodes:
            rows_to_merge = self._read_all_fields(merges)
        inputs = list(map(ColumnMerge.make_input, merges, rows_to_merge, sketches))
        reduced = reduce_groups([merge.groups for merge in merges], inputs)
        for merge, column_input, statistics in zip(merges, inputs, reduced, strict=True):
            yield merge.make_level(column_input.every, statistics)

    def _collect_rows(self, columns: Sequence[Column], names: Sequence[str]) -> list[ColumnRows]:
        """Collect the rows of live files, each from the best block that has it."""
        by_key = {column.key: column for column in columns}
        covered = {key: np.zeros(len(self._live), bool) for key in by_key}
        collected: dict[str, ColumnRows] = {}
        selection = [(block, _select_columns(block.block.columns, by_key)) for block in self._blocks]
        for part in read_summaries(self._store, selection, names):
            block = part.block_files.block
            column = part.target
            rows, files = _select_uncovered(part.rows, part.files, self._positions[block.id], covered[column.key])
            if len(files):
                column_rows = collected.setdefault(column.key, ColumnRows(column, block.computed))
                column_rows.add(rows, RowSource(part.block_files, part.ordinal, files))
        return list(filter(None, map(collected.get, by_key)))

    def _plan_merge(self, collected: ColumnRows) -> ColumnMerge:
        order, file_groups = self._order_rows(collected.sources)
        groups = ColumnGroups(collected.column, file_groups, self._nodes)
        to_merge = np.sort(order[groups.files_to_read])
        return ColumnMerge(
            collected=collected,
            order=order,
            groups=groups,
            to_merge=to_merge,
            sources=collected.select_sources(to_merge),
        )

    def _order_rows(self, sources: Sequence[RowSource]) -> tuple[Longs, FileGroups]:
        """Order the rows of these sources by path, and group their files."""
        key = b"".join(source.block_files.block.id.encode() + source.files.tobytes() for source in sources)
        if key not in self._orders:  # mostly the next column has the same files
            positions = _concatenate(self._positions, sources)
            order = np.argsort(self._path_ranks[positions], kind="stable")
            words = _concatenate(self._identities, sources)
            self._orders = {key: (order, FileGroups(words[order]))}
        return self._orders[key]

    def _read_all_fields(self, merges: Sequence[ColumnMerge]) -> list[pa.Table]:
        """Read the rows to merge of each column, with their percentiles."""
        columns = [ColumnRows(merge.collected.column, merge.collected.computed) for merge in merges]
        for part in read_summaries(self._store, self._group_by_block(merges), _ALL_FIELDS):
            number, source = part.target
            rows = part.rows.filter(pa.array(np.isin(part.files, source.files)))
            columns[number].add(rows, source)
        return [pa.concat_tables([_NO_ROWS, *column_rows.rows]) for column_rows in columns]

    def _read_sketches(self, merges: Sequence[ColumnMerge]) -> list[list[DistinctSketch | None]]:
        """Return the sketches of the rows to merge: stored ones, else those made of complete lists of values."""
        sketches: list[list[DistinctSketch | None]] = [[None] * len(merge.to_merge) for merge in merges]
        # Sketches of a narrower type hold other hashes.
        numbers = [merge.number_rows() for merge in merges]
        for part, table in self._read_details("sketches", merges, numbers, _SKETCH_FIELDS):
            stored, columns, rows = part.select_rows(table)
            parsed = parse_sketches(stored["theta"].to_pylist(), stored["registers"].to_pylist())
            for column, row, sketch in zip(columns.tolist(), rows.tolist(), parsed, strict=True):
                sketches[column][row] = sketch
        listed_numbers = list(map(ColumnMerge.number_rows_without_sketch, merges, sketches))
        for part, table in self._read_details("frequencies", merges, listed_numbers, _VALUE_FIELDS):
            for number, row, sketch in _sketch_lists(merges, part, table):
                sketches[number][row] = sketch
        return sketches

    def _read_details(
        self, kind: str, merges: Sequence[ColumnMerge], numbers: Sequence[Longs], names: Sequence[str]
    ) -> Iterator[tuple[DetailSlice, pa.Table]]:
        """Read the detail objects that hold rows to merge."""
        selection = DetailSelection(kind)
        for column, (merge, row_numbers) in enumerate(zip(merges, numbers, strict=True)):
            selection.add(column, merge.sources, row_numbers)
        parts = list(selection.make_slices())
        tables = prefetch(partial(self._read_detail, names=names), parts)
        yield from zip(parts, tables, strict=True)

    def _read_detail(self, part: DetailSlice, names: Sequence[str]) -> pa.Table:
        with attribute_damage(part.block):
            return read_detail_object(part, partial(self._store.read_bytes, part.name), names)

    def _group_by_block(
        self, merges: Sequence[ColumnMerge]
    ) -> Iterator[tuple[BlockFiles, dict[int, tuple[int, RowSource]]]]:
        """Group the sources of the rows to merge by block and ordinal, each with the number of its column.

        Blocks come in the order in which every column has its sources.
        """
        by_block: dict[str, dict[int, tuple[int, RowSource]]] = defaultdict(dict)
        for number, merge in enumerate(merges):
            for source in merge.sources:
                if len(source.files):
                    by_block[source.block_files.block.id][source.ordinal] = (number, source)
        for block_files in self._blocks:
            if block_files.block.id in by_block:
                yield block_files, by_block[block_files.block.id]


def _sketch_lists(
    merges: Sequence[ColumnMerge], part: DetailSlice, table: pa.Table
) -> Iterator[tuple[int, int, DistinctSketch]]:
    """Make sketches of the selected lists of values; each with the numbers of its column and row."""
    listed, columns, rows = part.select_rows(table)
    for number in np.unique(columns).tolist():
        column = merges[number].collected.column
        in_column = columns == number
        values = listed[f"value_{column.encoding}"].filter(pa.array(in_column)).combine_chunks()
        for row, sketch in make_sketches(values, rows[in_column], column):
            yield number, row, sketch


def _rank_blocks(blocks: Sequence[BlockFiles]) -> list[BlockFiles]:
    """Return the deepest blocks first, and of equally deep ones the latest."""
    latest_first = reversed(blocks)
    return sorted(latest_first, key=lambda block_files: DEPTHS[block_files.block.computed], reverse=True)


def _concatenate(of_blocks: Mapping[str, NDArray[Any]], sources: Sequence[RowSource]) -> NDArray[Any]:
    """Return the values of the sources' files, from an array for each block."""
    return np.concatenate([of_blocks[source.block_files.block.id][source.files] for source in sources])


def _select_columns(block_columns: Sequence[Column], columns: Mapping[str, Column]) -> dict[int, Column]:
    """Return the columns whose statistics a block has, by their ordinals in the block."""
    selected = {}
    for ordinal, block_column in enumerate(block_columns):
        column = columns.get(block_column.key)
        if column is not None and is_compatible(block_column, column):
            selected[ordinal] = column
    return selected


def _select_columns_by_type(
    block_columns: Sequence[Column], columns: Mapping[tuple[str, str], Column]
) -> dict[int, Column]:
    """Return the columns that a block has in the same type, by their ordinals in the block."""
    selected = {}
    for ordinal, block_column in enumerate(block_columns):
        column = columns.get((block_column.key, block_column.type))
        if column is not None:
            selected[ordinal] = column
    return selected


def _find_live_positions(block_files: BlockFiles, live: Mapping[FileKey, int]) -> Longs:
    """Return for each data file of a block its position among the live ones, or -1."""
    positions = np.full(block_files.files.num_rows, -1, np.int64)
    for key, ordinal in block_files.ordinals.items():
        positions[ordinal] = live.get(key, -1)
    return positions


def _identify_files(block_files: BlockFiles) -> Words:
    """Return a digest of each data file of a block and its statistics; the details' digests differ from run to run."""
    block = block_files.block
    mapped = [column.mapped_key for column in block.columns if column.mapped_key]
    names = ["file", "path", "size", "modified"]
    for kind in DETAILS:
        names += [f"{kind}_sha256", f"{kind}_file"]
    columns = [block_files.files.column(name).to_pylist() for name in names]
    identities = np.empty((block_files.files.num_rows, 2), np.uint64)
    for file, *facts in zip(*columns, strict=True):
        digest = digest_of_facts(block.computed, *mapped, *facts)
        identities[file] = np.frombuffer(digest, np.uint64)
    return identities


def _select_uncovered(
    rows: pa.Table, files: Longs, positions: Longs, covered: NDArray[np.bool_]
) -> tuple[pa.Table, Longs]:
    """Select the rows of live files that no better block covers, and mark these files as covered."""
    live = positions[files]
    is_new = (live >= 0) & ~covered[live]
    covered[live[is_new]] = True
    if is_new.all():
        return rows, files
    return rows.filter(pa.array(is_new)), files[is_new]
