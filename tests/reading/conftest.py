from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from metastore.format.manifest import Manifest, TableIdentity
from metastore.store import Store
from reading.stores import UUID, block, ids, metadata, names, snapshot

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def location(tmp_path: Path) -> Path:
    """Snapshots 1 (file a) and 2 (files a, b; b by footer only, then in full); the table is at 2."""
    table = tmp_path / "warehouse" / "t"
    store = Store.open(f"{table}/_metastore", writable=True)
    cut = b"z" * 64
    blocks = (
        block(store, 1, [("t/a.parquet", 10), ("t/gone.parquet", 5)],
              [ids(0, 1, 10), ids(1, 99, 99, 5), names(0, b"ann", cut, hi_exact=False)]),
        block(store, 2, [("t/b.parquet", 10)], [ids(0, -7, 7)], computed="footer"),
        block(store, 3, [("t/b.parquet", 10)], [ids(0, -5, 5), names(0, b"bob", b"eve")]),
    )  # fmt: skip
    percentiles = {"percentiles_long": list(range(-5, 96)), "mean": 2.5, "m2": 76.0}
    all_tables = (
        {**ids(0, -5, 10, 20), "distinct_error": 0.0, "files": 2, "compressed_bytes": 88, **percentiles},
        {**names(0, b"ann", cut, 20, hi_exact=False, nulls=4), "files": 2},
        {"column": 2, "rows": 20, "nulls": 0, "files": 2},
    )
    a, b = ("t/a.parquet", 100, 10, {}), ("t/b.parquet", 100, 10, {})
    snapshots = (snapshot(store, 1, [a], summary=all_tables[:1]), snapshot(store, 2, [a, b], summary=all_tables))
    identity = TableIdentity("iceberg", UUID, f"file:{table}", "cat.db.t")
    store.commit(identity, lambda _: Manifest(table=identity, blocks=blocks, snapshots=snapshots))
    metadata(table, 3, 2, {1: None, 2: 1})
    return table
