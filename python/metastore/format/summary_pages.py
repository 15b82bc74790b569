"""Pages of a summary that can be read and verified alone: what planning needs of a few among very many data files."""

from __future__ import annotations

import hashlib
import inspect
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from metastore.errors import DamagedObject
from metastore.format.parquet_footer import iterate_pages

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
    for group in footer.groups:
        by_name = {chunk.name: chunk for chunk in group}
        missing = [field for field in PLANNED if field not in by_name]
        if missing:
            raise DamagedObject(name, f"it has no column {missing[0]}")
        columns = [list(_pages(name, view, by_name[field], page_rows)) for field in PLANNED]
        if any(page is None for column in columns for page in column):
            return None
        found += [_entry(page) for page in zip(*columns, strict=True)]
    return b"".join(found)


def _pages(name: str, view: memoryview, chunk: ColumnChunk, page_rows: int) -> Iterator[memoryview | None]:
    left = chunk.values
    for start, end, values in iterate_pages(name, view, chunk):
        yield view[start:end] if values == min(left, page_rows) else None
        left -= values


def _entry(pages: tuple[memoryview, ...]) -> bytes:
    digest = hashlib.sha256(b"".join(pages)).digest()[:_DIGEST_BYTES]
    return digest + b"".join(len(page).to_bytes(_LENGTH_BYTES, "little") for page in pages)
