"""Sources of the values of columns: an interface, and the data files themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from metastore.format import sortable_values
from metastore.format.object_schemas import fill_schema
from metastore.kernel.parquet_file import read_column_values, translate_arrow_errors
from metastore.kernel.parquet_schema import FileColumn, UnsupportedDataFile
from metastore.kernel.theta_sketch import theta_hashes_of_stored
from metastore.store.data_file_access import LOCAL_FILES, DataFileAccess
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
        """The object that has the values, or None if they are in a data file."""

    @property
    def columns(self) -> frozenset[int]:
        """The columns, by their ordinals in the snapshot's schema."""

    @property
    def is_summed(self) -> bool:
        """Whether each table has each value of a column only once."""

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:
        """Read values with their frequencies, as `VALUE_ROWS`.

        Raises `DamagedObject`, `BlockDamageError` or `UnsupportedDataFile` if they cannot be read.
        """


@dataclass(frozen=True)
class DataFileSource:
    """A column of a data file that is read again.

    Attributes:
        ordinal: The column's ordinal in the snapshot's schema.
        number: The number for `listed` of each value.
    """

    path: str
    ordinal: int
    column: FileColumn
    number: int = 0
    access: DataFileAccess = LOCAL_FILES

    name: ClassVar[None] = None
    is_summed: ClassVar[bool] = True

    @property
    def columns(self) -> frozenset[int]:
        return frozenset({self.ordinal})

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:  # noqa: ARG002 - objects have content
        with translate_arrow_errors():
            arrays = read_column_values(self.access.open(self.path), [self.column], READ_BUDGET).get(0)
            if arrays is None:
                raise UnsupportedDataFile("a column is absent")
            for values in arrays:
                rows = sum_value_rows(_as_value_rows(self.ordinal, self.column.column, values))
                yield set_numbers(rows, self.number)


def set_numbers(rows: pa.Table, numbers: Any) -> pa.Table:
    """Set `listed` of rows to these numbers, or to one number."""
    index = VALUE_ROWS.get_field_index("listed")
    listed = pa.array(np.broadcast_to(numbers, rows.num_rows), pa.int64())
    return rows.set_column(index, VALUE_ROWS.field(index), listed)


def _as_value_rows(ordinal: int, column: Column, values: pa.Array) -> pa.Table:
    values = values.drop_null()
    if sortable_values.is_text(column):
        stored: Any = values.cast(pa.large_binary()).cast(pa.binary())
    else:
        stored = sortable_values.sortable_to_arrow(sortable_values.sortable_array(values, column), column)
    size = len(stored)
    fields = {
        "column": pa.array(np.full(size, ordinal, np.int32)),
        f"value_{column.encoding}": stored,
        "frequency": pa.array(np.ones(size, np.int64)),
        "listed": pa.array(np.zeros(size, np.int64)),
    }
    return fill_schema(VALUE_ROWS, fields, size)


def hash_value_rows(rows: pa.Table, column: Column) -> NDArray[np.uint64]:
    """Return a hash of each value of one column's rows."""
    return theta_hashes_of_stored(sortable_values.unify_doubles(rows[f"value_{column.encoding}"]), column)
