"""Bloom filters as pyarrow's Parquet writer makes them, several times as fast as numpy does."""

from __future__ import annotations

import inspect
import io
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from numpy.typing import NDArray


_OPTION = "bloom_filter_options"
_AT_ONCE = 16 << 20
_BITS_PER_VALUE = 796
"""The bits that the writer reserves for each expected value at this error rate; it rounds up to a power of two."""
_ERRORS = 1e-16
"""An error rate so low that a filter is not folded to half its size, unless it is nearly empty."""
_MOST_HEADER = 64
_MOST_BYTES_AFTER = 1 << 16
"""Bytes that may follow the filter."""


@cache
def writes_bloom_filters() -> bool:
    """Return whether this pyarrow writes bloom filters (from version 24 on) and shows their offset (later)."""
    has_option = _OPTION in inspect.signature(pq.write_table).parameters
    return has_option and hasattr(pq.ColumnChunkMetaData, "bloom_filter_offset")


def build_filter(values: pa.Array, size: int) -> NDArray[np.uint8] | None:
    """Build the bloom filter of values; None if the writer makes one of another size."""
    bloom = np.zeros(size, np.uint8)
    rows = max(len(values) * _AT_ONCE // max(values.nbytes, 1), 1)
    for start in range(0, len(values), rows):
        part = _write_filter(values.slice(start, rows), size)
        if part is None:
            return None
        bloom |= part
    return bloom


def _write_filter(values: pa.Array, size: int) -> NDArray[np.uint8] | None:
    distinct = 8 * size * 3 // 4 // _BITS_PER_VALUE
    if not distinct:
        return None
    schema = pa.schema([pa.field("value", values.type, nullable=False)])
    table = pa.table([values], schema)
    sink = _LastBytes(size + _MOST_BYTES_AFTER)
    with pq.ParquetWriter(
        sink,
        schema,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        bloom_filter_options={"value": {"ndv": distinct, "fpp": _ERRORS}},
    ) as writer:
        writer.write_table(table, row_group_size=len(table))
    chunk = writer.writer.metadata.row_group(0).column(0)
    start = chunk.bloom_filter_offset
    length = chunk.bloom_filter_length
    if start is None or not size < length <= size + _MOST_HEADER:
        return None
    return sink.read_part(start + length - size, size)


class _LastBytes(io.RawIOBase):
    """A file that stores only its last bytes: to store all values would take longer than to hash them."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._parts: deque[bytes] = deque()
        self._start = 0
        self._end = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._end += len(part)
        while self._end - self._start - len(self._parts[0]) >= self._size:
            self._start += len(self._parts.popleft())
        return len(part)

    def read_part(self, start: int, length: int) -> NDArray[np.uint8] | None:
        """Read bytes at a position of the file; None if they are no longer stored."""
        first = start - self._start
        if first < 0:
            return None
        return np.frombuffer(b"".join(self._parts), np.uint8)[first : first + length]
