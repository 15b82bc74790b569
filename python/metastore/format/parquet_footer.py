"""What a Parquet footer says, checked against what writers of this format make, before a library reads the object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from metastore.contract import read_contract
from metastore.errors import DamagedObject
from metastore.format.compact_thrift import MalformedThriftError, Struct, read_struct

if TYPE_CHECKING:
    from collections.abc import Iterator


_LIMITS = read_contract("limits")
MAX_FOOTER_BYTES: int = _LIMITS["footer_bytes"]
MAX_ROWS: int = _LIMITS["object_rows"]
MAX_BYTES: int = _LIMITS["decoded_bytes"]
FEW_BYTES: int = _LIMITS["decoded_few"]
MOST_EXPANSION: int = _LIMITS["decoded_expansion"]
MAX_CHUNKS = 1 << 16
MAX_VALUES = 1 << 27
MAX_PAGE_BYTES = 256 << 20
MAX_COLUMNS = 1 << 10
MAX_TEXTS = 1 << 10
MAX_CHUNK_BYTES = (1 << 31) - 1

_TAIL_BYTES = 8
_PLAIN, _ZSTD = 0, 6
_BINARY_TYPES = (6, 7)
_REPEATED = 2
_PAGE_V1, _PAGE_V2 = 0, 3
_DATA_HEADERS = {_PAGE_V1: 5, _PAGE_V2: 8}
_ENCODINGS = {0, 3, 5, 6, 7}
"""PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY."""


@dataclass(frozen=True)
class ColumnChunk:
    """A column of a row group.

    Attributes:
        leaf: Ordinal of the column among the leaves of the schema.
        name: Its top-level name.
        start: Where its pages begin.
        length: Their bytes.
        values: How many values, nulls included.
        binary: Whether its values have no fixed length.
    """

    leaf: int
    name: str
    start: int
    length: int
    values: int
    binary: bool


@dataclass(frozen=True)
class ParquetFooter:
    """A footer within limits.

    Attributes:
        rows: Of all row groups.
        groups: The chunks of each row group, in the order of the leaves.
        texts: Key-values.
    """

    rows: int
    groups: tuple[tuple[ColumnChunk, ...], ...]
    texts: dict[str, str]


def decoded_limit(length: int) -> int:
    """How many bytes an object of that length may become when decoded."""
    return min(MAX_BYTES, FEW_BYTES + MOST_EXPANSION * length)


def footer_length(name: str, data: bytes | memoryview) -> int:
    """Bytes from the start of the footer to the end of the object."""
    length = int.from_bytes(data[-_TAIL_BYTES:-4], "little") + _TAIL_BYTES
    if bytes(data[-4:]) != b"PAR1" or length > len(data) or length > MAX_FOOTER_BYTES:
        raise DamagedObject(name, "it does not end as a Parquet file does")
    return length


def read_footer(name: str, data: bytes | memoryview) -> ParquetFooter:
    """The footer of an object."""
    start = len(data) - footer_length(name, data)
    return _read(name, bytes(data[start:-_TAIL_BYTES]), start)


def read_detached_footer(name: str, footer: bytes, length: int) -> ParquetFooter:
    """The footer of an object of which nothing else is at hand."""
    if footer_length(name, footer) != len(footer):
        raise DamagedObject(name, "its footer has another length than was named")
    return _read(name, footer[:-_TAIL_BYTES], length - len(footer))


@lru_cache(64)
def _read(name: str, footer: bytes, end_of_data: int) -> ParquetFooter:
    try:
        body, _ = read_struct(footer)
        leaves = list(_leaves(body[2]))
        groups = tuple(_group(group, leaves, end_of_data) for group in body.get(4, []))
        texts = [(pair[1].decode(), pair.get(2, b"").decode()) for pair in body.get(5, [])]
        found = ParquetFooter(body[3], groups, dict(texts))
        _check(found, body.get(4, []), len(texts), decoded_limit(end_of_data + len(footer)))
    except (MalformedThriftError, KeyError, TypeError, AttributeError, IndexError, ValueError) as e:
        raise DamagedObject(name, f"its footer is not one of ours ({e or type(e).__name__})") from e
    return found


def largest_page_bytes(name: str, data: bytes | memoryview, chunk: ColumnChunk) -> int:
    """Checks the pages of a chunk, and gives the bytes of the largest when decompressed."""
    return max((size for size, *_ in _all_pages(name, data, chunk)), default=0)


def iterate_pages(name: str, data: bytes | memoryview, chunk: ColumnChunk) -> Iterator[tuple[int, int, int]]:
    """Start and end of each page of a chunk, header included, and how many values it has."""
    for _, start, end, values in _all_pages(name, data, chunk):
        yield start, end, values


def _all_pages(name: str, data: bytes | memoryview, chunk: ColumnChunk) -> Iterator[tuple[int, int, int, int]]:
    """Bytes when decompressed, start, end and number of values of each page."""
    view = memoryview(data)[chunk.start : chunk.start + chunk.length]
    at, values = 0, 0
    try:
        while at < len(view) and values < chunk.values:
            start = at
            size, count, at = _page(view, start)
            values += count
            yield size, chunk.start + start, chunk.start + at, count
    except (MalformedThriftError, KeyError, IndexError, TypeError, AttributeError) as e:
        raise DamagedObject(name, f"a page of column {chunk.name} is not one of ours ({e})") from e
    if values != chunk.values:
        raise DamagedObject(name, f"{values} values in column {chunk.name} where {chunk.values} were named")


def _page(view: memoryview, at: int) -> tuple[int, int, int]:
    """Bytes when decompressed, number of values and end of the page at a position."""
    header, start = read_struct(view, at)
    kind, size, compressed = header[1], header[2], header[3]
    inner = header[_DATA_HEADERS[kind]]
    count, encoding = inner[1], inner[2 if kind == _PAGE_V1 else 4]
    within = 0 <= compressed <= len(view) - start and 0 <= size <= MAX_PAGE_BYTES and count > 0
    if not within or encoding not in _ENCODINGS:
        raise MalformedThriftError(f"a page of {size} bytes and {count} values")
    return size, count, start + compressed


class _Leaf(NamedTuple):
    """A column of the schema.

    Attributes:
        name: Of the top-level field.
        binary: Whether values have no fixed length.
        repeated: Whether a row may have many.
    """

    name: str
    binary: bool
    repeated: bool


def _leaves(elements: list[Struct]) -> Iterator[_Leaf]:
    if len(elements) > MAX_COLUMNS:
        raise MalformedThriftError(f"{len(elements)} columns")
    position = 1

    def walk(top: str | None, depth: int, *, repeated: bool) -> Iterator[_Leaf]:
        nonlocal position
        element = elements[position]
        position += 1
        name = element[4].decode()
        children, repeated = element.get(5, 0), repeated or element.get(3) == _REPEATED
        if depth > 4 or children < 0:
            raise MalformedThriftError("columns nest deeply")
        if not children:
            yield _Leaf(top or name, element[1] in _BINARY_TYPES, repeated)
        for _ in range(children):
            yield from walk(top or name, depth + 1, repeated=repeated)

    for _ in range(elements[0][5]):
        yield from walk(None, 0, repeated=False)
    if position != len(elements):
        raise MalformedThriftError("columns that belong to nothing")


def _group(group: Struct, leaves: list[_Leaf], end_of_data: int) -> tuple[ColumnChunk, ...]:
    columns = group[1]
    if len(columns) != len(leaves):
        raise MalformedThriftError("a row group with other columns than the schema")
    abouts = (column[3] for column in columns)
    return tuple(
        _chunk(place, leaf, about, group[3], end_of_data)
        for place, (about, leaf) in enumerate(zip(abouts, leaves, strict=True))
    )


def _chunk(place: int, leaf: _Leaf, about: Struct, rows: int, end_of_data: int) -> ColumnChunk:
    if 11 in about:
        raise MalformedThriftError("it has a dictionary")
    if about[4] not in (_PLAIN, _ZSTD):
        raise MalformedThriftError(f"compression {about[4]}")
    values, length, start = about[5], about[7], about[9]
    if not (0 <= values <= MAX_VALUES and 0 <= length <= MAX_CHUNK_BYTES and 4 <= start <= end_of_data - length):
        raise MalformedThriftError(f"column {leaf.name} lies outside of it")
    if values < rows or (values > rows and not leaf.repeated):  # a row has a value or a null, in lists at least one
        raise MalformedThriftError(f"{values} values in {rows} rows")
    return ColumnChunk(place, leaf.name, start, length, values, leaf.binary)


def _check(footer: ParquetFooter, groups: list[Any], texts: int, most: int) -> None:
    rows = [group[3] for group in groups]
    size = sum(max(0, column[3][6]) for group in groups for column in group[1])
    if not 0 <= footer.rows <= MAX_ROWS or sum(rows) != footer.rows or any(count <= 0 for count in rows):
        raise MalformedThriftError(f"{footer.rows} rows in row groups of {rows[:5]}")
    if texts > MAX_TEXTS:
        raise MalformedThriftError(f"{texts} texts")
    if sum(len(group) for group in footer.groups) > MAX_CHUNKS:
        raise MalformedThriftError(f"{len(footer.groups)} row groups of {len(footer.groups[0])} columns")
    if size > most:
        raise MalformedThriftError(f"{size} bytes when decoded")
    places = [(chunk.start, chunk.start + chunk.length) for group in footer.groups for chunk in group]
    if any(start < end for (_, end), (start, _) in pairwise(places)):
        raise MalformedThriftError("its columns overlap")
