"""Where the values of columns come from: complete lists in detail objects, or the data files themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._analyze.kernel import CannotRead, read_values, stored
from metastore._analyze.kernel.read import refusing
from metastore._analyze.kernel.text import Texts
from metastore._analyze.table.details import Part, listed
from metastore._analyze.table.list_nodes import FromNodes
from metastore._analyze.table.lists import LISTED, merged
from metastore._analyze.table.objects import read
from metastore._store.location import local_path
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from metastore._analyze.kernel import FileColumn
    from metastore._analyze.place import Content
    from metastore._format.columns import Column


@dataclass(frozen=True)
class FromFile:
    """Columns of a data file that are read again.

    Attributes:
        path: Of the file.
        columns: By their place in the snapshot's schema.
    """

    path: str
    columns: Mapping[int, FileColumn]


@dataclass(frozen=True)
class Unreadable:
    """Columns that could not be read again, by their place in the snapshot's schema."""

    columns: frozenset[int]


Piece = Part | FromFile | FromNodes


def name_of(piece: Piece) -> str | None:
    """The detail object of a piece."""
    return None if isinstance(piece, FromFile) else piece.name


def values_of(piece: Piece, content: Content, budget: int) -> Iterator[pa.Table | Unreadable]:
    """The values of a piece with their frequencies, as `LISTED`; none stands twice in one table."""
    if not isinstance(piece, FromFile):
        try:
            yield merged(stored_rows(piece, content))
        except DamagedObject:  # the driver meets it too, and has it made again
            yield Unreadable(_columns(piece))
        return
    for ordinal, column in piece.columns.items():
        try:
            with refusing():
                arrays = read_values(str(local_path(piece.path)), [column], budget).get(0)
                for values in arrays if arrays is not None else ():
                    yield merged(_as_listed(ordinal, column.column, values))
        except CannotRead:
            arrays = None
        if arrays is None:
            yield Unreadable(frozenset({ordinal}))


def stored_rows(piece: Part | FromNodes, content: Content) -> pa.Table:
    """The wanted lists of an object, as `LISTED`."""
    return piece.rows(content) if isinstance(piece, FromNodes) else listed(piece, read(piece, content))


def _columns(piece: Part | FromNodes) -> frozenset[int]:
    if isinstance(piece, FromNodes):
        return frozenset(piece.ordinals.values())
    return frozenset(piece.ordinals[piece.ordinals >= 0].tolist())


def _as_listed(ordinal: int, column: Column, values: pa.Array) -> pa.Table:
    values = values.drop_null()
    if column.encoding == "binary" and not stored.is_wide(column):
        kept: Any = values.cast(pa.large_binary()).cast(pa.binary())
    elif stored.is_wide(column):
        kept = pa.array([stored.stored(one, column) for one in stored.numbers(values, column)], pa.binary())
    else:
        kept = pa.array(stored.numbers(values, column))
    size = len(kept)
    given = {
        "column": pa.array(np.full(size, ordinal, np.int32)),
        f"value_{column.encoding}": kept,
        "frequency": pa.array(np.ones(size, np.int64)),
        "listed": pa.array(np.zeros(size, np.int64)),
    }
    return pa.table([given.get(one.name, pa.nulls(size, one.type)) for one in LISTED], schema=LISTED)


def hashes(rows: pa.Table, column: Column) -> NDArray[np.uint64]:
    """A hash of each value of one column's rows."""
    values = rows[f"value_{column.encoding}"].combine_chunks()
    if column.encoding == "binary" and not stored.is_wide(column):
        return Texts(values.cast(pa.large_binary())).hashes()
    numbers = stored.as_numbers(values.to_pylist(), column) if stored.is_wide(column) else values.to_numpy()
    if column.encoding == "double":
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    return stored.hashes(numbers, column)


def by_part(rows: pa.Table, places: NDArray[np.int64], parts: int) -> Iterator[tuple[int, bytes]]:
    """Rows to be sent, part by part."""
    order = np.argsort(places, kind="stable")
    ordered, ends = rows.take(pa.array(order)), np.searchsorted(places[order], np.arange(parts + 1))
    for part in np.flatnonzero(np.diff(ends)).tolist():
        yield part, packed(ordered.slice(ends[part], ends[part + 1] - ends[part]))


def packed(rows: pa.Table) -> bytes:
    """Rows as bytes, to be sent."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> pa.Table:
    """Rows that were sent."""
    return pa.ipc.open_stream(data).read_all()
