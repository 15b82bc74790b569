"""A store with every type and every extreme value, the same bytes at every run: what both readers have to agree on.

`write(folder)` writes it below a folder, `expected()` says what its block's summaries hold, as JSON can say it.
"""

from __future__ import annotations

import json
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.format import object_layout
from metastore.format.documents import to_document
from metastore.format.manifest import Block, Manifest, Snapshot, SummaryRef, TableIdentity, describe_block
from metastore.format.object_schemas import FILES, SCHEMAS, SUMMARY, TABLE_SUMMARY
from metastore.format.objects import BLOCK_KEY, ObjectRef, content_name, encode_object, make_reference
from metastore.format.table_column import Column, encoding_of
from metastore.format.value_rendering import cut_lower, cut_upper, decimal_to_bytes

if TYPE_CHECKING:
    from pathlib import Path

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
INT_MIN, INT_MAX = -(2**31), 2**31 - 1
DOUBLE_MAX, DOUBLE_TINY = 1.7976931348623157e308, 5e-324
TABLE = TableIdentity("iceberg", "6f6c6465-6e00-4000-8000-000000000001", "file:/golden", "cat.db.golden")
SETTINGS = {"theta_lgk": 12, "theta_hash": "iceberg"}
PATHS = [
    "file:/golden/data/p=a b/00000-%20-é.parquet",
    "file:/golden/data/plain.parquet",
    "file:/golden/data/all-null.parquet",
    "file:/golden/data/unknown.parquet",
]
EXTREMES: dict[str, tuple[Any, Any]] = {
    "boolean": (0, 1),
    "tinyint": (-128, 127),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (INT_MIN, INT_MAX),
    "bigint": (LONG_MIN, LONG_MAX),
    "float": (-3.4028234663852886e38, 1.401298464324817e-45),
    "double": (float("-inf"), float("inf")),
    "date": (INT_MIN, INT_MAX),
    "timestamp": (LONG_MIN, LONG_MAX),
    "timestamp_ntz": (LONG_MIN, LONG_MAX),
    "interval year to month": (INT_MIN, INT_MAX),
    "interval day to second": (LONG_MIN, LONG_MAX),
    "decimal(18,2)": (-(10**18) + 1, 10**18 - 1),
    "decimal(38,10)": (decimal_to_bytes(-(10**38) + 1), decimal_to_bytes(10**38 - 1)),
    "string": (b"", "\U0010ffff".encode() * 16),
    "varchar(10)": (b"\x00", "ä€😀".encode()),
    "string collate UTF8_LCASE": (b"A", b"a"),
    "binary": (b"", b"\xff" * 64),
    "array<int>": (None, None),
}
ORDINARY: dict[str, tuple[Any, Any]] = {
    **{kind: (0, 1) for kind in EXTREMES if encoding_of(kind) == "long"},
    "float": (0.0, 0.10000000149011612),
    "double": (-DOUBLE_TINY, DOUBLE_MAX),
    "decimal(38,10)": (decimal_to_bytes(-1), decimal_to_bytes(0)),
    "string": (b"x" * 70, b"x" * 10 + b"\xff" * 60),
    "varchar(10)": (b"a", b"b"),
    "string collate UTF8_LCASE": (b"a", b"B"),
    "binary": (b"\xff" * 65, b"\xff" * 65),
    "array<int>": (None, None),
}


def columns() -> tuple[Column, ...]:
    """One column of every type, and names that need care."""
    flat = [
        Column(
            key=str(i + 1),
            path=(f"c_{i}",),
            type=kind,
            encoding=encoding_of(kind),
            collation="UTF8_LCASE" if "collate" in kind else None,
        )
        for i, kind in enumerate(EXTREMES)
    ]
    names = [("a", "b"), ("we.ird", "back`quote"), ("naïve ünïcode 😀",), ("",)]
    return (
        *flat,
        *(Column(key=str(100 + i), path=name, type="bigint", encoding="long") for i, name in enumerate(names)),
    )


def write(folder: Path) -> Manifest:
    """Writes the store into a folder and returns its manifest."""
    (folder / "objects").mkdir(parents=True)
    (folder / "log").mkdir()
    block = _block(folder)
    snapshot = _snapshot(folder, block)
    manifest = Manifest(
        table=TABLE,
        blocks=(block,),
        snapshots=(snapshot,),
        settings=SETTINGS,
        sequence=1,
        commit=_uuid("commit"),
        previous=None,
        written_at="2026-01-31T12:00:00.000001Z",
        writer="golden",
    )
    (folder / "log" / f"{1:020}.json").write_bytes(manifest.to_bytes())
    (folder / "expected.json").write_text(json.dumps(expected(), ensure_ascii=False, indent=0))
    return manifest


def expected() -> list[dict[str, Any]]:
    """The rows of the block's summaries: integers and decimals as text, doubles as Python writes them, bytes in hex."""
    return [{name: _plain(value) for name, value in row.items()} for row in _summary_rows()]


def _summary_rows() -> list[dict[str, Any]]:
    makers = (_extreme, _ordinary, _all_null, _unknown)
    return [
        {"column": i, "file": file, **make(column)}
        for i, column in enumerate(columns())
        for file, make in enumerate(makers)
    ]


def _extreme(column: Column) -> dict[str, Any]:
    lo, hi = EXTREMES.get(column.type, (None, None))
    row = _bounds(column, lo, hi)
    return {
        **row,
        "rows": LONG_MAX,
        "nulls": 0,
        "nans": LONG_MAX if column.encoding == "double" else 0,
        "distinct": LONG_MAX,
        "distinct_error": 0.0,
        "sum_exact": 10**38 - 1,
        "sum": DOUBLE_MAX,
        "mean": -DOUBLE_MAX,
        "m2": DOUBLE_TINY,
        "avg_len": 0.5,
        "max_len": LONG_MAX,
        "trues": LONG_MAX,
        "compressed_bytes": LONG_MAX,
        "uncompressed_bytes": 0,
        "frequencies": "complete",
        "frequencies_floor": LONG_MAX,
        "extra": {"entropy": b"\x00\xff", "": b""},
    }


def _ordinary(column: Column) -> dict[str, Any]:
    lo, hi = ORDINARY[column.type]
    row = _bounds(column, lo, hi)
    return {**row, "rows": 1000, "nulls": 1, "nans": 0, "distinct": 2, "distinct_error": 0.0156, "sum_exact": -1}


def _all_null(_: Column) -> dict[str, Any]:
    return {"rows": 7, "nulls": 7, "nans": 0, "distinct": 0, "distinct_error": 0.0}


def _unknown(_: Column) -> dict[str, Any]:
    return {"rows": 3}


def _bounds(column: Column, lo: Any, hi: Any) -> dict[str, Any]:
    if lo is None:
        return {}
    exact = True, True
    if column.encoding == "binary" and not column.type.startswith("decimal"):
        lo, exact_lo = cut_lower(lo)
        hi, exact_hi = cut_upper(hi)
        exact = exact_lo, exact_hi
    name = column.encoding
    percentiles = [lo] * 50 + [hi] * 51 if hi is not None else None
    return {
        f"lo_{name}": lo,
        f"hi_{name}": hi,
        "lo_exact": exact[0],
        "hi_exact": exact[1],
        f"percentiles_{name}": percentiles,
    }


def _block(folder: Path) -> Block:
    rows = _summary_rows()
    half = len(columns()) // 2
    refs = []
    for ordinals in (range(half), range(half, len(columns()))):
        table = _table(SUMMARY, [row for row in rows if row["column"] in ordinals])
        ref = _put(folder, "summary", table, object_layout.size_row_groups(table["column"], 4))
        refs.append(SummaryRef(ref, tuple(ordinals)))
    sketches = [{"column": 0, "file": 0, "theta": bytes(range(256))}, {"column": 1, "file": 0, "theta": b""}]
    details = {"sketches": _put(folder, "sketches", _table(SCHEMAS["sketches"], sketches), [2])}
    for kind, rows_of, groups in (("frequencies", frequency_rows(), [4, 2]), ("histograms", histogram_rows(), [3])):
        details[kind] = _put(folder, kind, _table(SCHEMAS[kind], rows_of), groups)
    footer = describe_block(
        _uuid("block"), computed="full", columns=columns(), objects=tuple(refs), table=TABLE, settings=SETTINGS
    )
    files = _put(folder, "files", _table(FILES, _file_rows(details)), [len(PATHS)], {BLOCK_KEY: footer})
    return Block(id=_uuid("block"), computed="full", columns=columns(), files=files, summary=tuple(refs))


def frequency_rows() -> list[dict[str, Any]]:
    """Value lists of every encoding: extremes, NaN, and values of no bytes."""
    return [
        {"column": 4, "file": 0, "value_long": LONG_MIN, "frequency": LONG_MAX},
        {"column": 4, "file": 0, "value_long": LONG_MAX, "frequency": 1},
        {"column": 6, "file": 0, "value_double": float("nan"), "frequency": 2},
        {"column": 14, "file": 0, "value_binary": b"", "frequency": 3},
        {"column": 6, "file": 0, "value_double": float("-inf"), "frequency": 1},
        {"column": 14, "file": 0, "value_binary": b"x" * 1024, "frequency": 1},
    ]


def histogram_rows() -> list[dict[str, Any]]:
    """Histograms of every encoding, with and without counts."""
    counts = {"counts": [LONG_MAX - 1, 1], "distincts": [1, 1]}
    return [
        {"column": 4, "file": 0, "kind": "equi_height", "edges_long": [LONG_MIN, LONG_MIN, LONG_MAX], **counts},
        {"column": 6, "file": 0, "kind": "equi_height", "edges_double": [float("-inf"), DOUBLE_TINY, DOUBLE_MAX]},
        {"column": 14, "file": 0, "kind": "equi_height", "edges_binary": [b"", b"\xff" * 64], "distincts": [7]},
    ]


def _file_rows(details: dict[str, ObjectRef]) -> list[dict[str, Any]]:
    sizes, rows = [LONG_MAX, 0, 1, 2**40], [LONG_MAX, 1000, 7, None]
    files = [{"file": i, "path": p, "size": sizes[i], "rows": rows[i]} for i, p in enumerate(PATHS)]
    named: dict[str, Any] = {}
    for kind, ref in details.items():
        fields = ("name", "length", "sha256", "footer_length", "footer_sha256")
        named |= {f"{kind}_{field}": to_document(ref)[field] for field in fields} | {f"{kind}_file": 0}
    files[0] |= {"modified": LONG_MIN, "partition": {"p": "a b", "": ""}, **named}
    files[1] |= {"modified": 1_700_000_000_123, "partition": {}}
    return files


def _snapshot(folder: Path, block: Block) -> Snapshot:
    files = [{"path": path, "size": 1 + i, "rows": 10} for i, path in enumerate(PATHS)]
    files[0] |= {"block": block.id, "file": 0, "deletes": "d", "deleted_rows": 3, "log_files": 0}
    summary = [
        {k: v for k, v in row.items() if k != "file"} | {"files": 4} for row in _summary_rows() if row["file"] == 0
    ]
    sketches = [{"column": 0, "theta": bytes(range(255, -1, -1))}]
    return Snapshot(
        id="9223372036854775807",
        analyzed_at="2026-01-31T12:00:00.000000Z",
        computed="full",
        exact=False,
        columns=columns(),
        files=3,
        files_total=4,
        rows=37,
        physical_rows=40,
        size_bytes=LONG_MAX,
        live_size_bytes=0,
        table_files=_put(folder, "table-files", _table(SCHEMAS["table-files"], files), [4]),
        summary=_put(folder, "table-summary", _table(TABLE_SUMMARY, summary), [len(summary)]),
        sketches=_put(folder, "table-sketches", _table(SCHEMAS["table-sketches"], sketches), [1]),
    )


def _put(
    folder: Path, kind: str, table: pa.Table, row_groups: list[int], extra: dict[str, str] | None = None
) -> ObjectRef:
    data = encode_object(kind, table, row_groups, extra)
    ref = make_reference(content_name(kind, data), data, table.num_rows)
    (folder / "objects" / ref.name).write_bytes(data)
    return ref


def _table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    def arrow(value: Any) -> Any:
        return list(value.items()) if isinstance(value, dict) else value

    for row in rows:
        if "sum_exact" in row:
            row["sum_exact"] = Decimal(row["sum_exact"])
    return pa.Table.from_pylist([{k: arrow(v) for k, v in row.items()} for row in rows], schema)


def _uuid(*parts: object) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"golden {parts}"))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | str) else repr(value)
