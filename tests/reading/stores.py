"""Statistics made by hand, written through the store that ANALYZE writes through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from metastore.format.manifest import Block, Snapshot, SummaryRef
from metastore.format.object_schemas import FILES, SUMMARY, TABLE_FILES, TABLE_SUMMARY
from metastore.format.table_column import Column

if TYPE_CHECKING:
    from pathlib import Path

UUID = "7d2a3a3e-0000-4000-8000-000000000001"
ID, NAME = (
    Column(key="1", path=("id",), type="int", encoding="long"),
    Column(key="2", path=("who", "na.me"), type="string", encoding="binary"),
)
WIDE, TAGS = (
    Column(key="1", path=("id",), type="bigint", encoding="long"),
    Column(key="3", path=("tags",), type="array<string>", encoding=None),
)


def rows_of(schema, *rows):
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema)


def block(store, number, files, statistics, columns=(ID, NAME), computed="full"):
    file_rows = [
        {"file": i, "path": path, "size": 100 + i, "rows": rows, "partition": [("day", f"d{i}")]}
        for i, (path, rows) in enumerate(files)
    ]
    listed = store.put("files", rows_of(FILES, *file_rows), [len(files)])
    refs = ()
    if statistics:
        summary_ref = store.put("summary", rows_of(SUMMARY, *statistics), [len(statistics)])
        refs = (SummaryRef(summary_ref, tuple(sorted({row["column"] for row in statistics}))),)
    return Block(
        id=f"00000000-0000-4000-8000-{number:012d}",
        computed=computed,
        columns=tuple(columns),
        files=listed,
        summary=refs,
    )


def ids(file, lo, hi, rows=10, **more):
    return {"column": 0, "file": file, "rows": rows, "nulls": 0, "nans": 0, "lo_long": lo, "hi_long": hi,
            "lo_exact": True, "hi_exact": True, "distinct": rows, **more}  # fmt: skip


def names(file, lo, hi, rows=10, **more):
    return {"column": 1, "file": file, "rows": rows, "nulls": 2, "nans": 0, "lo_binary": lo, "hi_binary": hi,
            "lo_exact": True, "hi_exact": True, **more}  # fmt: skip


def snapshot(store, number, paths, columns=(WIDE, NAME, TAGS), summary=(), computed="full", **more):
    listed = [{"path": path, "size": size, "rows": rows, **extra} for path, size, rows, extra in paths]
    rows = sum(row for _, _, row, _ in paths)
    facts = {
        "exact": True, "files": len(paths), "files_total": len(paths), "rows": rows, "physical_rows": rows,
        "size_bytes": 1000, "live_size_bytes": 1000, **more,
    }  # fmt: skip
    return Snapshot(
        id=str(number),
        analyzed_at=f"2026-01-{number:02d}T12:00:00.000000Z",
        computed=computed,
        columns=tuple(columns),
        table_files=store.put("table-files", rows_of(TABLE_FILES, *listed), [len(paths)]),
        summary=store.put("table-summary", rows_of(TABLE_SUMMARY, *summary), [len(summary)]) if summary else None,
        **facts,
    )


def metadata(location: Path, version: int, current: int | None, parents: dict[int, int | None], uuid: str = UUID):
    folder = location / "metadata"
    folder.mkdir(parents=True, exist_ok=True)
    snapshots = [
        {"snapshot-id": snapshot_id, **({"parent-snapshot-id": parent} if parent else {})}
        for snapshot_id, parent in parents.items()
    ]
    log = [
        {"timestamp-ms": 1_767_225_600_000 + snapshot_id * 86_400_000, "snapshot-id": snapshot_id}
        for snapshot_id in parents
    ]
    body = {"table-uuid": uuid, "current-snapshot-id": current or -1, "snapshots": snapshots, "snapshot-log": log}
    (folder / f"v{version}.metadata.json").write_text(json.dumps(body))
    (folder / "version-hint.text").write_text(str(version))
