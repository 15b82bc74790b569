"""The rows that deletion vectors of Iceberg and Delta name, read without either."""

from __future__ import annotations

import base64
import struct
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC = 1681511377
_WITH_RUNS, _WITHOUT_RUNS = 12347, 12346
_LARGEST_ARRAY = 4096
_BITS_BYTES = 8192
_FIRST_WITH_OFFSETS = 4
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def iceberg_positions(file: Path, offset: int, size: int) -> frozenset[int]:
    """The positions that a blob of a Puffin file deletes."""
    return _framed(file.read_bytes()[offset : offset + size])


def delta_positions(table: Path, vector: dict[str, Any]) -> frozenset[int]:
    """The positions that a deletion vector deletes, as an `add` action of Delta's log describes it."""
    kind, text = vector["storageType"], vector["pathOrInlineDv"]
    if kind == "i":
        return _positions(_decode(text))
    if kind == "u":
        prefix, name = text[:-20], uuid.UUID(bytes=_decode(text[-20:]))
        file = table / prefix / f"deletion_vector_{name}.bin"
    else:
        file = table / text.removeprefix("file:")
    return _framed(file.read_bytes()[vector["offset"] :])


def _decode(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(bytes.maketrans(_Z85, _B85)))


def _framed(data: bytes) -> frozenset[int]:
    """The positions of a vector that begins with its size."""
    (size,) = struct.unpack_from(">i", data)
    return _positions(data[4 : 4 + size])


def _positions(data: bytes) -> frozenset[int]:
    magic, bitmaps = struct.unpack_from("<iq", data)
    assert magic == MAGIC, magic
    place, positions = 12, set()
    for _ in range(bitmaps):
        (high,) = struct.unpack_from("<I", data, place)
        place, lows = _bitmap(data, place + 4)
        positions.update((high << 32) + low for low in lows)
    return frozenset(positions)


def _bitmap(data: bytes, place: int) -> tuple[int, list[int]]:
    """Where a roaring bitmap of 32 bits ends, and its numbers."""
    (cookie,) = struct.unpack_from("<I", data, place)
    place += 4
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        runs = data[place : place + (count + 7) // 8]
        place += len(runs)
    else:
        assert cookie == _WITHOUT_RUNS, cookie
        (count,) = struct.unpack_from("<I", data, place)
        place += 4
    containers = [struct.unpack_from("<HH", data, place + 4 * number) for number in range(count)]
    place += 4 * count
    if not runs or count >= _FIRST_WITH_OFFSETS:
        place += 4 * count
    numbers: list[int] = []
    for number, (high, last) in enumerate(containers):
        has_runs = bool(runs) and bool(runs[number // 8] >> number % 8 & 1)
        place, lows = _container(data, place, last + 1, has_runs=has_runs)
        numbers.extend((high << 16) + low for low in lows)
    return place, numbers


def _container(data: bytes, place: int, count: int, *, has_runs: bool) -> tuple[int, list[int]]:
    if has_runs:
        (runs,) = struct.unpack_from("<H", data, place)
        pairs = [struct.unpack_from("<HH", data, place + 2 + 4 * number) for number in range(runs)]
        return place + 2 + 4 * runs, [low for first, more in pairs for low in range(first, first + more + 1)]
    if count <= _LARGEST_ARRAY:
        return place + 2 * count, list(struct.unpack_from(f"<{count}H", data, place))
    return place + _BITS_BYTES, list(_ones(data[place : place + _BITS_BYTES]))


def _ones(bits: bytes) -> Iterator[int]:
    for place, byte in enumerate(bits):
        yield from (8 * place + bit for bit in range(8) if byte >> bit & 1)
