"""Where the values of columns come from: complete lists in detail objects, or the data files themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from metastore.format import sortable_values
from metastore.kernel import theta_sketch
from metastore.kernel.binary_values import BinaryValues
from metastore.kernel.parquet_file import read_column_values, translate_arrow_errors
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile
from metastore.store.location import local_path
from metastore.table_level.value_rows import VALUE_ROWS, sum_value_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent


READ_BUDGET = 256 << 20


class ValueSource(Protocol):
    """Values of columns in one object or data file."""

    @property
    def name(self) -> str | None:
        """The object that has them; None: they are in a data file."""

    @property
    def columns(self) -> frozenset[int]:
        """The columns, by their places in the snapshot's schema."""

    @property
    def is_summed(self) -> bool:
        """Whether no value of a column stands twice in one of the tables."""

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:
        """Read values with their frequencies, as `VALUE_ROWS`.

        Raises `DamagedObject`, `BlockDamageError` or `UnsupportedDataFile` where they cannot be read.
        """


@dataclass(frozen=True)
class DataFileSource:
    """A column of a data file that is read again.

    Attributes:
        path: Of the file.
        ordinal: The column's place in the snapshot's schema.
        column: The column.
        number: What goes with each value, in `listed`.
    """

    path: str
    ordinal: int
    column: FileColumn
    number: int = 0

    name: ClassVar[None] = None
    is_summed: ClassVar[bool] = True

    @property
    def columns(self) -> frozenset[int]:
        """See `ValueSource`."""
        return frozenset({self.ordinal})

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:  # noqa: ARG002 - objects have content
        """See `ValueSource`."""
        with translate_arrow_errors():
            arrays = read_column_values(str(local_path(self.path)), [self.column], READ_BUDGET).get(0)
            if arrays is None:
                raise UnsupportedDataFile("a column is absent")
            for values in arrays:
                yield set_numbers(sum_value_rows(_as_listed(self.ordinal, self.column.column, values)), self.number)


def set_numbers(rows: pa.Table, numbers: Any) -> pa.Table:
    """The same rows with what goes with them in `listed`."""
    place = VALUE_ROWS.get_field_index("listed")
    filled = pa.array(np.broadcast_to(numbers, rows.num_rows), pa.int64())
    return rows.set_column(place, VALUE_ROWS.field(place), filled)


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
