"""Keys in the form of stored statistics: one NumPy array a column, never an object a key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.bloom_filter import bloom_hashes
from metastore.format.sortable_values import (
    is_text,
    sortable_array,
    sortable_to_arrow,
    stored_to_sortable,
)
from metastore.format.value_rendering import CUT_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column

    Places = NDArray[np.int64]
    Mask = NDArray[np.bool_]


_STORED_TYPES = {"long": pa.int64(), "double": pa.float64(), "binary": pa.large_binary()}
_ROWS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class KeyColumn:
    """The values of one column in a batch of keys.

    Attributes:
        values: Values that sort as the keys do: int64, float64, or the first bytes as `S`; any value for null and NaN.
        stored: The plain values as the format stores them.
        plain: Whether the value is neither null nor NaN: bounds, lists and filters only have such values.
        null: Whether the value is null; a value that is neither plain nor null is NaN.
    """

    column: Column
    values: NDArray[Any]
    stored: pa.Array
    plain: Mask
    null: Mask

    @classmethod
    def from_values(cls, values: pa.Array, column: Column) -> KeyColumn:
        """Convert values of the column's type."""
        null: Mask = values.is_null().to_numpy(zero_copy_only=False)
        present = values.drop_null()
        if is_text(column):
            present = present.cast(pa.large_binary())
            return cls(column, _spread(take_prefixes(present), ~null), present, ~null, null)
        sortable = sortable_array(present, column)
        plain = ~null
        if column.encoding == "double":
            is_nan = np.isnan(sortable)
            plain[plain] = ~is_nan
            sortable = sortable[~is_nan]
        return cls(column, _spread(sortable, plain), sortable_to_arrow(sortable, column), plain, null)

    @classmethod
    def from_stored(cls, values: Sequence[Any], column: Column) -> KeyColumn:
        """Convert values in the form in which the format stores them."""
        is_null = np.array([value is None for value in values], bool)
        plain = np.array([value is not None and value == value for value in values], bool)  # noqa: PLR0124 - NaN
        stored = pa.array(
            [value for value, is_plain in zip(values, plain, strict=True) if is_plain],
            _STORED_TYPES[str(column.encoding)],
        )
        sortable = take_prefixes(stored) if is_text(column) else stored_to_sortable(stored.to_pylist(), column)
        return cls(column, _spread(sortable, plain), stored, plain, is_null)

    def take(self, order: Places) -> KeyColumn:
        """Put the keys in another order."""
        rank = np.cumsum(self.plain) - 1
        stored = self.stored.take(pa.array(rank[order][self.plain[order]]))
        return KeyColumn(self.column, self.values[order], stored, self.plain[order], self.null[order])

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """The hashes of plain values; 0 for other values."""
        return _spread(bloom_hashes(self.stored), self.plain)


@dataclass(frozen=True)
class KeyBatch:
    """A batch of keys: those with a plain first value come first, ordered by it.

    Attributes:
        ordered: The number of keys with a plain first value.
    """

    columns: tuple[KeyColumn, ...]
    ordered: int

    @classmethod
    def from_table(cls, batch: pa.Table, columns: Sequence[Column]) -> KeyBatch:
        """Convert and order the keys in a table."""
        parts = []
        for values, column in zip(batch.columns, columns, strict=True):
            parts.append(KeyColumn.from_values(values.combine_chunks(), column))
        first = parts[0]
        plain = np.flatnonzero(first.plain)
        ordered = plain[np.argsort(first.values[plain], kind="stable")]
        order = np.concatenate([ordered, np.flatnonzero(~first.plain)])
        return cls(tuple(part.take(order) for part in parts), len(plain))

    def __len__(self) -> int:
        return len(self.columns[0].plain)


def take_prefixes(values: pa.Array) -> NDArray[Any]:
    """Take the first bytes of byte strings, as many as bounds have, in an array that sorts as they do.

    Shorter strings are filled up with zeros. Different strings may become equal, but never change their order.
    """
    all_bounds = np.frombuffer(values.buffers()[1], np.int64)
    bounds = all_bounds[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(bounds)
    longest = lengths.max(initial=1)
    width = int(min(longest, CUT_BYTES))
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    data = np.concatenate([data, np.zeros(width, np.uint8)])
    out = np.empty((len(values), width), np.uint8)
    steps = np.arange(width)
    for start in range(0, len(values), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        first_bytes = data[bounds[:-1][rows, None] + steps]
        out[rows] = np.where(steps < lengths[rows, None], first_bytes, 0)
    return out.view(f"S{width}").reshape(-1)


def _spread(values: NDArray[Any], where: Mask) -> NDArray[Any]:
    """Put values where the mask is true, and zeros elsewhere."""
    out = np.zeros(len(where), values.dtype)
    out[where] = values
    return out
