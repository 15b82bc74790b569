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
"""The writer gives every expected value so many bits for that share of errors, and rounds up to a power of two."""
_ERRORS = 1e-16
"""So few that a filter is not folded to half its size, unless it is nearly empty."""
_MOST_HEADER = 64
_BEHIND = 1 << 16
"""Bytes that may follow the filter."""


@cache
def writes_bloom_filters() -> bool:
    """Whether this pyarrow writes bloom filters (from version 24 on) and tells where (later)."""
    return _OPTION in inspect.signature(pq.write_table).parameters and hasattr(
        pq.ColumnChunkMetaData, "bloom_filter_offset"
    )


def build_filter(values: pa.Array, size: int) -> NDArray[np.uint8] | None:
    """The bloom filter of some values."""
    found = np.zeros(size, np.uint8)
    rows = max(len(values) * _AT_ONCE // max(values.nbytes, 1), 1)
    for start in range(0, len(values), rows):
        part = _written(values.slice(start, rows), size)
        if part is None:
            return None
        found |= part
    return found


def _written(values: pa.Array, size: int) -> NDArray[np.uint8] | None:
    schema = pa.schema([pa.field("value", values.type, nullable=False)])
    table, sink = pa.table([values], schema), _End(size + _BEHIND)
    options = {"value": {"ndv": 8 * size * 3 // 4 // _BITS_PER_VALUE, "fpp": _ERRORS}}
    if not options["value"]["ndv"]:
        return None
    with pq.ParquetWriter(
        sink,
        schema,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        bloom_filter_options=options,
    ) as writer:
        writer.write_table(table, row_group_size=len(table))
    chunk = writer.writer.metadata.row_group(0).column(0)
    start, length = chunk.bloom_filter_offset, chunk.bloom_filter_length
    if start is None or not size < length <= size + _MOST_HEADER:
        return None
    return sink.part(start + length - size, size)


class _End(io.RawIOBase):
    """A file of which only the end is kept: to keep all values would take longer than to hash them."""

    def __init__(self, kept: int) -> None:
        super().__init__()
        self._kept, self._written = kept, 0
        self._last: deque[bytes] = deque()
        self._held = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._last.append(bytes(data))
        self._written += len(self._last[-1])
        self._held += len(self._last[-1])
        while self._held - len(self._last[0]) >= self._kept:
            self._held -= len(self._last.popleft())
        return len(data)

    def part(self, start: int, length: int) -> NDArray[np.uint8] | None:
        first = start - (self._written - self._held)
        return np.frombuffer(b"".join(self._last), np.uint8)[first : first + length] if first >= 0 else None
