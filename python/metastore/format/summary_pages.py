"""Pages of a summary that can be read and verified alone, for planning with a few of very many data files."""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq

from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.format.parquet_footer import ColumnChunk, ParquetFooter


PAGE_ROWS_KEY = "metastore.page_rows"
"""A footer key: number of rows of each page but the last of a row group."""
PAGES_KEY = "metastore.pages"
"""A footer key: by row group and page, a digest of the pages of `PLANNED` and the length of each; base64."""
PLANNED = ("column", "file", "rows", "nulls", "nans", "lo_long", "hi_long", "lo_double", "hi_double", "lo_binary",
           "hi_binary", "lo_exact", "hi_exact")  # fmt: skip
"""The columns of `summary` that planning reads, in the order of the schema."""

_OPTION = "max_rows_per_page"
_MOST_PAGE_BYTES = 8 << 20
_DIGEST_BYTES = 16
_LENGTH_BYTES = 4
_INTEGERS = (4, 5, 6)
_BINARY = 8
_STRUCT = 12
"""Types of Thrift's compact protocol."""
_COMPRESSED_BYTES = 3
_DATA_HEADER = 5
_DATA_HEADER_V2 = 8
_NUM_VALUES = 1
"""Field ids of Parquet's page headers."""


def parse_page_rows(extra: Mapping[str, str]) -> int:
    """Return the rows of a page as a footer's key-values say; 0 if they do not say it, or as no writer does."""
    text = extra.get(PAGE_ROWS_KEY, "")
    if not text.isdecimal() or len(text) >= len(str(1 << 31)):
        return 0
    return int(text)


@cache
def cuts_pages_by_rows() -> bool:
    """Return whether this pyarrow cuts pages by their rows."""
    return _OPTION in inspect.signature(pq.ParquetWriter.__init__).parameters


def page_writer_options(page_rows: int) -> dict[str, Any]:
    """Return options of pyarrow's writer for pages of so many rows."""
    return {_OPTION: page_rows, "data_page_size": _MOST_PAGE_BYTES}


def page_table_bytes(row_groups: Sequence[int], page_rows: int) -> int:
    """Compute the bytes of the page table for row groups of so many rows."""
    pages = sum(-(-rows // page_rows) for rows in row_groups)
    return pages * (_DIGEST_BYTES + _LENGTH_BYTES * len(PLANNED))


def build_page_table(name: str, footer: ParquetFooter, data: bytes | memoryview, page_rows: int) -> bytes | None:
    """Compute the bytes for `PAGES_KEY`, before base64; None if some page has another number of rows."""
    view = memoryview(data)
    entries: list[bytes] = []
    for group in range(footer.metadata.num_row_groups):
        columns = []
        for chunk in _find_planned_chunks(name, footer, group):
            pages = _list_pages(name, view, chunk)
            if not _are_cut_by_rows(pages, chunk.values, page_rows):
                return None
            columns.append(pages)
        entries += map(_describe_pages, zip(*columns, strict=True))
    return b"".join(entries)


def _find_planned_chunks(name: str, footer: ParquetFooter, group: int) -> list[ColumnChunk]:
    """Return the chunks of the columns in `PLANNED`, in their order."""
    chunks = {chunk.name: chunk for chunk in footer.chunks(group)}
    try:
        return list(map(chunks.__getitem__, PLANNED))
    except KeyError as missing:
        raise DamagedObject(name, f"it has no column {missing.args[0]}") from missing


class _Page(NamedTuple):
    """The bytes of a page, and the number of its values."""

    data: memoryview
    values: int


def _list_pages(name: str, view: memoryview, chunk: ColumnChunk) -> list[_Page]:
    pages = []
    start = chunk.start
    remaining = chunk.values
    while remaining > 0:
        try:
            page = _read_page(view, start)
        except (KeyError, IndexError) as e:
            raise DamagedObject(name, f"a page of column {chunk.name} is not one of ours ({e})") from e
        pages.append(page)
        start += len(page.data)
        remaining -= page.values
    return pages


def _read_page(view: memoryview, start: int) -> _Page:
    """Find the page that begins at a position: pyarrow shows neither its end nor the number of its values."""
    reader = _HeaderReader(view, start)
    header = reader.read_struct()
    data_header = header.get(_DATA_HEADER) or header[_DATA_HEADER_V2]
    end = reader.at + header[_COMPRESSED_BYTES]
    return _Page(view[start:end], data_header[_NUM_VALUES])


def _are_cut_by_rows(pages: Sequence[_Page], rows: int, page_rows: int) -> bool:
    """Return whether each page but the last has so many values, and the last the remaining ones."""
    full_pages, remaining = divmod(rows, page_rows)
    expected = [page_rows] * full_pages
    if remaining:
        expected.append(remaining)
    return [page.values for page in pages] == expected


class _HeaderReader:
    """Reads the structs, integers, truths and bytes of Thrift's compact protocol."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self.at = at

    def read_struct(self) -> dict[int, Any]:
        """Read a struct into a dictionary of field id to value."""
        values: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            step = head >> 4
            field = field + step if step else self._integer()
            values[field] = self._value(head & 0xF)
        return values

    def _value(self, kind: int) -> Any:
        if kind == _STRUCT:
            return self.read_struct()
        if kind == _BINARY:
            length = self._varint()
            self.at += length
            return length
        if kind in _INTEGERS:
            return self._integer()
        return kind  # of a truth the type is the value

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = 0
        shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]


def _describe_pages(pages: tuple[_Page, ...]) -> bytes:
    """Join the digest and the lengths of the pages of all columns."""
    digest = hashlib.sha256()
    lengths = b""
    for page in pages:
        digest.update(page.data)
        lengths += len(page.data).to_bytes(_LENGTH_BYTES, "little")
    return digest.digest()[:_DIGEST_BYTES] + lengths
