"""Where the values of columns come from: complete lists in detail objects, or the data files themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.errors import DamagedObject
from metastore.format import sortable_values
from metastore.kernel import theta_sketch
from metastore.kernel.binary_values import BinaryValues
from metastore.kernel.parquet_file import read_column_values, translate_arrow_errors
from metastore.kernel.parquet_schema import UnsupportedDataFile
from metastore.store.location import local_path
from metastore.table_level.detail_selection import DetailSlice, read_detail_object, read_listed_values
from metastore.table_level.list_groups import GroupListSource
from metastore.table_level.value_rows import VALUE_ROWS, sum_value_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.kernel.parquet_schema import FileColumn
    from metastore.spark_jobs.task_store import ReadContent


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
    """The values of a piece with their frequencies, as `VALUE_ROWS`; none stands twice in one table."""
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
    """The wanted lists of an object, as `VALUE_ROWS`."""
    return (
        piece.read_value_rows(content)
        if isinstance(piece, GroupListSource)
        else read_listed_values(piece, read_detail_object(piece, content))
    )


def _columns(piece: DetailSlice | GroupListSource) -> frozenset[int]:
    if isinstance(piece, GroupListSource):
        return frozenset(piece.ordinals.values())
    return frozenset(piece.ordinals[piece.ordinals >= 0].tolist())


def _as_listed(ordinal: int, column: Column, values: pa.Array) -> pa.Table:
    values = values.drop_null()
    if column.encoding == "binary" and not sortable_values.is_wide_decimal(column):
        kept: Any = values.cast(pa.large_binary()).cast(pa.binary())
    elif sortable_values.is_wide_decimal(column):
        kept = pa.array(
            [sortable_values.sortable_to_stored(one, column) for one in sortable_values.sortable_array(values, column)],
            pa.binary(),
        )
    else:
        kept = pa.array(sortable_values.sortable_array(values, column))
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
    if column.encoding == "binary" and not sortable_values.is_wide_decimal(column):
        return BinaryValues(values.cast(pa.large_binary())).hashes()
    numbers = (
        sortable_values.stored_to_sortable(values.to_pylist(), column)
        if sortable_values.is_wide_decimal(column)
        else values.to_numpy()
    )
    if column.encoding == "double":
        numbers = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    return theta_sketch.theta_hashes(numbers, column)


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
