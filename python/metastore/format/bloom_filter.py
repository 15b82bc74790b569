"""Split-block bloom filters, as Apache Parquet defines them: whether a data file may hold a value.

A filter is a row of blocks of 256 bits; a value sets one bit in each of the eight words of one block. The number of
blocks is a power of two: then a filter folds to half its size by joining neighbours, and filters of different sizes
can be joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore.format import bloom_writer
from metastore.format.hashing import pad_buffer, xxhash_bytes, xxhash_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array


BITS_PER_VALUE = 10
BLOCK_BYTES = 32

_FEWEST_BITS_PER_VALUE = 6  # below, one lookup in twelve errs
_MOST_BYTES = 8 << 20
_WORDS = 8
_AT_ONCE = 1 << 15
_ONE = np.uint32(1)
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], dtype=np.uint32
)


def bloom_hashes(values: pa.Array) -> UInt64Array:
    """Hash stored values as filters do: XXH64 of the eight bytes of a number, little-endian, or of a value's bytes.

    So a value has the same hash whether its column was an int or a bigint, a float or a double, when it was written.
    """
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return xxhash_words(values.to_numpy().view(np.uint64))
    values = values.cast(pa.large_binary())
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer else np.empty(0, dtype=np.uint8)
    return xxhash_bytes(pad_buffer(data[offsets[0] : offsets[-1]]), offsets[:-1] - offsets[0], np.diff(offsets))


class BloomBuilder:
    """Collects the hashes of a column's values."""

    def __init__(self, most_values: int, most_bytes: int = _MOST_BYTES) -> None:
        blocks = _blocks_for(most_values)
        while blocks > 1 and blocks * BLOCK_BYTES > min(most_bytes, _MOST_BYTES):
            blocks //= 2
        self._blocks = np.zeros((blocks, _WORDS), dtype=np.uint32)

    def add(self, hashes: UInt64Array) -> None:
        """Add values by their XXH64 (see `bloom_hashes`)."""
        hashes = np.sort(hashes)  # their upper halves choose the blocks
        for start in range(0, len(hashes), _AT_ONCE):
            batch = hashes[start : start + _AT_ONCE]
            block = choose_hash_range(batch, len(self._blocks))
            first = np.flatnonzero(np.concatenate([[True], block[1:] != block[:-1]]))
            self._blocks[block[first]] |= np.bitwise_or.reduceat(_ONE << _bit_of(batch), first, axis=0)

    def add_values(self, values: pa.Array) -> None:
        """Add values as the format stores them, without nulls."""
        bloom = None
        if bloom_writer.writes_bloom_filters():
            bloom = bloom_writer.build_filter(values, self._blocks.nbytes)
        if bloom is None:
            self.add(bloom_hashes(values))
        else:
            self._blocks |= bloom.view("<u4").reshape(-1, _WORDS)

    def finish(self, distinct: int, most_bytes: int = _MOST_BYTES) -> bytes | None:
        """Return the filter, or None if it would be too large or say too little."""
        size = choose_filter_size(distinct, min(most_bytes, self._blocks.nbytes))
        if size is None:
            return None
        return fold_filter(self._blocks.astype("<u4").view(np.uint8).reshape(-1), size).tobytes()


def choose_filter_size(distinct: int, most_bytes: int = _MOST_BYTES) -> int | None:
    """Choose the bytes of the filter of so many values; None if the most bytes would make it say too little."""
    size = _blocks_for(distinct) * BLOCK_BYTES
    while size > max(most_bytes, BLOCK_BYTES):
        size //= 2
    if size > most_bytes or 8 * size < _FEWEST_BITS_PER_VALUE * distinct:
        return None
    return size


def error_rate(distinct: NDArray[np.int64]) -> NDArray[np.float64]:
    """Estimate the share of absent values that filters of so many values take for present."""
    bits = np.maximum(distinct, 1) * BITS_PER_VALUE / (8 * BLOCK_BYTES)
    blocks = 2.0 ** np.maximum(np.ceil(np.log2(bits)), 0)
    errors: NDArray[np.float64] = (1 - np.exp(-_WORDS * distinct / (blocks * 8 * BLOCK_BYTES))) ** _WORDS
    return errors


def fold_filter(bloom: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Fold a filter into fewer bytes."""
    joined: NDArray[np.uint8] = np.bitwise_or.reduce(bloom.reshape(size // BLOCK_BYTES, -1, BLOCK_BYTES), axis=1)
    return joined.reshape(-1)


def may_hold(bloom: bytes | NDArray[np.uint8], hashes: UInt64Array) -> NDArray[np.bool_]:
    """Return whether values may be among those added; false is certain."""
    words = np.frombuffer(bloom, dtype="<u4").reshape(-1, _WORDS)
    set_bits = words[choose_hash_range(hashes, len(words))] >> _bit_of(hashes) & _ONE
    is_set: NDArray[np.bool_] = set_bits.all(axis=1)
    return is_set


def choose_hash_range(hashes: UInt64Array, blocks: int) -> NDArray[np.int64]:
    """Choose the range of each hash among so many equal ones, such as the blocks of a filter."""
    block: NDArray[np.int64] = ((hashes >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)).astype(np.int64)
    return block


def _bit_of(hashes: UInt64Array) -> NDArray[np.uint32]:
    """Choose the bit of each of a block's words."""
    bits: NDArray[np.uint32] = hashes.astype(np.uint32)[:, None] * _SALT >> np.uint32(27)
    return bits


def _blocks_for(values: int) -> int:
    """Return the number of blocks of a filter for so many values, a power of 2."""
    bits = max(values, 1) * BITS_PER_VALUE
    bits_of_block = BLOCK_BYTES * 8
    needed = -(-bits // bits_of_block)  # rounded up
    return 1 << (needed - 1).bit_length()
