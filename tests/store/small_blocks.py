"""Small blocks and snapshots for tests of the store."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.format import object_layout
from metastore.format.manifest import Block, Manifest, Snapshot, SummaryRef, TableIdentity, describe_block
from metastore.format.object_layout import lay_out_histograms, lay_out_sketches, lay_out_value_lists
from metastore.format.object_schemas import DETAILS, FILES, SCHEMAS, SUMMARY, TABLE_FILES
from metastore.format.objects import BLOCK_KEY, decode_detail
from metastore.format.table_column import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from metastore.store import Store

TABLE = TableIdentity("iceberg", "0d61fbb2-3f3c-4b2a-9c0e-6b8f0c7b0a11", "file:/w/t", "cat.db.t")


def columns(count: int) -> tuple[Column, ...]:
    return tuple(Column(key=str(i), path=(f"c{i}",), type="bigint", encoding="long") for i in range(count))


def block(
    store: Store,
    paths: Sequence[str],
    value: int = 0,
    leaves: Sequence[Column] = columns(2),
    *,
    computed: str = "full",
    ordinals: Sequence[int] | None = None,
    table: TableIdentity = TABLE,
    sketches: str | None = None,
    detailed: bool = False,
) -> Block:
    """A block of data files whose lower bounds are all `value`, with details that say it if they are wanted."""
    stored_ordinals = range(len(leaves)) if ordinals is None else ordinals
    rows = [{"column": c, "file": f, "rows": 1, "lo_long": value} for c in stored_ordinals for f in range(len(paths))]
    summary = []
    if rows:
        statistics = pa.Table.from_pylist(rows, SUMMARY)
        ref = store.put("summary", statistics, object_layout.size_row_groups(statistics["column"], 16))
        summary.append(SummaryRef(ref, tuple(stored_ordinals)))
    name, detail = str(uuid.uuid4()), {"sketches_name": sketches, "sketches_file": 0} if sketches else {}
    details = _details(store, range(len(paths)), value, stored_ordinals) if detailed else [detail] * len(paths)
    listed = zip(paths, details, strict=True)
    files = pa.Table.from_pylist(
        [{"file": i, "path": p, "size": 1, **more} for i, (p, more) in enumerate(listed)], FILES
    )
    footer = describe_block(
        name, computed=computed, columns=tuple(leaves), objects=tuple(summary), table=table, settings={}
    )
    ref = store.put("files", files, [len(paths)], {BLOCK_KEY: footer})
    return Block(id=name, computed=computed, columns=tuple(leaves), files=ref, summary=tuple(summary))


def _details(store: Store, files: Sequence[int], value: int, ordinals: Sequence[int]) -> list[dict[str, Any]]:
    """The fields of data files that name their details: twelve values, a sketch and a histogram of each column."""
    pairs = [{"column": c, "file": f} for c in ordinals for f in files]
    values = [{**pair, "value_long": value + i, "frequency": 100 - i} for pair in pairs for i in range(12)]
    histograms = [{**pair, "kind": "equi_height", "edges_long": [value, value], "counts": [1]} for pair in pairs]
    details: list[dict[str, Any]] = [{} for _ in files]
    for kind, rows, layout_of in (
        ("sketches", [{**pair, "theta": b"%d" % value} for pair in pairs], lay_out_sketches),
        ("frequencies", values, lay_out_value_lists),
        ("histograms", histograms, lay_out_histograms),
    ):
        ref = store.put(kind, *layout_of(pa.Table.from_pylist(rows, SCHEMAS[kind])))
        facts = (ref.name, ref.length, ref.sha256, ref.footer_length, ref.footer_sha256)
        names = (f"{kind}_{fact}" for fact in ("name", "length", "sha256", "footer_length", "footer_sha256"))
        shared = dict(zip(names, facts, strict=True))
        details = [{**file_details, **shared, f"{kind}_file": file} for file, file_details in enumerate(details)]
    return details


def details_of(store: Store, manifest: Manifest) -> dict[tuple[str, str, str], Any]:
    """Read the detail objects by kind, path and column key: the value, and for lists all of them in their order."""
    values: dict[tuple[str, str, str], Any] = {}
    for each in manifest.blocks:
        for file in store.get(each.files).to_pylist():
            for kind in DETAILS:
                name = file[f"{kind}_name"]
                rows = decode_detail(name, file[f"{kind}_sha256"], store.read_bytes(name)).to_pylist() if name else []
                for row in (row for row in rows if row["file"] == file[f"{kind}_file"]):
                    key = kind, file["path"], each.columns[row["column"]].key
                    if kind == "frequencies":
                        values.setdefault(key, []).append(row["value_long"])
                    else:
                        assert key not in values
                        values[key] = int(row["theta"]) if kind == "sketches" else row["edges_long"][0]
    return values


def snapshot(store: Store, name: str, leaves: Sequence[Column] = columns(2), *, exact: bool = True) -> Snapshot:
    listed = pa.Table.from_pylist([{"path": name, "size": 1}], TABLE_FILES)
    ref = store.put("table-files", listed, [1])
    return Snapshot(
        id=name,
        analyzed_at="2026-01-31T12:00:00Z",
        computed="full",
        exact=exact,
        columns=tuple(leaves),
        files=1,
        files_total=1,
        rows=1,
        physical_rows=1,
        size_bytes=1,
        live_size_bytes=1,
        table_files=ref,
    )


def adding(*blocks: Block, snapshots: Sequence[Snapshot] = ()) -> Callable[[Manifest | None], Manifest]:
    """A change that adds blocks and snapshots to whatever is there."""

    def change(old: Manifest | None) -> Manifest:
        base = old or Manifest(table=TABLE)
        return replace(base, blocks=base.blocks + blocks, snapshots=base.snapshots + tuple(snapshots))

    return change


def bounds(store: Store, manifest: Manifest) -> dict[tuple[str, str], list[int]]:
    """All lower bounds that readers find, by path and column key."""
    lower_bounds: dict[tuple[str, str], list[int]] = {}
    for each in manifest.blocks:
        paths: dict[int, Any] = dict(
            zip(*(store.get(each.files)[n].to_pylist() for n in ("file", "path")), strict=True)
        )
        for ref in each.summary:
            rows = store.get(ref.object, ["column", "file", "lo_long"])
            for row in rows.to_pylist():
                key = (paths[row["file"]], each.columns[row["column"]].key)
                lower_bounds.setdefault(key, []).append(row["lo_long"])
    return lower_bounds


def folder(store: Store) -> Path:
    return Path(store.uri)


def listed(store: Store, *paths: str) -> Snapshot:
    """A snapshot whose live data files are these."""
    rows = pa.Table.from_pylist([{"path": path, "size": 1, "rows": 1} for path in paths], TABLE_FILES)
    ref = store.put("table-files", rows, [len(paths)])
    count = len(paths)
    facts = dict.fromkeys(("files", "files_total", "rows", "physical_rows", "size_bytes", "live_size_bytes"), count)
    when = "2026-01-31T12:00:00Z"
    return Snapshot(
        id="s" + "".join(paths),
        analyzed_at=when,
        computed="full",
        exact=True,
        columns=columns(2),
        table_files=ref,
        **facts,
    )
