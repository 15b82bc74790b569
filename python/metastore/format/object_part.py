"""Parts of objects: some columns of some row groups, by two requests, verified as the whole is."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING

import numpy as np

from metastore.errors import DamagedObject
from metastore.format.objects import DIGESTS_KEY, read_rows
from metastore.format.parquet_footer import read_footer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from metastore.format.objects import ObjectRef

    Fetch = Callable[[int, int], bytes]


_DIGEST_BYTES = 16
ANY_ROWS = -1
"""In the reference to an object of which nobody says how many rows it has."""


class ObjectPart:
    """An object of which only what is asked for is read."""

    def __init__(self, ref: ObjectRef, fetch: Fetch) -> None:
        """Read the footer."""
        footer = fetch(ref.length - ref.footer_length, ref.footer_length)
        if hashlib.sha256(footer).hexdigest() != ref.footer_sha256:
            raise DamagedObject(ref.name, "its footer has another digest than was named")
        self._footer = read_footer(ref.name, footer, ref.length)
        if ref.rows not in (ANY_ROWS, self._footer.rows):
            raise DamagedObject(ref.name, f"{self._footer.rows} rows where {ref.rows} were named")
        self._ref, self._fetch = ref, fetch
        try:
            self._digests = base64.b64decode(self._footer.texts[DIGESTS_KEY], validate=True)
        except (KeyError, binascii.Error) as e:
            raise DamagedObject(ref.name, f"its footer cannot be read ({e})") from e

    @property
    def groups(self) -> int:
        """How many row groups there are."""
        return int(self._footer.metadata.num_row_groups)

    @property
    def num_rows(self) -> int:
        """How many rows the object has."""
        return self._footer.rows

    def footer_text(self, key: str) -> str | None:
        """A key-value of the footer."""
        return self._footer.texts.get(key)

    def groups_of_column(self, column: int) -> list[int]:
        """The row groups that may have rows of a column."""
        return [group for group in range(self.groups) if self._may_hold(group, column)]

    def read_rows(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        """Some columns of some row groups."""
        data = np.zeros(self._ref.length, np.uint8)
        for group in groups:
            self._load(data, group, columns)
        return read_rows(self._ref.name, self._footer, data.data, columns, groups)

    def _may_hold(self, group: int, column: int) -> bool:
        row_group = self._footer.metadata.row_group(group)
        for place in range(row_group.num_columns):
            chunk = row_group.column(place)
            if chunk.path_in_schema == "column":
                known = chunk.statistics
                return known is None or not known.has_min_max or known.min <= column <= known.max
        return True

    def _load(self, data: np.ndarray, group: int, columns: Sequence[str]) -> None:
        chunks = self._footer.chunks(group)
        wanted = [chunk for chunk in chunks if chunk.name in columns]
        if not wanted:
            return
        start, end = min(one.start for one in wanted), max(one.start + one.length for one in wanted)
        read = self._fetch(start, end - start)
        for one in wanted:
            chunk = read[one.start - start : one.start - start + one.length]
            digest = _DIGEST_BYTES * (group * len(chunks) + one.leaf)
            if hashlib.sha256(chunk).digest()[:_DIGEST_BYTES] != self._digests[digest : digest + _DIGEST_BYTES]:
                raise DamagedObject(self._ref.name, "a column has another digest than its footer names")
            data[one.start : one.start + one.length] = np.frombuffer(chunk, np.uint8)
