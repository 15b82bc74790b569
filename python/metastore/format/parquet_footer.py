"""Footers of objects, and the limit for the size of a decoded object.

Callers have verified the digest of the footer, so that its content is that of a writer of statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.contract import read_contract
from metastore.errors import DamagedObject

_LIMITS = read_contract("limits")
MAX_FOOTER_BYTES: int = _LIMITS["footer_bytes"]
MAX_ROWS: int = _LIMITS["object_rows"]
MAX_BYTES: int = _LIMITS["decoded_bytes"]
FEW_BYTES: int = _LIMITS["decoded_few"]
MOST_EXPANSION: int = _LIMITS["decoded_expansion"]

_TAIL_BYTES = 8


@dataclass(frozen=True)
class ColumnChunk:
    """A column of a row group.

    Attributes:
        leaf: Ordinal of the column among the leaves of the schema.
        name: Its top-level name.
        start: Where its pages begin.
        length: Their bytes.
        values: Number of values, nulls included.
    """

    leaf: int
    name: str
    start: int
    length: int
    values: int

    @property
    def end(self) -> int:
        """The position behind its pages."""
        return self.start + self.length


@dataclass(frozen=True)
class ParquetFooter:
    """A footer.

    Attributes:
        metadata: As pyarrow has it.
        texts: Key-values.
    """

    metadata: pq.FileMetaData
    texts: dict[str, str]

    @property
    def rows(self) -> int:
        """Rows of all row groups."""
        return int(self.metadata.num_rows)

    def chunks(self, group: int) -> list[ColumnChunk]:
        """List the chunks of a row group, in the order of the leaves."""
        row_group = self.metadata.row_group(group)
        chunks = []
        for leaf, name in enumerate(self._names):
            column = row_group.column(leaf)
            chunk = ColumnChunk(leaf, name, column.data_page_offset, column.total_compressed_size, column.num_values)
            chunks.append(chunk)
        return chunks

    @cached_property
    def _names(self) -> list[str]:
        schema = self.metadata.schema
        return [schema.column(leaf).path.partition(".")[0] for leaf in range(len(schema))]


def decoded_limit(length: int) -> int:
    """Return the most bytes that a decoded object of this length may have."""
    return min(MAX_BYTES, FEW_BYTES + MOST_EXPANSION * length)


def footer_length(name: str, data: bytes | memoryview) -> int:
    """Return the number of bytes from the start of the footer to the end of the object."""
    length = int.from_bytes(data[-_TAIL_BYTES:-4], "little") + _TAIL_BYTES
    if bytes(data[-4:]) != b"PAR1" or length > len(data) or length > MAX_FOOTER_BYTES:
        raise DamagedObject(name, "it does not end as a Parquet file does")
    return length


def read_footer(name: str, data: bytes | memoryview, length: int | None = None) -> ParquetFooter:
    """Read the footer from data with at least the end of an object; `length` is the object's, None means the data's."""
    try:
        metadata = pq.read_metadata(pa.BufferReader(pa.py_buffer(data)))
        texts = {key.decode(): text.decode() for key, text in (metadata.metadata or {}).items()}
    except (pa.ArrowException, OSError, ValueError) as e:
        raise DamagedObject(name, f"its footer cannot be read ({e})") from e
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    if length is None:
        length = len(data)
    if size > decoded_limit(length):
        raise DamagedObject(name, f"{size} bytes when decoded")
    return ParquetFooter(metadata, texts)
