"""Split-block bloom filters, as Apache Parquet defines them: whether a data file may hold a value.

A filter is a row of blocks of 256 bits; a value sets one bit in each of the eight words of one block. The number of
blocks is a power of two: then a filter folds to half its size by joining neighbours, and filters of different sizes
can be joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from metastore._analyze.kernel.murmur import Words

BITS_PER_VALUE = 10
BLOCK_BYTES = 32

_FEWEST_BITS_PER_VALUE = 6  # below, one lookup in twelve errs
_MOST_BLOCKS = 1 << 21  # 64 MB
_WORDS = 8
_WORD_BITS = 32
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], dtype=np.uint32
)


class BloomBuilder:
    """Collects the hashes of a column's values.

    Example:
        >>> builder = BloomBuilder(1000)
        >>> builder.add(np.array([1 << 40, 7], dtype=np.uint64))
        >>> len(builder.finish(2, 4096))
        32
    """

    def __init__(self, most_values: int) -> None:
        """Make room.

        Args:
            most_values: How many distinct values there can be.
        """
        blocks = min(_blocks_for(most_values, BITS_PER_VALUE), _MOST_BLOCKS)
        self._bits: NDArray[np.bool_] = np.zeros(blocks * BLOCK_BYTES * 8, dtype=np.bool_)

    def add(self, hashes: Words) -> None:
        """Add values by their XXH64 (see `kernel.xxhash`)."""
        blocks = np.uint64(len(self._bits) // (BLOCK_BYTES * 8))
        first = ((hashes >> np.uint64(32)) * blocks >> np.uint64(32)).astype(np.int64) * (BLOCK_BYTES * 8)
        key = hashes.astype(np.uint32)
        for word, salt in enumerate(_SALT):
            self._bits[first + (key * salt >> np.uint32(27)) + word * _WORD_BITS] = True

    def finish(self, distinct: int, most_bytes: int) -> bytes | None:
        """The filter.

        Args:
            distinct: How many distinct values were added, about.
            most_bytes: What it may take.

        Returns:
            Its bytes, as Parquet stores them; None if fewer would tell too little.
        """
        wanted = _blocks_for(distinct, BITS_PER_VALUE) * BLOCK_BYTES
        size = min(wanted, len(self._bits) // 8)
        while size > max(most_bytes, BLOCK_BYTES):
            size //= 2
        if size > most_bytes or 8 * size < _FEWEST_BITS_PER_VALUE * distinct:
            return None
        return folded(np.packbits(self._bits, bitorder="little"), size).tobytes()


def folded(bloom: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """A filter of the same values with fewer bytes.

    Args:
        bloom: A filter of a power of two of blocks.
        size: Bytes wanted, a power of two of blocks too.

    Example:
        >>> folded(np.repeat(np.array([1, 2], dtype=np.uint8), 32), 32)[:2]
        array([3, 3], dtype=uint8)
    """
    joined: NDArray[np.uint8] = np.bitwise_or.reduce(bloom.reshape(size // BLOCK_BYTES, -1, BLOCK_BYTES), axis=1)
    return joined.reshape(-1)


def may_hold(bloom: bytes, hashes: Words) -> NDArray[np.bool_]:
    """Whether values may be among those added; false is certain.

    Args:
        bloom: A filter.
        hashes: XXH64 of the values.

    Example:
        >>> builder = BloomBuilder(10)
        >>> builder.add(np.array([5], dtype=np.uint64))
        >>> may_hold(builder.finish(1, 32), np.array([5, 6 << 30], dtype=np.uint64))
        array([ True, False])
    """
    words = np.frombuffer(bloom, dtype="<u4").reshape(-1, _WORDS)
    block = ((hashes >> np.uint64(32)) * np.uint64(len(words)) >> np.uint64(32)).astype(np.int64)
    bit = hashes.astype(np.uint32)[:, None] * _SALT >> np.uint32(27)
    found: NDArray[np.bool_] = (words[block] >> bit & np.uint32(1)).all(axis=1)
    return found


def _blocks_for(values: int, bits_per_value: int) -> int:
    bits = max(values, 1) * bits_per_value
    return 1 << max(-(-bits // (BLOCK_BYTES * 8)) - 1, 0).bit_length()
