"""Stores of statistics: objects and a log of manifests on a disk or an object store.

Executors import `metastore.store.arrow_blobs`, which needs pyarrow alone: nothing here imports obstore before a `Store`
is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from metastore.store.table_store import Store


__all__ = ["Store"]


def __getattr__(name: str) -> Any:
    if name == "Store":
        from metastore.store.table_store import Store  # noqa: PLC0415 - see above

        return Store
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
