"""Reads parts of objects: some columns of some row groups, in two requests, and verified like a whole object."""

from __future__ import annotations

import base64
import binascii
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from metastore.errors import DamagedObject
from metastore.format.objects import DIGESTS_KEY, read_rows
from metastore.format.parquet_footer import read_footer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from metastore.format.objects import ObjectRef

    Fetch = Callable[[int, int], bytes]
    Decode = Callable[[Hashable, Callable[[], pa.Table]], pa.Table]
    """Decodes rows, or returns those that were decoded for the same key."""
    _Range = tuple[int, int]


_DIGEST_BYTES = 16
ANY_ROWS = -1
"""The number of rows in a reference without one."""


class ObjectPart:
    """An object of which a reader fetches the footer and the columns that it needs."""

    def __init__(self, ref: ObjectRef, fetch: Fetch, decode: Decode | None = None) -> None:
        footer = fetch(ref.length - ref.footer_length, ref.footer_length)
        if hashlib.sha256(footer).hexdigest() != ref.footer_sha256:
            raise DamagedObject(ref.name, "its footer has another digest than was named")
        self._footer = read_footer(ref.name, footer, ref.length)
        if ref.rows not in (ANY_ROWS, self._footer.rows):
            raise DamagedObject(ref.name, f"{self._footer.rows} rows where {ref.rows} were named")
        self._ref = ref
        self._fetch = fetch
        self._decode = decode
        try:
            self._digests = base64.b64decode(self._footer.texts[DIGESTS_KEY], validate=True)
        except (KeyError, binascii.Error) as e:
            raise DamagedObject(ref.name, f"its footer cannot be read ({e})") from e

    @property
    def groups(self) -> int:
        """Number of row groups."""
        return int(self._footer.metadata.num_row_groups)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._footer.rows

    def footer_text(self, key: str) -> str | None:
        """Return a value of the footer by its key."""
        return self._footer.texts.get(key)

    def groups_of_column(self, column: int) -> list[int]:
        """List the row groups that may have rows of a column."""
        groups = []
        for group, ordinals in enumerate(self._column_ranges):
            if ordinals is None or ordinals[0] <= column <= ordinals[1]:
                groups.append(group)
        return groups

    def read_rows(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Read some columns of some row groups."""
        if self._decode is None:
            return self._read_rows(groups, columns)
        key = (self._ref, tuple(groups), tuple(columns))
        return self._decode(key, lambda: self._read_rows(groups, columns))

    def _read_rows(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        data = np.zeros(self._ref.length, np.uint8)
        for group in groups:
            self._load(data, group, columns)
        return read_rows(self._ref.name, self._footer, data.data, columns, groups)

    @cached_property
    def _column_ranges(self) -> list[_Range | None]:
        """The least and greatest ordinal of a column in each row group; None if unknown."""
        metadata = self._footer.metadata
        return [_read_column_range(metadata.row_group(group)) for group in range(self.groups)]

    def _load(self, data: np.ndarray, group: int, columns: Sequence[str]) -> None:
        """Fetch columns of a row group into the bytes of the object."""
        all_chunks = self._footer.chunks(group)
        chunks = [chunk for chunk in all_chunks if chunk.name in columns]
        if not chunks:
            return
        start = min(chunk.start for chunk in chunks)
        end = max(chunk.end for chunk in chunks)
        fetched = self._fetch(start, end - start)
        for chunk in chunks:
            chunk_bytes = fetched[chunk.start - start : chunk.end - start]
            self._verify(chunk_bytes, group * len(all_chunks) + chunk.leaf)
            data[chunk.start : chunk.end] = np.frombuffer(chunk_bytes, np.uint8)

    def _verify(self, chunk: bytes, number: int) -> None:
        """Compare a column chunk with the digest of its number in the footer."""
        start = number * _DIGEST_BYTES
        digest = hashlib.sha256(chunk).digest()[:_DIGEST_BYTES]
        if digest != self._digests[start : start + _DIGEST_BYTES]:
            raise DamagedObject(self._ref.name, "a column has another digest than its footer names")


def _read_column_range(group: pq.RowGroupMetaData) -> _Range | None:
    for chunk in map(group.column, range(group.num_columns)):
        if chunk.path_in_schema == "column" and chunk.statistics is not None and chunk.statistics.has_min_max:
            return chunk.statistics.min, chunk.statistics.max
    return None
