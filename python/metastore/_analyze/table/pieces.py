"""Where the values of columns come from: complete lists in detail objects, or the data files themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._analyze.kernel import UnsupportedDataFile, read_column_values, stored
from metastore._analyze.kernel.read import translate_arrow_errors
from metastore._analyze.kernel.text import BinaryValues
from metastore._analyze.table.details import DetailSlice, read_listed_values
from metastore._analyze.table.list_nodes import GroupListSource
from metastore._analyze.table.lists import VALUE_ROWS, sum_value_rows
from metastore._analyze.table.objects import read_detail_object
from metastore._store.location import local_path
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from metastore._analyze.kernel import FileColumn
    from metastore._analyze.place import ReadContent
    from metastore._format.columns import Column


@dataclass(frozen=True)
class DataFileSource:
    """Columns of a data file that are read again.

    Attributes:
        path: Of the file.
        columns: By their place in the snapshot's schema.
    """

    path: str
    columns: Mapping[int, FileColumn]


@dataclass(frozen=True)
class UnreadableColumns:
    """Columns that could not be read again, by their place in the snapshot's schema."""

    columns: frozenset[int]


ValueSource = DetailSlice | DataFileSource | GroupListSource


def object_of_source(piece: ValueSource) -> str | None:
    """The detail object of a piece."""
    return None if isinstance(piece, DataFileSource) else piece.name


def read_source_values(piece: ValueSource, content: ReadContent, budget: int) -> Iterator[pa.Table | UnreadableColumns]:
    """The values of a piece with their frequencies, as `LISTED`; none stands twice in one table."""
    if not isinstance(piece, DataFileSource):
        try:
            yield sum_value_rows(read_stored_values(piece, content))
        except DamagedObject:  # the driver meets it too, and has it made again
            yield UnreadableColumns(_columns(piece))
        return
    for ordinal, column in piece.columns.items():
        try:
            with translate_arrow_errors():
                arrays = read_column_values(str(local_path(piece.path)), [column], budget).get(0)
                for values in arrays if arrays is not None else ():
                    yield sum_value_rows(_as_listed(ordinal, column.column, values))
        except UnsupportedDataFile:
            arrays = None
        if arrays is None:
            yield UnreadableColumns(frozenset({ordinal}))


def read_stored_values(piece: DetailSlice | GroupListSource, content: ReadContent) -> pa.Table:
    """The wanted lists of an object, as `LISTED`."""
    return (
        piece.rows(content)
        if isinstance(piece, GroupListSource)
        else read_listed_values(piece, read_detail_object(piece, content))
    )


def _columns(piece: DetailSlice | GroupListSource) -> frozenset[int]:
    if isinstance(piece, GroupListSource):
        return frozenset(piece.ordinals.values())
    return frozenset(piece.ordinals[piece.ordinals >= 0].tolist())


def _as_listed(ordinal: int, column: Column, values: pa.Array) -> pa.Table:
    values = values.drop_null()
    if column.encoding == "binary" and not stored.is_wide_decimal(column):
        kept: Any = values.cast(pa.large_binary()).cast(pa.binary())
    elif stored.is_wide_decimal(column):
        kept = pa.array(
            [stored.sortable_to_stored(one, column) for one in stored.sortable_array(values, column)], pa.binary()
        )
    else:
        kept = pa.array(stored.sortable_array(values, column))
    size = len(kept)
    given = {
        "column": pa.array(np.full(size, ordinal, np.int32)),
        f"value_{column.encoding}": kept,
        "frequency": pa.array(np.ones(size, np.int64)),
        "listed": pa.array(np.zeros(size, np.int64)),
    }
    return pa.table([given.get(one.name, pa.nulls(size, one.type)) for one in VALUE_ROWS], schema=VALUE_ROWS)


def hash_value_rows(rows: pa.Table, column: Column) -> NDArray[np.uint64]:
    """A hash of each value of one column's rows."""
    values = rows[f"value_{column.encoding}"].combine_chunks()
    if column.encoding == "binary" and not stored.is_wide_decimal(column):
        return BinaryValues(values.cast(pa.large_binary())).hashes()
    numbers = (
        stored.stored_to_sortable(values.to_pylist(), column) if stored.is_wide_decimal(column) else values.to_numpy()
    )
    if column.encoding == "double":
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    return stored.theta_hashes(numbers, column)


def split_by_partition(rows: pa.Table, places: NDArray[np.int64], parts: int) -> Iterator[tuple[int, bytes]]:
    """Rows to be sent, part by part."""
    order = np.argsort(places, kind="stable")
    ordered, ends = rows.take(pa.array(order)), np.searchsorted(places[order], np.arange(parts + 1))
    for part in np.flatnonzero(np.diff(ends)).tolist():
        yield part, rows_to_ipc(ordered.slice(ends[part], ends[part + 1] - ends[part]))


def rows_to_ipc(rows: pa.Table) -> bytes:
    """Rows as bytes, to be sent."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def rows_from_ipc(data: bytes) -> pa.Table:
    """Rows that were sent."""
    return pa.ipc.open_stream(data).read_all()
