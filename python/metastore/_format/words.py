"""Values in one buffer as words of eight bytes: what hashes of whole arrays are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    UInt64Array = NDArray[np.uint64]

WORD = 8
BLOCK = 16
LONG_VALUE = 1_024
# MASKS[n] keeps the first n bytes of a little-endian word.
MASKS = np.array([(1 << 8 * n) - 1 for n in range(WORD + 1)], dtype=np.uint64)

_BATCH = 16_384


def pad_buffer(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The buffer followed by a block of zeros, as hashes of bytes want it."""
    return np.concatenate([data, np.zeros(BLOCK, dtype=np.uint8)])


def view_unaligned(data: NDArray[np.uint8]) -> UInt64Array:
    """The little-endian word that begins at every byte of a buffer (a view: nothing is copied)."""
    words: UInt64Array = np.ndarray((max(len(data) - WORD + 1, 0),), dtype="<u8", buffer=data, strides=(1,))
    return words


def split_batches(length: int) -> Iterator[slice]:
    """Slices of so many rows that the work on one stays in the processor's cache."""
    return (slice(at, at + _BATCH) for at in range(0, length, _BATCH))


def order_by_length(lengths: NDArray[np.int64]) -> NDArray[np.intp]:
    """The order by decreasing length, so that the values that have an i-th block are a prefix."""
    longest = int(lengths.max()) if len(lengths) else 0
    if longest <= LONG_VALUE:  # numpy sorts 8 and 16 bits by radix
        return np.argsort((longest - lengths).astype(np.uint8 if longest < 256 else np.uint16), kind="stable")
    return np.argsort(-lengths, kind="stable")


def rotate_left(x: UInt64Array, bits: int) -> None:
    """Rotate every word to the left, in place."""
    high = x >> np.uint64(64 - bits)
    x <<= np.uint64(bits)
    x |= high
