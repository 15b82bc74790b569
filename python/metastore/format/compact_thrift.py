"""Reads Thrift's compact protocol within limits, for what stands in an object before anything of it is decoded.

Parquet libraries trust the sizes in a footer and some end the process on a footer that lies. This reader takes nothing
on trust: it never allocates more than the bytes it is given, and refuses what nests deeply.
"""

from __future__ import annotations

from typing import Any

_MAX_DEPTH = 16
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_INTEGERS = (_I16, _I32, _I64)
_WIDTHS = {_BYTE: 1, _DOUBLE: 8}
_SHORT_LIST = 15

Struct = dict[int, Any]
"""Field id to value: a number, bytes, a list or a struct."""


class MalformedThriftError(ValueError):
    """The bytes are no Thrift, or more deeply nested than anything of Parquet's."""


def read_struct(data: bytes | memoryview, start: int = 0) -> tuple[Struct, int]:
    r"""The struct that begins at a position, and the position after it."""
    reader = _Reader(data, start)
    try:
        return reader.struct(0), reader.at
    except IndexError as e:
        raise MalformedThriftError("it ends in the middle of a field") from e


class _Reader:
    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self.data = data
        self.at = at

    def struct(self, depth: int) -> Struct:
        if depth > _MAX_DEPTH:
            raise MalformedThriftError("it nests too deeply")
        found: Struct = {}
        field = 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if head == _STOP:
                return found
            kind, step = head & 0xF, head >> 4
            field = field + step if step else self.zigzag()
            found[field] = self.value(kind, depth)

    def value(self, kind: int, depth: int) -> Any:
        found: Any
        if kind in _INTEGERS:
            found = self.zigzag()
        elif kind == _BINARY:
            found = self.taken(self.varint())
        elif kind == _STRUCT:
            found = self.struct(depth + 1)
        elif kind in (_LIST, _SET):
            found = self.list(depth + 1)
        elif kind in (_TRUE, _FALSE):
            found = kind == _TRUE
        elif kind in _WIDTHS:
            found = self.taken(_WIDTHS[kind])
        else:
            raise MalformedThriftError(f"a field of type {kind}")
        return found

    def list(self, depth: int) -> list[Any]:
        head = self.data[self.at]
        self.at += 1
        kind, size = head & 0xF, head >> 4
        size = self.varint() if size == _SHORT_LIST else size
        if size > len(self.data) - self.at or depth > _MAX_DEPTH:  # every element takes a byte
            raise MalformedThriftError(f"a list of {size} elements")
        if kind in (_TRUE, _FALSE):
            return [self.taken(1)[0] == _TRUE for _ in range(size)]
        return [self.value(kind, depth) for _ in range(size)]

    def taken(self, length: int) -> bytes:
        end = self.at + length
        if end > len(self.data):
            raise MalformedThriftError(f"a text of {length} bytes")
        found = bytes(self.data[self.at : end])
        self.at = end
        return found

    def zigzag(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def varint(self) -> int:
        data, at = self.data, self.at
        number = data[at] & 0x7F
        shift = 7
        while data[at] & 0x80:
            at += 1
            number |= (data[at] & 0x7F) << shift
            shift += 7
            if shift > 70:
                raise MalformedThriftError("a number of more than 64 bits")
        self.at = at + 1
        return number
