"""The rows of a store that were decoded last."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import pyarrow as pa

_MOST_BYTES = 64 << 20


class DecodedRows:
    """Rows of objects, which never change: those that were used last are kept decoded."""

    def __init__(self) -> None:
        self._rows: OrderedDict[Hashable, pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable, decode: Callable[[], pa.Table]) -> pa.Table:
        """Return the rows that were decoded for this key before, or decode and keep them."""
        with self._lock:
            rows = self._rows.get(key)
            if rows is not None:
                self._rows.move_to_end(key)
                return rows
        rows = decode()
        with self._lock:
            self._keep(key, rows)
        return rows

    def _keep(self, key: Hashable, rows: pa.Table) -> None:
        """Keep rows, and drop those that were not used for the longest time."""
        if key in self._rows:
            return
        self._rows[key] = rows
        self._bytes += rows.nbytes
        while self._bytes > _MOST_BYTES:
            _, dropped = self._rows.popitem(last=False)
            self._bytes -= dropped.nbytes
