"""Pages of a summary that can be read and verified alone: what planning needs of a few among very many data files."""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from metastore.format.parquet_footer import ColumnChunk, ParquetFooter


PAGE_ROWS_KEY = "metastore.page_rows"
"""A footer key: how many rows each page has, but the last of a row group."""
PAGES_KEY = "metastore.pages"
"""A footer key: by row group and page, a digest of the pages of `PLANNED` and the length of each; base64."""
PLANNED = ("column", "file", "rows", "nulls", "nans", "lo_long", "hi_long", "lo_double", "hi_double", "lo_binary",
           "hi_binary", "lo_exact", "hi_exact")  # fmt: skip
"""The columns of `summary` that planning reads, in the order of the schema."""

_OPTION = "max_rows_per_page"
_MOST_PAGE_BYTES = 8 << 20
_DIGEST_BYTES, _LENGTH_BYTES = 16, 4
_INTEGERS, _BINARY, _STRUCT = (4, 5, 6), 8, 12
_COMPRESSED_BYTES, _DATA_HEADER, _DATA_HEADER_V2, _NUM_VALUES = 3, 5, 8, 1


def parse_page_rows(extra: Mapping[str, str]) -> int:
    """How many rows a page has, as a footer's key-values say; 0 where they do not, or no writer says so."""
    text = extra.get(PAGE_ROWS_KEY, "")
    return int(text) if text.isdecimal() and len(text) < len(str(1 << 31)) else 0


@cache
def cuts_pages_by_rows() -> bool:
    """Whether this pyarrow cuts pages by their rows."""
    return _OPTION in inspect.signature(pq.ParquetWriter.__init__).parameters


def page_writer_options(page_rows: int) -> dict[str, Any]:
    """Options of pyarrow's writer that make pages of so many rows."""
    return {_OPTION: page_rows, "data_page_size": _MOST_PAGE_BYTES}


def page_table_bytes(row_groups: Sequence[int], page_rows: int) -> int:
    """Bytes of `page_table` for row groups of so many rows."""
    pages = sum(-(-rows // page_rows) for rows in row_groups)
    return pages * (_DIGEST_BYTES + _LENGTH_BYTES * len(PLANNED))


def build_page_table(name: str, footer: ParquetFooter, data: bytes | memoryview, page_rows: int) -> bytes | None:
    """What stands under `PAGES_KEY`, before base64."""
    view, found = memoryview(data), []
    for group in range(footer.metadata.num_row_groups):
        by_name = {chunk.name: chunk for chunk in footer.chunks(group)}
        missing = [field for field in PLANNED if field not in by_name]
        if missing:
            raise DamagedObject(name, f"it has no column {missing[0]}")
        columns = [list(_pages(name, view, by_name[field], page_rows)) for field in PLANNED]
        if any(page is None for column in columns for page in column):
            return None
        found += [_entry(page) for page in zip(*columns, strict=True)]
    return b"".join(found)


def _pages(name: str, view: memoryview, chunk: ColumnChunk, page_rows: int) -> Iterator[memoryview | None]:
    at, left = chunk.start, chunk.values
    while left > 0:
        try:
            end, values = _end_of_page(view, at)
        except (KeyError, IndexError) as e:
            raise DamagedObject(name, f"a page of column {chunk.name} is not one of ours ({e})") from e
        yield view[at:end] if values == min(left, page_rows) else None
        at, left = end, left - values


def _end_of_page(view: memoryview, at: int) -> tuple[int, int]:
    """Where the page at a position ends, and how many values it has: pyarrow does not show either."""
    reader = _HeaderReader(view, at)
    header = reader.read_struct()
    about = header[_DATA_HEADER] if _DATA_HEADER in header else header[_DATA_HEADER_V2]
    return reader.at + header[_COMPRESSED_BYTES], about[_NUM_VALUES]


class _HeaderReader:
    """Reads the structs, integers, truths and bytes of Thrift's compact protocol."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data = data
        self.at = at

    def read_struct(self) -> dict[int, Any]:
        """Field id to value."""
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            step = head >> 4
            field = field + step if step else self._integer()
            found[field] = self._value(head & 0xF)
        return found

    def _value(self, kind: int) -> Any:
        if kind == _STRUCT:
            return self.read_struct()
        if kind == _BINARY:
            length = self._varint()
            self.at += length
            return length
        return self._integer() if kind in _INTEGERS else kind

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
        return number | byte << shift

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]


def _entry(pages: tuple[memoryview, ...]) -> bytes:
    digest = hashlib.sha256(b"".join(pages)).digest()[:_DIGEST_BYTES]
    return digest + b"".join(len(page).to_bytes(_LENGTH_BYTES, "little") for page in pages)
