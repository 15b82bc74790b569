"""Objects made by hand that claim what would fill a memory, every digest right: shared by the tests of both readers."""

from __future__ import annotations

import base64
import copy
import functools
import hashlib
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from format import hostile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Fields = list[list[Any]]

TRUE, I32, I64, BINARY, LIST, STRUCT = 1, 5, 6, 8, 9, 12
_DOUBLE, _SET, _LONG_LIST = 7, 10, 15
SCHEMA, GROUPS, TEXTS = 2, 4, 5
START, LENGTH, VALUES, DECODED = 9, 7, 5, 6
PLAIN, RLE, DELTA, DELTA_BYTES = 0, 3, 5, 7
MANY = 1 << 26


def varint(number: int) -> bytes:
    """An unsigned number of Thrift's compact protocol and of Parquet's encodings."""
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def zigzag(number: int) -> bytes:
    """A signed number, as above."""
    return varint((number << 1 ^ number >> 63) & (1 << 64) - 1)


def thrift(fields: Fields) -> bytes:
    """A structure of [id, type, value] fields."""
    out, last = b"", 0
    for field, kind, value in fields:
        out, last = out + bytes([(field - last) << 4 | kind]) + _encoded(kind, value), field
    return out + b"\0"


def _encoded(kind: int, value: Any) -> bytes:
    if kind in (1, 2):
        return b""
    if kind in (4, I32, I64):
        return zigzag(value)
    if kind == BINARY:
        return varint(len(value)) + value
    if kind == STRUCT:
        return thrift(value)
    if kind in (LIST, _SET):
        inner, items = value
        head = (
            bytes([len(items) << 4 | inner]) if len(items) < _LONG_LIST else bytes([0xF0 | inner]) + varint(len(items))
        )
        return head + b"".join(bytes([item]) if inner in (1, 2) else _encoded(inner, item) for item in items)
    return bytes(value)


class Parser:
    """Reads what `thrift` writes, whole."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def fields(self) -> Fields:
        """A structure."""
        found, last = [], 0
        while head := self._byte():
            last = last + (head >> 4) if head >> 4 else self._zigzag()
            found.append([last, head & 15, self._value(head & 15)])
        return found

    def _value(self, kind: int) -> Any:
        if kind in (1, 2):
            return None
        if kind == STRUCT:
            return self.fields()
        if kind in (LIST, _SET):
            head = self._byte()
            size = self._varint() if head >> 4 == _LONG_LIST else head >> 4
            inner = head & 15
            return inner, [self._byte() if inner in (1, 2) else self._value(inner) for _ in range(size)]
        if kind in (BINARY, _DOUBLE, 3):
            length = {_DOUBLE: 8, 3: 1}.get(kind) or self._varint()
            self.at += length
            return self.data[self.at - length : self.at]
        return self._zigzag()

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _varint(self) -> int:
        number, shift = 0, 0
        while (byte := self._byte()) & 0x80:
            number, shift = number | (byte & 0x7F) << shift, shift + 7
        return number | byte << shift

    def _zigzag(self) -> int:
        number = self._varint()
        return number >> 1 ^ -(number & 1)


def field(fields: Fields, number: int) -> Any:
    """The value of a field."""
    return next(value for one, _, value in fields if one == number)


def put(fields: Fields, number: int, value: Any) -> None:
    """Changes a field."""
    next(one for one in fields if one[0] == number)[2] = value


class Crafted:
    """An object whose footer can be changed at will."""

    def __init__(self, kind: str) -> None:
        data = hostile.samples()[kind]
        length = int.from_bytes(data[-8:-4], "little")
        self.body = data[: -8 - length]
        self.footer = Parser(data[-8 - length : -8]).fields()
        elements = field(self.footer, SCHEMA)[1]
        self.leaves = [field(e, 4).decode() for e in elements if not any(one[0] == 5 and one[2] for one in e)]

    @property
    def groups(self) -> list[Fields]:
        """The row groups."""
        return field(self.footer, GROUPS)[1]

    def chunks(self) -> Iterator[tuple[str, Fields]]:
        """Name and metadata of every column of every row group."""
        for group in self.groups:
            for name, chunk in zip(self.leaves, field(group, 1)[1], strict=True):
                yield name, field(chunk, 3)

    def one_group(self) -> None:
        """Leaves only the first row group."""
        put(self.footer, GROUPS, (STRUCT, self.groups[:1]))

    def set_rows(self, rows: int) -> None:
        """Says that there are so many rows."""
        put(self.footer, 3, rows)
        for group in self.groups:
            put(group, 3, rows)

    def replace(self, meta: Fields, pages: bytes, values: int, decoded: int = 1000) -> None:
        """Other pages for a column."""
        for number, value in ((START, len(self.body)), (LENGTH, len(pages)), (VALUES, values), (DECODED, decoded)):
            put(meta, number, value)
        self.body += pages

    def data(self) -> bytes:
        """The file, its digests right where its columns lie inside."""
        digests = b""
        for _, meta in self.chunks():
            start, length = field(meta, START), field(meta, LENGTH)
            digests += hashlib.sha256(self.body[max(start, 0) : max(start + length, 0)]).digest()[:16]
        for text in field(self.footer, TEXTS)[1]:
            if field(text, 1) == b"metastore.digests":
                put(text, 2, base64.b64encode(digests))
        footer = thrift(self.footer)
        return self.body + footer + struct.pack("<i", len(footer)) + b"PAR1"


def page(body: bytes, values: int, encoding: int, *, size: int | None = None, levels: bytes | None = None) -> bytes:
    """A page of a column that may be null: a run says that all values are there, unless levels are given."""
    levels = varint(values << 1) + b"\1" if levels is None else levels
    return raw_page(struct.pack("<i", len(levels)) + levels + body, values, encoding, size)


def raw_page(plain: bytes, values: int, encoding: int, size: int | None = None) -> bytes:
    """A page as it is."""
    packed = pa.compress(plain, "zstd", asbytes=True)
    about = [[1, I32, values], [2, I32, encoding], [3, I32, RLE], [4, I32, RLE]]
    size = len(plain) if size is None else size
    return thrift([[1, I32, 0], [2, I32, size], [3, I32, len(packed)], [5, STRUCT, about]]) + packed


def ramp(count: int, first: int = 0, step: int = 0) -> bytes:
    """So many integers, each a step more: a few bytes for every block."""
    block, mini = 1 << 15, 4
    blocks = -(-(count - 1) // block)
    head = varint(block) + varint(mini) + varint(count) + zigzag(first)
    return head + (zigzag(step) + bytes(mini)) * blocks


def _changed(change: Callable[[Crafted], None], kind: str = "summary") -> Callable[[], bytes]:
    def data() -> bytes:
        made = Crafted(kind)
        change(made)
        return made.data()

    return data


def _each(number: int, value: int) -> Callable[[Crafted], None]:
    def change(made: Crafted) -> None:
        for _, meta in made.chunks():
            put(meta, number, value)

    return change


def _pages(names: set[str], pages: Callable[[], bytes]) -> Callable[[Crafted], None]:
    """Other pages of columns in the first row group of five rows."""

    def change(made: Crafted) -> None:
        made.one_group()
        made.set_rows(5)
        replaced = pages()
        for name, meta in made.chunks():
            if name in names:
                made.replace(meta, replaced, 5)

    return change


def _many_rows(made: Crafted) -> None:
    """Consistent: 67 million rows, in some kilobytes."""
    made.one_group()
    made.set_rows(MANY)
    zeros, nothing = page(ramp(MANY), MANY, DELTA), page(b"", MANY, PLAIN, levels=varint(MANY << 1) + b"\0")
    there = raw_page(ramp(MANY), MANY, DELTA)
    required = {field(e, 4).decode() for e in field(made.footer, SCHEMA)[1] if any(o[0] == 3 and o[2] == 0 for o in e)}
    for name, meta in made.chunks():
        integers = name in {"rows", "nulls", "nans", "size"}
        made.replace(meta, there if name in required else zeros if integers else nothing, MANY)


def _long_list(made: Crafted) -> None:
    """One row with a list of 67 million numbers."""
    made.one_group()
    for _, meta in made.chunks():
        if b"percentiles_long" in field(meta, 3)[1]:
            repeats = varint(1 << 1) + b"\0" + varint(MANY - 1 << 1) + b"\1"
            defines = varint(MANY << 1) + b"\3"
            levels = b"".join(struct.pack("<i", len(one)) + one for one in (repeats, defines))
            made.replace(meta, raw_page(levels + ramp(MANY), MANY, DELTA), MANY)


def _overlapping(made: Crafted) -> None:
    """The upper bounds are the lower ones: every length, count and encoding fits."""
    made.one_group()
    lower = {name: meta for name, meta in made.chunks() if name.startswith("lo_")}
    for name, meta in made.chunks():
        if name in ("hi_long", "hi_double", "hi_binary", "hi_exact"):
            for number in (START, LENGTH, DECODED):
                put(meta, number, field(lower[name.replace("hi_", "lo_")], number))


def _many_columns(made: Crafted) -> None:
    elements = field(made.footer, SCHEMA)[1]
    leaf = [[1, I32, 2], [3, I32, 1], [4, BINARY, b"c"]]
    put(elements[0], 5, 1_000_000)
    put(made.footer, SCHEMA, (STRUCT, [elements[0]] + [leaf] * 1_000_000))


def _deep_columns(made: Crafted) -> None:
    elements = field(made.footer, SCHEMA)[1]
    group = [[3, I32, 1], [4, BINARY, b"g"], [5, I32, 1]]
    put(elements[0], 5, 1)
    leaf = [[1, I32, 2], [3, I32, 1], [4, BINARY, b"c"]]
    put(made.footer, SCHEMA, (STRUCT, [elements[0]] + [group] * 200_000 + [leaf]))


def _children(count: int) -> Callable[[Crafted], None]:
    return lambda made: put(field(made.footer, SCHEMA)[1][0], 5, count)


def _many_texts(made: Crafted) -> None:
    texts = field(made.footer, TEXTS)[1]
    put(made.footer, TEXTS, (STRUCT, texts + [[[1, BINARY, b""]]] * 1_000_000))


def _many_groups(made: Crafted) -> None:
    put(made.footer, GROUPS, (STRUCT, [copy.deepcopy(made.groups[0])] * 5_000))


@functools.cache
def objects() -> dict[str, Callable[[], bytes]]:
    """Every kind of claim, by name, each made when it is called; the name begins with the kind of object."""
    bounds, texts = {"nulls", "lo_long", "hi_long"}, {"lo_binary", "hi_binary"}
    deep = b"\x1c" * 100_000
    return {
        "summary.rows-of-31-bits": _changed(lambda made: made.set_rows((1 << 31) - 1)),
        "summary.rows-below-zero": _changed(lambda made: made.set_rows(-5)),
        "summary.many-rows": _changed(_many_rows),
        "files.many-rows": _changed(_many_rows, "files"),
        "summary.values-of-63-bits": _changed(_each(VALUES, (1 << 63) - 1)),
        "summary.length-below-zero": _changed(_each(LENGTH, -1)),
        "summary.length-of-31-bits": _changed(_each(LENGTH, (1 << 31) - 1)),
        "summary.start-below-zero": _changed(_each(START, -1)),
        "summary.start-of-63-bits": _changed(_each(START, (1 << 63) - 9)),
        "files.start-of-63-bits": _changed(_each(START, (1 << 63) - 9), "files"),
        "summary.overlapping": _changed(_overlapping),
        "summary.many-columns": _changed(_many_columns),
        "files.many-columns": _changed(_many_columns, "files"),
        "summary.deep-columns": _changed(_deep_columns),
        "summary.children-of-31-bits": _changed(_children((1 << 31) - 1)),
        "summary.children-below-zero": _changed(_children(-1)),
        "summary.many-texts": _changed(_many_texts),
        "summary.many-groups": _changed(_many_groups),
        "summary.page-of-31-bits": _changed(_pages(bounds, lambda: page(ramp(5), 5, DELTA, size=(1 << 31) - 1))),
        "summary.page-below-zero": _changed(_pages(bounds, lambda: page(ramp(5), 5, DELTA, size=-1))),
        "summary.page-too-small": _changed(_pages(bounds, lambda: page(ramp(5), 5, DELTA, size=3))),
        "summary.zstd-bomb": _changed(_pages(bounds, _bombs)),
        "summary.deep-page-header": _changed(_pages(bounds, lambda: deep)),
        "summary.page-of-many-values": _changed(_pages(bounds, lambda: page(ramp(MANY), MANY, DELTA))),
        "summary.packed-levels": _changed(
            _pages(bounds, lambda: page(ramp(5), 5, DELTA, levels=varint((1 << 31) - 1) + b"\1"))
        ),
        "summary.many-integers": _changed(_pages(bounds, lambda: page(ramp(1 << 30)[:40], 5, DELTA))),
        "summary.integers-of-63-bits": _changed(
            _pages(bounds, lambda: page(varint(128) + varint(4) + varint((1 << 63) - 1), 5, DELTA))
        ),
        "summary.texts-of-63-bits": _changed(
            _pages(texts, lambda: page(ramp(5) + ramp(5, 1 << 62, 1 << 61), 5, DELTA_BYTES))
        ),
        "summary.texts-below-zero": _changed(_pages(texts, lambda: page(ramp(5) + ramp(5, -1), 5, DELTA_BYTES))),
        "summary.growing-texts": _changed(_growing_texts),
        "summary.long-list": _changed(_long_list),
    }


def _bombs() -> bytes:
    bomb = pa.compress(bytes(200 << 20), "zstd", asbytes=True)
    about = [[1, I32, 5], [2, I32, DELTA], [3, I32, RLE], [4, I32, RLE]]
    return thrift([[1, I32, 0], [2, I32, 200 << 20], [3, I32, len(bomb)], [5, STRUCT, about]]) + bomb


def _growing_texts(made: Crafted) -> None:
    """Rows whose byte strings take a hundred gigabytes: each is the one before but for its last byte."""
    count, length = 200_000, 500_000
    made.one_group()
    made.set_rows(count)
    lengths = ramp_then(count, 0, length - 1) + ramp_then(count, length, 1)
    strings = page(lengths + b"x" * (length + count), count, DELTA_BYTES)
    nothing = page(b"", count, PLAIN, levels=varint(count << 1) + b"\0")
    for name, meta in made.chunks():
        if name in {"column", "file"}:
            made.replace(meta, raw_page(ramp(count, 0, int(name == "file")), count, DELTA), count)
        else:
            made.replace(meta, strings if name in {"lo_binary", "hi_binary"} else nothing, count)


def ramp_then(count: int, first: int, rest: int) -> bytes:
    """A number, then always another one: only the first difference is not 0."""
    block, mini = 128, 4
    least = min(rest - first, 0)
    steps = [rest - first - least] + [-least] * 31
    out = varint(block) + varint(mini) + varint(count) + zigzag(first)
    left, first_block = count - 1, True
    while left > 0:
        if first_block and least == 0:
            out += zigzag(0) + bytes([64, 0, 0, 0]) + struct.pack("<32q", *steps)
        elif first_block:
            out += zigzag(least) + bytes([64] * mini) + struct.pack("<32q", *steps)
            out += struct.pack("<96q", *([-least] * 96))
        else:
            out += zigzag(0) + bytes(mini)
        left, first_block = left - block, False
    return out
