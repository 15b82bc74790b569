"""XXH64 with seed 0, the hash of Parquet's bloom filters, for whole arrays at once (Yann Collet's specification)."""

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
    """Append a block of zeros to a buffer, as hashes of bytes need it."""
    return np.concatenate([data, np.zeros(BLOCK, dtype=np.uint8)])


def view_unaligned(data: NDArray[np.uint8]) -> UInt64Array:
    """View the little-endian word that begins at every byte of a buffer, without a copy."""
    words: UInt64Array = np.ndarray((max(len(data) - WORD + 1, 0),), dtype="<u8", buffer=data, strides=(1,))
    return words


def split_batches(length: int) -> Iterator[slice]:
    """Split rows into slices so short that the work on a slice stays in the processor's cache."""
    return (slice(at, at + _BATCH) for at in range(0, length, _BATCH))


def order_by_length(lengths: NDArray[np.int64]) -> NDArray[np.intp]:
    """Order values by decreasing length, so that the values with an i-th block are a prefix."""
    longest = int(lengths.max(initial=0))
    if longest > LONG_VALUE:
        return np.argsort(-lengths, kind="stable")
    if longest < 256:  # numpy sorts 8 and 16 bits by radix
        return np.argsort((longest - lengths).astype(np.uint8), kind="stable")
    return np.argsort((longest - lengths).astype(np.uint16), kind="stable")


def rotate_left(x: UInt64Array, bits: int) -> None:
    """Rotate every word to the left, in place."""
    high = x >> np.uint64(64 - bits)
    x <<= np.uint64(bits)
    x |= high


STRIPE = 32

_WINDOW = 1 << 17  # rows that are ordered by length together: few enough to lie near each other

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_FIRST = ((int(_P1) + int(_P2)) % (1 << 64), int(_P2), 0, (1 << 64) - int(_P1))
_TURNS = (1, 7, 12, 18)
_HALF = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(0xFF)


def xxhash_words(words: UInt64Array) -> UInt64Array:
    """Hash values of 8 bytes."""
    out = np.empty(len(words), dtype=np.uint64)
    for batch in split_batches(len(words)):
        h = np.full(len(words[batch]), int(_P5) + WORD, dtype=np.uint64)
        _add_word(h, words[batch].copy())
        out[batch] = _spread(h)
    return out


def xxhash_bytes(data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> UInt64Array:
    """Hash values of any length that lie in one buffer."""
    out = np.empty(len(starts), dtype=np.uint64)
    words = view_unaligned(data)
    for first in range(0, len(starts), _WINDOW):
        order = first + order_by_length(lengths[first : first + _WINDOW])
        for batch in split_batches(len(order)):
            rows = order[batch]
            out[rows] = _hash_batch(words, starts[rows], lengths[rows])
    return out


def _hash_batch(words: UInt64Array, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> UInt64Array:
    """Hash values that come longest first."""
    stripes = lengths // STRIPE
    h = np.full(len(starts), _P5, dtype=np.uint64)
    striped = int(np.searchsorted(-stripes, 0, side="left"))
    if striped:
        h[:striped] = _hash_stripes(words, starts[:striped], stripes[:striped])
    h += lengths.astype(np.uint64)
    at = starts + STRIPE * stripes
    remaining = lengths - STRIPE * stripes
    for _ in range(STRIPE // WORD - 1):
        at, remaining = _add_tails(h, words, at, remaining, WORD)
    at, remaining = _add_tails(h, words, at, remaining, WORD // 2)
    for _ in range(WORD // 2 - 1):
        at, remaining = _add_tails(h, words, at, remaining, 1)
    return _spread(h)


def _hash_stripes(words: UInt64Array, starts: NDArray[np.int64], stripes: NDArray[np.int64]) -> UInt64Array:
    lanes = [np.full(len(starts), first, dtype=np.uint64) for first in _FIRST]
    for i in range(int(stripes[0])):
        having = int(np.searchsorted(-stripes, -i, side="left"))
        at = starts[:having] + STRIPE * i
        for n, lane in enumerate(lanes):
            _mix(lane[:having], words[at + WORD * n])
    h = np.zeros(len(starts), dtype=np.uint64)
    for lane, bits in zip(lanes, _TURNS, strict=True):
        turned = lane.copy()
        rotate_left(turned, bits)
        h += turned
    for lane in lanes:
        h ^= _mixed(lane)
        h *= _P1
        h += _P4
    return h


def _add_tails(
    h: UInt64Array, words: UInt64Array, at: NDArray[np.int64], remaining: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add the next `size` bytes of the values that have as many; return position and number of the remaining bytes."""
    if int(remaining.max()) < size:
        return at, remaining
    if int(remaining.min()) >= size:
        _add_tail(h, words[at], size)
        return at + size, remaining - size
    rows = np.flatnonzero(remaining >= size)
    part = h[rows]
    _add_tail(part, words[at[rows]], size)
    h[rows] = part
    taken = np.where(remaining >= size, size, 0)
    return at + taken, remaining - taken


def _add_tail(part: UInt64Array, word: UInt64Array, size: int) -> None:
    if size == WORD:
        _add_word(part, word)
    elif size == 1:
        part ^= (word & _BYTE) * _P5
        rotate_left(part, 11)
        part *= _P1
    else:
        part ^= (word & _HALF) * _P1
        rotate_left(part, 23)
        part *= _P2
        part += _P3


def _add_word(h: UInt64Array, word: UInt64Array) -> None:
    h ^= _mixed(word)
    rotate_left(h, 27)
    h *= _P1
    h += _P4


def _mixed(word: UInt64Array) -> UInt64Array:
    lane: UInt64Array = word * _P2
    rotate_left(lane, 31)
    lane *= _P1
    return lane


def _mix(lane: UInt64Array, word: UInt64Array) -> None:
    lane += word * _P2
    rotate_left(lane, 31)
    lane *= _P1


def _spread(h: UInt64Array) -> UInt64Array:
    h ^= h >> np.uint64(33)
    h *= _P2
    h ^= h >> np.uint64(29)
    h *= _P3
    h ^= h >> np.uint64(32)
    return h
