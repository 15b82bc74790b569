"""The hash of theta sketches: MurmurHash3 (x64, 128 bits, seed 9001), first half shifted right by one.

Bit for bit what Apache DataSketches computes, for whole arrays at once. Values go in batches that stay in the
processor's cache, because a hash is some thirty passes over its words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.hashing import (
    BLOCK,
    LONG_VALUE,
    MASKS,
    WORD,
    order_by_length,
    rotate_left,
    split_batches,
    view_unaligned,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array


SEED = 9001

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_FIVE = np.uint64(5)
_ADD1 = np.uint64(0x52DCE729)
_ADD2 = np.uint64(0x38495AB5)
_FMIX1 = np.uint64(0xFF51AFD7ED558CCD)
_FMIX2 = np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)
_ONE = np.uint64(1)
# Masks of the two words after the last block of a value, by the number (0 to 15) of its bytes there.
_FIRST = MASKS[np.minimum(np.arange(BLOCK), WORD)]
_SECOND = MASKS[np.maximum(np.arange(BLOCK) - WORD, 0)]


def murmur_words(words: UInt64Array, length: int | NDArray[np.integer[Any]]) -> UInt64Array:
    """Hash values of 1 to 8 bytes."""
    out = np.empty(len(words), dtype=np.uint64)
    for batch in split_batches(len(words)):
        size = np.uint64(length) if isinstance(length, int) else length[batch].astype(np.uint64)
        h1 = words[batch].copy()
        _mix_first(h1)
        h1 ^= np.uint64(SEED)
        h2 = np.full(len(h1), SEED, dtype=np.uint64)
        out[batch] = _finish(h1, h2, size)
    return out


def murmur_bytes(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> UInt64Array:
    """Hash values of any length that lie in one buffer."""
    out = np.empty(len(starts), dtype=np.uint64)
    words = view_unaligned(data)
    is_long = lengths > LONG_VALUE
    if is_long.any():  # by themselves: as many rounds as blocks, whatever the number of values
        rows = np.flatnonzero(is_long)
        out[rows] = _hash_batch(words, starts[rows], lengths[rows])
        rows = np.flatnonzero(~is_long)
        out[rows] = murmur_bytes(data, starts[rows], lengths[rows])
        return out
    for batch in split_batches(len(starts)):
        out[batch] = _hash_batch(words, starts[batch], lengths[batch])
    return out


def _hash_batch(words: UInt64Array, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> UInt64Array:
    order = order_by_length(lengths // BLOCK)
    starts = starts[order]
    lengths = lengths[order]
    blocks = lengths // BLOCK
    h1 = np.full(len(starts), SEED, dtype=np.uint64)
    h2 = h1.copy()
    for i in range(int(blocks.max(initial=0))):
        having = int(np.searchsorted(-blocks, -i, side="left"))
        _add_block(h1[:having], h2[:having], words, starts[:having] + BLOCK * i)
    _add_tail(h1, h2, words, starts + BLOCK * blocks, lengths - BLOCK * blocks)
    out = np.empty_like(h1)
    out[order] = _finish(h1, h2, lengths.astype(np.uint64))
    return out


def _add_block(h1: UInt64Array, h2: UInt64Array, words: UInt64Array, starts: NDArray[np.int64]) -> None:
    k1 = words[starts]
    k2 = words[starts + WORD]
    _mix_first(k1)
    h1 ^= k1
    rotate_left(h1, 27)
    h1 += h2
    h1 *= _FIVE
    h1 += _ADD1
    _mix_second(k2)
    h2 ^= k2
    rotate_left(h2, 31)
    h2 += h1
    h2 *= _FIVE
    h2 += _ADD2


def _add_tail(
    h1: UInt64Array, h2: UInt64Array, words: UInt64Array, starts: NDArray[np.int64], remaining: NDArray[np.int64]
) -> None:
    k1 = words[starts]
    k1 &= _FIRST[remaining]
    _mix_first(k1)
    h1 ^= k1
    k2 = words[starts + WORD]
    k2 &= _SECOND[remaining]
    _mix_second(k2)
    h2 ^= k2


def _mix_first(k: UInt64Array) -> None:
    k *= _C1
    rotate_left(k, 31)
    k *= _C2


def _mix_second(k: UInt64Array) -> None:
    k *= _C2
    rotate_left(k, 33)
    k *= _C1


def _finish(h1: UInt64Array, h2: UInt64Array, size: np.uint64 | UInt64Array) -> UInt64Array:
    h1 ^= size
    h2 ^= size
    h1 += h2
    h2 += h1
    _spread(h1)
    _spread(h2)
    h1 += h2
    h1 >>= _ONE
    return h1


def _spread(h: UInt64Array) -> None:
    h ^= h >> _SHIFT
    h *= _FMIX1
    h ^= h >> _SHIFT
    h *= _FMIX2
    h ^= h >> _SHIFT
