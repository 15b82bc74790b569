"""Blocks of many data files with random statistics, with zones and without: known, unknown, absent, wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from metastore.format.block_writer import BlockWriter
from metastore.format.manifest import Manifest, TableIdentity
from metastore.format.object_layout import ZONE_FILES
from metastore.format.object_schemas import FILES, SUMMARY
from metastore.format.table_column import Column, encoding_of
from metastore.format.value_rendering import cut_lower, cut_upper, decimal_to_bytes
from metastore.store import Store

TABLE = TableIdentity("iceberg", "0f6f7f5e-54f3-4d6e-9b0a-0a6a6a0f9f22", "file:/zoned", "zoned")
NEVER, SMALL = 1 << 30, 1_000
TYPES = (
    "bigint",
    "double",
    "string",
    "decimal(38,2)",
    "date",
    "boolean",
    "float",
    "binary",
    "decimal(9,2)",
    "array<int>",
)
COLUMNS = tuple(
    Column(key=str(i + 1), path=(f"c{i}",), type=kind, encoding=encoding_of(kind)) for i, kind in enumerate(TYPES)
)
DDL = ", ".join(f"c{i} {kind}" for i, kind in enumerate(TYPES))
FEW = 2
"""So many data files of each column are unknown in each way: most zones are known."""


def random_block(seed: int, files: int, few: int = FEW) -> tuple[pa.Table, list[pa.Table]]:
    """The rows of `files`, and those of `summary` by column; `few` files are unknown in each way."""
    numbers = np.random.default_rng(seed)
    counts = numbers.integers(1, 1000, files)
    counts[numbers.integers(0, files, few)] = 0
    paths = [
        f"data/{i:08}{'é😀' if i % 50 == 0 else 'ü' * (i % 3)}.parquet"
        for i in (range(files) if seed % 2 else numbers.permutation(files))
    ]
    rows = [None if unknown else int(count) for count, unknown in zip(counts, _few(numbers, files, few), strict=True)]
    listed = {"file": range(files), "path": paths, "size": numbers.integers(1, 1 << 40, files), "rows": rows}
    table = pa.table([pa.array(listed[f.name], f.type) if f.name in listed else pa.nulls(files, f.type) for f in FILES],
                     schema=FILES)  # fmt: skip
    return table, [_column(column, ordinal, counts, numbers, few) for ordinal, column in enumerate(COLUMNS)]


def write(folder: object, files: pa.Table, summary: list[pa.Table], zoned: int) -> Manifest:
    """A store with one block, with zones if it has more data files than `zoned`."""
    store = Store.open(str(folder), writable=True)
    writer = BlockWriter(store.put, COLUMNS, files, zoned)
    for first in range(0, len(COLUMNS), writer.width):
        ordinals = range(first, min(first + writer.width, len(COLUMNS)))
        writer.add(pa.concat_tables(summary[i] for i in ordinals), ordinals)
    block = writer.finish("full", {}, TABLE, {})
    committed = store.commit(TABLE, lambda _: Manifest(table=TABLE, blocks=(block,)))
    assert committed is not None
    return committed


def _few(numbers: np.random.Generator, files: int, few: int) -> np.ndarray:
    flags = np.zeros(files, np.bool_)
    flags[numbers.integers(0, files, few)] = True
    return flags


def _column(column: Column, ordinal: int, counts: np.ndarray, numbers: np.random.Generator, few: int) -> pa.Table:
    files = len(counts)
    is_null, all_null = numbers.random(files) < 0.3, numbers.random(files) < 0.02
    all_null[2 * ZONE_FILES : 3 * ZONE_FILES] = True
    nulls = np.where(all_null, counts, np.where(is_null, numbers.integers(0, np.maximum(counts, 1)), 0))
    nulls[5 * ZONE_FILES : 7 * ZONE_FILES] = np.where(all_null, counts, 0)[5 * ZONE_FILES : 7 * ZONE_FILES]
    nans = np.zeros(files, np.int64)
    if column.encoding == "double":
        parts = slice(6 * ZONE_FILES, 9 * ZONE_FILES)
        nans[parts] = np.where(numbers.random(files) < 0.2, counts - nulls, 0)[parts]
    values = counts - nulls - nans
    lo, hi = _bounds(column, ordinal, numbers, files)
    has = values > 0
    rows = counts.copy()
    rows[_few(numbers, files, few)] += 1  # the file has other rows
    inverted = _few(numbers, files, few)
    lo, hi = (
        [b if x else a for a, b, x in zip(lo, hi, inverted, strict=True)],
        [a if x else b for a, b, x in zip(lo, hi, inverted, strict=True)],
    )
    unknown = {name: _few(numbers, files, few) for name in ("lo", "hi", "nulls", "nans")}
    absent = _few(numbers, files, few) if ordinal % 3 == 2 else np.zeros(files, np.bool_)
    columns = {
        "column": np.full(files, ordinal, np.int32),
        "file": np.arange(files, dtype=np.int32),
        "rows": rows,
        "nulls": pa.array(nulls, mask=unknown["nulls"]),
        "nans": pa.array(nans, mask=unknown["nans"]),
        "lo_exact": np.ones(files, np.bool_),
        "hi_exact": np.ones(files, np.bool_),
    }
    if column.encoding:
        for side, bounds in (("lo", lo), ("hi", hi)):
            has_bound = has & ~unknown[side]
            columns[f"{side}_{column.encoding}"] = [b if x else None for b, x in zip(bounds, has_bound, strict=True)]
    arrays = [pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(files, f.type) for f in SUMMARY]
    return pa.table(arrays, schema=SUMMARY).filter(pa.array(~absent))


def _bounds(column: Column, ordinal: int, numbers: np.random.Generator, files: int) -> tuple[list, list]:
    """Clustered by file, or not: then many zones hold nearly all."""
    if column.type == "boolean":
        true = np.arange(files) // ZONE_FILES % 3
        return [int(t == 2) for t in true], [int(t > 0) for t in true]
    start = np.arange(files) * 10 if ordinal % 4 != 2 else numbers.integers(0, files * 10, files)
    start = start - files * 5
    end = start + numbers.integers(0, 30, files)
    if column.encoding == "long":
        return start.tolist(), end.tolist()
    if column.encoding == "double":
        return (start / 8).tolist(), (end / 8).tolist()
    if column.type.startswith("decimal"):
        return [decimal_to_bytes(int(v)) for v in start], [decimal_to_bytes(int(v)) for v in end]
    texts = [[b"%012d" % (v + files * 5) + b"\xff" * (60 if v % 7 == 0 else 0) for v in side] for side in (start, end)]
    texts[1] = [b"\xff" * 80 if i % (FEW * 3000) == 5 else text for i, text in enumerate(texts[1])]
    return [cut_lower(text)[0] for text in texts[0]], [cut_upper(text)[0] for text in texts[1]]
