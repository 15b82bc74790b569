"""Ways to spoil a data file, each of which readers notice at another place."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyarrow import orc

if TYPE_CHECKING:
    from pathlib import Path

_FOOTER_END = 8
"""Bytes after the footer: its length and the magic number."""
_LENGTHS = 4
"""Bytes before a block of Avro: its rows and its length, each of a hundred or more."""
_LONG = 8
"""Bytes of a 64-bit integer."""


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def write_other_text(file: Path) -> None:
    file.write_text("id,v,s\n1,2,x\n3,4,y\n")


def keep_magic_number(file: Path) -> None:
    file.write_bytes(b"PAR1")


def write_noise(file: Path) -> None:
    file.write_bytes(random.Random(1).randbytes(file.stat().st_size))


def garble_footer(file: Path) -> None:
    content = file.read_bytes()
    footer = _read_footer(content)
    _write_footer(file, content, b"\xff" * len(footer))


def garble_first_page(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:4] + bytes(100) + content[104:])


def shorten_bounds(file: Path) -> None:
    """Writes the least value of the first column, a 64-bit integer, with seven bytes."""
    content = file.read_bytes()
    footer = _read_footer(content)
    least = pq.ParquetFile(file).metadata.row_group(0).column(0).statistics.min.to_bytes(_LONG, "little")
    assert bytes([_LONG]) + least in footer
    _write_footer(file, content, footer.replace(bytes([_LONG]) + least, bytes([_LONG - 1]) + least[:-1]))


def garble_stripes(file: Path) -> None:
    """Leaves the footer of an ORC file whole, which tells where stripes and streams are."""
    _write_noise_between(file, len(b"ORC"), orc.ORCFile(file).content_length)


def garble_blocks(file: Path) -> None:
    """Leaves the head of an Avro file whole, with its schema, and the marks between blocks."""
    content = file.read_bytes()
    mark = content[-16:]
    first_block = content.index(mark) + len(mark)
    _write_noise_between(file, first_block + _LENGTHS, len(content) - len(mark))


def garble_pages(file: Path) -> None:
    content = file.read_bytes()
    _write_noise_between(file, len(b"PAR1"), len(content) - _FOOTER_END - len(_read_footer(content)))


def _write_noise_between(file: Path, start: int, end: int) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:start] + random.Random(1).randbytes(end - start) + content[end:])


def _read_footer(content: bytes) -> bytes:
    length = int.from_bytes(content[-_FOOTER_END:-4], "little")
    return content[-_FOOTER_END - length : -_FOOTER_END]


def _write_footer(file: Path, content: bytes, footer: bytes) -> None:
    data = content[: -_FOOTER_END - len(_read_footer(content))]
    file.write_bytes(data + footer + len(footer).to_bytes(4, "little") + content[-4:])
