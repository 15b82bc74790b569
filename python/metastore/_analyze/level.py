"""Table level: the reduction of what is known of the live files of one snapshot."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore._analyze.coverage import DEPTHS, DamagedBlock
from metastore._analyze.kernel.stored import width
from metastore._format.columns import decimal_type, serves
from metastore._format.objects import decode, unnamed
from metastore._format.schemas import SUMMARY
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from metastore._analyze.coverage import IndexedBlock
    from metastore._format.columns import Column
    from metastore._format.objects import ObjectRef
    from metastore._store import Store
    from metastore._tables.model import DataFile

_ROWS_AT_ONCE = 200_000
_FEWEST_COLUMNS = 16


@dataclass(frozen=True)
class Source:
    """Where some rows of a column come from.

    Attributes:
        indexed: The block.
        ordinal: The column's place in the block.
        files: The ordinals of the rows' data files in the block.
    """

    indexed: IndexedBlock
    ordinal: int
    files: NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """What is known of one column.

    Attributes:
        column: The column.
        rows: Rows of the `summary` schema, one for each file with statistics.
        thetas: Sketch of each of these rows, or None.
        computed: `full` or `footer`: the deepest among the rows.
        sources: Where the rows come from, in their order.
    """

    column: Column
    rows: pa.Table
    thetas: tuple[bytes | None, ...]
    computed: str
    sources: tuple[Source, ...] = ()


class Level:
    """The statistics of a snapshot's live files, read column by column.

    Of several statistics of one column of one file the deepest is taken, then that of the latest block.
    """

    def __init__(self, store: Store, blocks: Sequence[IndexedBlock], files: Sequence[DataFile]) -> None:
        self._store = store
        self._live = {(file.path, file.size): place for place, file in enumerate(files)}
        ranked = sorted(enumerate(blocks), key=lambda item: (DEPTHS[item[1].block.computed], item[0]), reverse=True)
        self._blocks = [indexed for _, indexed in ranked if not indexed.ordinals.keys().isdisjoint(self._live)]
        self._places = [self._live_places(indexed) for indexed in self._blocks]

    def columns(self, columns: Sequence[Column]) -> Iterator[Known]:
        """Read what is known of columns, a few at a time.

        Args:
            columns: Leaves of the snapshot's schema.

        Yields:
            The columns with statistics of at least one live file, in order.

        Example:
            >>> [known.column.name for known in Level(store, blocks, files).columns(columns)]  # doctest: +SKIP
            ['id', 'price']
        """
        step = max(_FEWEST_COLUMNS, _ROWS_AT_ONCE // max(len(self._live), 1))
        for start in range(0, len(columns), step):
            yield from self._known(columns[start : start + step])

    def _read(self, indexed: IndexedBlock, ref: ObjectRef) -> pa.Table:
        try:
            return self._store.get(ref)
        except DamagedObject as damage:
            raise DamagedBlock(indexed.block.id, str(damage)) from damage

    def _live_places(self, indexed: IndexedBlock) -> NDArray[np.int64]:
        places = np.full(indexed.files.num_rows, -1, np.int64)
        for key, ordinal in indexed.ordinals.items():
            places[ordinal] = self._live.get(key, -1)
        return places

    def _known(self, columns: Sequence[Column]) -> Iterator[Known]:
        wanted = {(column.key, column.type): column for column in columns}
        by_key = {column.key: column for column in columns}
        taken = {key: np.zeros(len(self._live), bool) for key in wanted}
        rows: dict[tuple[str, str], list[pa.Table]] = defaultdict(list)
        thetas: dict[tuple[str, str], list[bytes | None]] = defaultdict(list)
        sources: dict[tuple[str, str], list[Source]] = defaultdict(list)
        depth: dict[tuple[str, str], str] = {}
        for indexed, places in zip(self._blocks, self._places, strict=True):
            keys = {
                ordinal: (column.key, by_key[column.key].type)
                for ordinal, column in enumerate(indexed.block.columns)
                if column.key in by_key and serves(column, by_key[column.key])
            }
            sketches = self._sketches(indexed, keys) if keys else {}
            for ordinal, found in self._summaries(indexed, keys):
                key = keys[ordinal]
                chosen, files = _fresh(found, places, taken[key])
                narrow = indexed.block.columns[ordinal].type != wanted[key].type
                rows[key].append(_widened(chosen, wanted[key]) if narrow else chosen)
                # Sketches of a narrower type hold other hashes of the same values.
                thetas[key].extend(None if narrow else sketches.get((ordinal, file)) for file in files.tolist())
                sources[key].append(Source(indexed, ordinal, files))
                depth.setdefault(key, indexed.block.computed)
        for key, column in wanted.items():
            table = pa.concat_tables(rows[key]) if rows[key] else SUMMARY.empty_table()
            if table.num_rows:
                yield Known(column, table, tuple(thetas[key]), depth[key], tuple(sources[key]))

    def _summaries(self, indexed: IndexedBlock, keys: dict[int, tuple[str, str]]) -> Iterator[tuple[int, pa.Table]]:
        for ref in indexed.block.summary:
            held = sorted(keys.keys() & set(ref.columns))
            if not held:
                continue
            table = self._read(indexed, ref.object)
            ordinals = table.column("column").to_numpy()
            for ordinal in held:
                start, end = np.searchsorted(ordinals, [ordinal, ordinal + 1])
                yield ordinal, table.slice(start, end - start)

    def _sketches(self, indexed: IndexedBlock, keys: dict[int, tuple[str, str]]) -> dict[tuple[int, int], bytes]:
        """Sketches by column and file ordinal of the block."""
        found = {}
        for detail, files in _details(indexed.files).items():
            table = self._detail(indexed, *detail)
            table = table.filter(pc.is_in(table.column("column"), pa.array(sorted(keys), pa.int32())))
            values = (table.column(name).to_pylist() for name in ("column", "file", "theta"))
            for ordinal, inside, theta in zip(*values, strict=True):
                if inside in files:
                    found[ordinal, files[inside]] = theta
        return found

    def _detail(self, indexed: IndexedBlock, name: str, digest: str) -> pa.Table:
        try:
            data = self._store.raw(name)
            ref, _ = unnamed(name, data)
            if ref.sha256 != digest:
                raise DamagedBlock(indexed.block.id, f"{name} has another digest than its block names")
            return decode(ref, data)
        except DamagedObject as damage:
            raise DamagedBlock(indexed.block.id, str(damage)) from damage


def _fresh(rows: pa.Table, places: NDArray[np.int64], taken: NDArray[np.bool_]) -> tuple[pa.Table, NDArray[np.int64]]:
    """Keep the rows of live files that no better block has given, and mark them as given."""
    files = rows.column("file").to_numpy()
    live = places[files]
    keep = (live >= 0) & ~taken[live]
    taken[live[keep]] = True
    return rows.filter(pa.array(keep)), files[keep].astype(np.int64)


def _widened(rows: pa.Table, column: Column) -> pa.Table:
    """Rows written under a narrower type: values are stored alike, only their lengths are others."""
    if decimal_type(column.type) is not None:
        return rows
    for name in ("avg_len", "max_len"):
        place = rows.schema.get_field_index(name)
        kind = rows.schema.field(place)
        length = pc.if_else(rows.column(name).is_valid(), pa.scalar(width(column), kind.type), None)
        rows = rows.set_column(place, kind, length.cast(kind.type))
    return rows


def _details(files: pa.Table) -> dict[tuple[str, str], dict[int, int]]:
    """Sketch objects (name, digest) of a block, each with its file ordinals and those of the block."""
    names = ("file", "sketches_name", "sketches_sha256", "sketches_file")
    values = (files.column(name).to_pylist() for name in names)
    found: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for ordinal, name, digest, inside in zip(*values, strict=True):
        if name is not None:
            found[name, digest][inside] = ordinal
    return found
