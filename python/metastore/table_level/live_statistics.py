"""Table level: the reduction of what is known of the live files of one snapshot."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.manifest import FULL
from metastore.format.object_schemas import DETAILS, SUMMARY
from metastore.format.sortable_values import value_width
from metastore.format.table_column import Column, decimal_type, is_compatible
from metastore.kernel.distinct_sketch import DistinctSketch, make_sketches, parse_sketches
from metastore.kernel.value_counts import COMPLETE
from metastore.store.block_files import DEPTHS, BlockFiles, attribute_damage
from metastore.store.prefetch import prefetch
from metastore.table_level.column_groups import ColumnGroups, ReductionInput, reduce_groups
from metastore.table_level.detail_selection import DetailSelection, DetailSlice, read_detail_object
from metastore.table_level.group_tree import FileGroups, digest_of_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.adapters.table_facts import DataFile
    from metastore.format.data_files import FileKey
    from metastore.format.manifest import SummaryRef
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.store import Store
    from metastore.table_level.column_groups import Words
    from metastore.table_level.group_cache import GroupCache


T = TypeVar("T")

_ROWS_AT_ONCE = 200_000
_FEWEST_COLUMNS = 16
_SKETCHES = ["column", "file", "theta", "registers"]
_VALUES = ["column", "file", "value_long", "value_double", "value_binary"]
_ALL = [name for name in SUMMARY.names if name != "extra"]
_SOME = [name for name in _ALL if not name.startswith("percentiles_")]
_NOTHING = pa.schema([SUMMARY.field(name) for name in _ALL]).empty_table()


@dataclass(frozen=True)
class RowSource:
    """Where some rows of a column come from.

    Attributes:
        ordinal: The column's place in the block.
        files: The ordinals of the rows' data files in the block.
    """

    indexed: BlockFiles
    ordinal: int
    files: NDArray[np.int64]


@dataclass(frozen=True)
class ColumnLevel:
    """What is known of one column.

    Attributes:
        rows: Rows of the `summary` schema, one for each file with statistics; percentiles may be missing.
        computed: `full` or `footer`: the deepest among the rows.
        sources: Where the rows come from, in their order.
        statistics: What they were merged to.
        groups: How, with the groups of files that were merged anew.
        order: The rows as the groups have them: by the path of their files.
    """

    column: Column
    rows: pa.Table
    computed: str
    sources: tuple[RowSource, ...]
    statistics: ColumnStatistics
    groups: ColumnGroups
    order: NDArray[np.int64]


@dataclass
class _Found:
    """Rows of one column as they are met.

    Attributes:
        computed: The deepest among the rows.
        rows: Of each source.
    """

    column: Column
    computed: str
    rows: list[pa.Table] = field(default_factory=list)
    sources: list[RowSource] = field(default_factory=list)

    def add(self, rows: pa.Table, source: RowSource) -> None:
        self.rows.append(_widened(rows, self.column) if self.is_narrow(source) else rows)
        self.sources.append(source)

    def is_narrow(self, source: RowSource) -> bool:
        """Whether the rows were written under a narrower type."""
        return source.indexed.block.columns[source.ordinal].type != self.column.type

    def chosen(self, places: NDArray[np.int64]) -> list[RowSource]:
        """The sources of some rows only."""
        ends = np.cumsum([0, *(len(source.files) for source in self.sources)])
        cuts = np.searchsorted(places, ends).tolist()
        return [
            replace(source, files=source.files[places[start:end] - first])
            for source, first, (start, end) in zip(self.sources, ends.tolist(), pairwise(cuts), strict=False)
        ]


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
        """Look where statistics are; nothing is read yet."""
        self._store = store
        self._nodes = nodes
        self._live = {file.key: place for place, file in enumerate(files)}
        self._ranks = np.zeros(len(files), np.int64)
        self._ranks[[self._live[key] for key in sorted(self._live)]] = np.arange(len(self._live))
        ranked = sorted(enumerate(blocks), key=lambda item: (DEPTHS[item[1].block.computed], item[0]), reverse=True)
        self._blocks = [indexed for _, indexed in ranked if not indexed.ordinals.keys().isdisjoint(self._live)]
        self._places = {one.block.id: find_live_places(one, self._live) for one in self._blocks}
        self._orders: dict[bytes, tuple[NDArray[np.int64], FileGroups]] = {}
        self._identities = {one.block.id: _identities(one) for one in self._blocks}

    def read_columns(self, columns: Sequence[Column]) -> Iterator[ColumnLevel]:
        """Read what is known of columns, a few at a time, and merge it."""
        step = max(_FEWEST_COLUMNS, _ROWS_AT_ONCE // max(len(self._live), 1))
        for start in range(0, len(columns), step):
            yield from self._known(columns[start : start + step])

    def read_user_defined(
        self, columns: Sequence[Column]
    ) -> Iterator[tuple[BlockFiles, Column, list[int], list[dict[str, bytes]]]]:
        """Read user-defined statistics, those of the latest blocks first: places of live files, and what each has."""
        by_type = {(column.key, column.type): column for column in columns}
        wanted = []
        for indexed in self._blocks:
            if indexed.block.computed == FULL and indexed.block.statistics:
                known = (by_type.get((one.key, one.type)) for one in indexed.block.columns)
                wanted.append((indexed, {at: column for at, column in enumerate(known) if column is not None}))
        for indexed, column, _, files, rows in self._summaries(wanted, ["column", "file", "extra"]):
            places = self._places[indexed.block.id][files]
            live = rows.filter(pa.array(places >= 0))
            yield indexed, column, places[places >= 0].tolist(), [dict(one or ()) for one in live["extra"].to_pylist()]

    def _known(self, columns: Sequence[Column]) -> Iterator[ColumnLevel]:
        # Where nothing was merged before, all is read at once.
        found = self._found(columns, _SOME if self._nodes else _ALL)
        merges = [self._merge(one) for one in found]
        places = [np.sort(order[merge.files_to_read]) for order, merge in merges]
        wanted = [one.chosen(some) for one, some in zip(found, places, strict=True)]
        sketches = self._sketches(found, wanted, places)
        again = self._again(found, wanted) if self._nodes else None
        given = []
        for at, (one, (order, merge)) in enumerate(zip(found, merges, strict=True)):
            rows = pa.concat_tables(one.rows)
            chosen = rows if again is None else again[at]
            by_path = np.searchsorted(places[at], order[merge.files_to_read])
            in_order = chosen if (by_path[1:] > by_path[:-1]).all() else chosen.take(pa.array(by_path))
            given.append(ReductionInput(rows, in_order, [sketches[at][row] for row in by_path.tolist()]))
        reduced = reduce_groups([merge for _, merge in merges], given)
        for one, of_column, known, (order, merge) in zip(found, given, reduced, merges, strict=True):
            yield ColumnLevel(one.column, of_column.every, one.computed, tuple(one.sources), known, merge, order)

    def _found(self, columns: Sequence[Column], names: Sequence[str]) -> list[_Found]:
        """The rows of live files, each from the best block that has it."""
        by_key = {column.key: column for column in columns}
        found: dict[str, _Found] = {}
        taken = {key: np.zeros(len(self._live), bool) for key in by_key}
        wanted = ((indexed, _serving(indexed.block.columns, by_key)) for indexed in self._blocks)
        for indexed, column, ordinal, given, rows in self._summaries(wanted, names):
            chosen, files = _fresh(rows, given, self._places[indexed.block.id], taken[column.key])
            if len(files):
                one = found.setdefault(column.key, _Found(column, indexed.block.computed))
                one.add(chosen, RowSource(indexed, ordinal, files))
        return [found[key] for key in by_key if key in found]

    def _merge(self, one: _Found) -> tuple[NDArray[np.int64], ColumnGroups]:
        """The order of a column's rows by path, and how they are merged in it."""
        sources = b"".join(source.indexed.block.id.encode() + source.files.tobytes() for source in one.sources)
        if sources not in self._orders:  # mostly columns have the same files
            self._orders = {sources: self._order(one)}
        order, groups = self._orders[sources]
        return order, ColumnGroups(one.column, groups, self._nodes)

    def _order(self, one: _Found) -> tuple[NDArray[np.int64], FileGroups]:
        places, words = (
            np.concatenate([of_block[source.indexed.block.id][source.files] for source in one.sources])
            for of_block in (self._places, self._identities)
        )
        order = np.argsort(self._ranks[places], kind="stable")
        return order, FileGroups(words[order])

    def _again(self, found: Sequence[_Found], wanted: Sequence[Sequence[RowSource]]) -> list[pa.Table]:
        """The wanted rows of each column, with everything in them."""
        full = [_Found(one.column, one.computed) for one in found]
        for _, (at, source), _, files, rows in self._summaries(self._by_block(wanted), _ALL):
            full[at].add(rows.filter(pa.array(np.isin(files, source.files))), source)
        return [pa.concat_tables([_NOTHING, *one.rows]) for one in full]

    def _summaries(
        self, wanted: Iterable[tuple[BlockFiles, Mapping[int, T]]], names: Sequence[str]
    ) -> Iterator[tuple[BlockFiles, T, int, NDArray[np.int64], pa.Table]]:
        """The rows of columns of blocks: the block, what is given for the column, its ordinal, the files, the rows."""

        def read(part: tuple[BlockFiles, Mapping[int, T], SummaryRef]) -> pa.Table:
            with attribute_damage(part[0].block.id):
                return self._store.get(part[2].object, names)

        parts = [
            (indexed, columns, ref)
            for indexed, columns in wanted
            for ref in indexed.block.summary
            if not columns.keys().isdisjoint(ref.columns)
        ]
        for (indexed, columns, ref), table in zip(parts, prefetch(read, parts), strict=True):
            ordinals, files = (table.column(name).to_numpy().astype(np.int64) for name in ("column", "file"))
            held = sorted(columns.keys() & set(ref.columns))
            starts, ends = (ordinals.searchsorted(held, side).tolist() for side in ("left", "right"))
            for ordinal, start, end in zip(held, starts, ends, strict=True):
                yield indexed, columns[ordinal], ordinal, files[start:end], table.slice(start, end - start)

    def _sketches(
        self, found: Sequence[_Found], wanted: Sequence[Sequence[RowSource]], places: Sequence[NDArray[np.int64]]
    ) -> list[list[DistinctSketch | None]]:
        """The sketches of the wanted rows of each column: those that are stored, others of complete lists."""
        made: list[list[DistinctSketch | None]] = [[None] * len(some) for some in places]
        # Sketches of a narrower type hold other hashes.
        rows = [_number_rows(one, sources) for one, sources in zip(found, wanted, strict=True)]
        for part, table in self._details("sketches", wanted, rows, _SKETCHES):
            stored, columns, numbers = part.select_rows(table)
            sketches = parse_sketches(*(stored[name].to_pylist() for name in ("theta", "registers")))
            for column, number, sketch in zip(columns.tolist(), numbers.tolist(), sketches, strict=True):
                made[column][number] = sketch
        unmade = [
            np.where(_are_complete(one, at) & np.array([sketch is None for sketch in known], np.bool_), numbers, -1)
            for one, at, known, numbers in zip(found, places, made, rows, strict=True)
        ]
        for part, table in self._details("frequencies", wanted, unmade, _VALUES):
            listed, columns, numbers = part.select_rows(table)
            for column in np.unique(columns).tolist():
                of_column = columns == column
                name = f"value_{found[column].column.encoding}"
                values = listed[name].filter(pa.array(of_column)).combine_chunks()
                for number, sketch in make_sketches(values, numbers[of_column], found[column].column):
                    made[column][number] = sketch
        return made

    def _details(
        self,
        kind: str,
        wanted: Sequence[Sequence[RowSource]],
        numbers: Sequence[NDArray[np.int64]],
        names: Sequence[str],
    ) -> Iterator[tuple[DetailSlice, pa.Table]]:
        """The detail objects that hold rows of columns, with their rows."""
        selection = DetailSelection(kind)
        for at, (sources, of_column) in enumerate(zip(wanted, numbers, strict=True)):
            selection.add(at, sources, of_column)
        parts = list(selection.make_slices())
        yield from zip(parts, prefetch(lambda part: self._stored(part, names), parts), strict=True)

    def _stored(self, part: DetailSlice, names: Sequence[str]) -> pa.Table:
        with attribute_damage(part.block):
            return read_detail_object(part, partial(self._store.read_bytes, part.name), names)

    def _by_block(
        self, wanted: Sequence[Sequence[RowSource]]
    ) -> Iterator[tuple[BlockFiles, dict[int, tuple[int, RowSource]]]]:
        """The sources with files of each block, by ordinal, with the place of their column in what is wanted.

        Blocks come in the order in which every column has its sources.
        """
        of_blocks: dict[str, dict[int, tuple[int, RowSource]]] = defaultdict(dict)
        for at, sources in enumerate(wanted):
            for source in sources:
                if len(source.files):
                    of_blocks[source.indexed.block.id][source.ordinal] = (at, source)
        for indexed in self._blocks:
            if indexed.block.id in of_blocks:
                yield indexed, of_blocks[indexed.block.id]


def _are_complete(found: _Found, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the lists of values that some rows tell of are complete."""
    kinds = pa.concat_tables([rows.select(["frequencies"]) for rows in found.rows]).column("frequencies")
    return np.asarray(pc.equal(kinds, COMPLETE).to_numpy())[places]


def _number_rows(found: _Found, sources: Sequence[RowSource]) -> NDArray[np.int64]:
    """The places of a column's rows; -1: it was written under a narrower type."""
    lengths = [len(source.files) for source in sources]
    narrow = np.repeat([found.is_narrow(source) for source in sources], lengths)
    return np.where(narrow, -1, np.arange(len(narrow)))


def _serving(held: Sequence[Column], wanted: Mapping[str, Column]) -> dict[int, Column]:
    """The wanted columns that a block's tell of, by their ordinals in it."""
    return {
        ordinal: wanted[column.key]
        for ordinal, column in enumerate(held)
        if column.key in wanted and is_compatible(column, wanted[column.key])
    }


def find_live_places(indexed: BlockFiles, live: Mapping[FileKey, int]) -> NDArray[np.int64]:
    """For each data file of a block its place among the live ones; -1: it is gone."""
    places = np.full(indexed.files.num_rows, -1, np.int64)
    for key, ordinal in indexed.ordinals.items():
        places[ordinal] = live.get(key, -1)
    return places


def _identities(indexed: BlockFiles) -> Words:
    """What tells each file of a block, and what is known of it, from all others; details tell one run from another."""
    mapped = [column.mapped_key for column in indexed.block.columns if column.mapped_key]
    computed = (indexed.block.computed, *mapped)
    details = (f"{kind}_{name}" for kind in DETAILS for name in ("sha256", "file"))
    names = ("file", "path", "size", "modified", *details)
    found = np.empty((indexed.files.num_rows, 2), np.uint64)
    for file, *facts in zip(*(indexed.files.column(name).to_pylist() for name in names), strict=True):
        found[file] = np.frombuffer(digest_of_facts(*computed, *facts), np.uint64)
    return found


def _fresh(
    rows: pa.Table, files: NDArray[np.int64], places: NDArray[np.int64], taken: NDArray[np.bool_]
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Keep the rows of live files that no better block has given, and mark them as given."""
    live = places[files]
    keep = (live >= 0) & ~taken[live]
    taken[live[keep]] = True
    if keep.all():
        return rows, files
    return rows.filter(pa.array(keep)), files[keep]


def _widened(rows: pa.Table, column: Column) -> pa.Table:
    """Rows written under a narrower type: values are stored alike, only their lengths are others."""
    if decimal_type(column.type) is not None:
        return rows
    for name in ("avg_len", "max_len"):
        place = rows.schema.get_field_index(name)
        kind = rows.schema.field(place)
        length = pc.if_else(rows.column(name).is_valid(), pa.scalar(value_width(column), kind.type), None)
        rows = rows.set_column(place, kind, length.cast(kind.type))
    return rows
