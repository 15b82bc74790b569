"""Bloom filters of columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from metastore.format.bloom_filter import BloomBuilder, choose_filter_size, fold_filter

_SHARE = 8  # of the budget
_FEW = 64  # so few values take hardly more room as a list than as a filter
_MANY = 1 << 40
_NAN = pa.array([np.nan])


class LazyBloomFilter:
    """A bloom filter that is built on demand from values in memory: not every filter is stored in the end."""

    def __init__(self, values: pa.Array, distinct: int, has_nan: bool, size: int) -> None:  # noqa: FBT001 - a part of the values
        self._values = values
        self._distinct = distinct
        self._has_nan = has_nan
        self._size = size

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same filter."""
        return isinstance(other, (bytes, LazyBloomFilter)) and bytes(self) == bytes(other)

    __hash__ = None  # type: ignore[assignment] # filters are not keys

    def __len__(self) -> int:
        """Return the bytes of the filter."""
        return self._size

    @property
    def value_bytes(self) -> int:
        """The memory of the values until the filter is made."""
        return int(self._values.nbytes)

    def __bytes__(self) -> bytes:
        """Return the filter."""
        builder = BloomBuilder(self._distinct)
        builder.add_values(self._values)
        if self._has_nan:
            builder.add_values(_NAN)
        return builder.finish(self._distinct, self._size) or b""

    def resized_to(self, size: int) -> LazyBloomFilter:
        """Return the filter of the same values with fewer bytes."""
        return LazyBloomFilter(self._values, self._distinct, self._has_nan, size)


def resize_bloom_filter(bloom: bytes | LazyBloomFilter, size: int) -> bytes | LazyBloomFilter:
    """Make a filter of the same values with fewer bytes."""
    if len(bloom) == size:
        return bloom
    if isinstance(bloom, LazyBloomFilter):
        return bloom.resized_to(size)
    return fold_filter(np.frombuffer(bloom, np.uint8), size).tobytes()


class ColumnBloomBuilder:
    """Collects the values of a column, part by part."""

    def __init__(self, budget_bytes: int) -> None:
        self._most_bytes = budget_bytes // _SHARE
        self._only_part: pa.Array | None = None
        self._builder: BloomBuilder | None = None

    def add(self, values: pa.Array, *, last: bool) -> None:
        """Add the stored values of a part, each at least once; `last` marks the last part."""
        if self._builder is None and last:
            if len(values) > _FEW:
                self._only_part = values
            return
        if self._builder is None:
            self._builder = BloomBuilder(_MANY, self._most_bytes)
        self._builder.add_values(values)

    def finish(self, distinct: int, nans: int) -> bytes | LazyBloomFilter | None:
        """Return the filter; None if a filter would not help, or takes too much room."""
        if self._only_part is not None:
            size = choose_filter_size(distinct)
            if size is None:
                return None
            return LazyBloomFilter(self._only_part, distinct, nans > 0, size)
        if self._builder is None:
            return None
        if nans:
            self._builder.add_values(_NAN)
        return self._builder.finish(distinct)
