"""The alternative to our index: one table of all columns' statistics, as Hudi's RFC-27 keeps them.

One row per data file and column: names of both, typed bounds, counts; written by pyarrow with its defaults, ordered by
column, so that row groups can be skipped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

COPIED = ["rows", "nulls", "nans", "lo_long", "hi_long", "lo_double", "hi_double", "lo_binary", "hi_binary"]
SCHEMA = pa.schema(
    [
        pa.field("file_name", pa.string()),
        pa.field("column_name", pa.string()),
        *(pa.field(name, pa.int64()) for name in COPIED[:5]),
        *(pa.field(name, pa.float64()) for name in COPIED[5:7]),
        *(pa.field(name, pa.string()) for name in COPIED[7:]),
    ]
)


def write(path: Path, files: pa.Array, columns: Iterable[tuple[str, pa.Table]]) -> None:
    """Writes the table.

    Args:
        path: The Parquet file.
        files: Paths of the data files.
        columns: Name of each column and its rows of the `summary` schema, one a file.
    """
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for name, rows in columns:
            arrays = [files, pa.array([name] * len(files)), *(rows[c] for c in COPIED)]
            writer.write_table(pa.table([a.cast(t) for a, t in zip(arrays, SCHEMA.types, strict=True)], schema=SCHEMA))


def kept_by_pyarrow(path: Path, wanted_bounds: dict[str, tuple[str, object]], files: pa.Array) -> int:
    """How many files `lo <= value <= hi` keeps for all columns.

    Args:
        path: The Parquet file.
        wanted_bounds: For each column the encoding of its bounds, and the value.
        files: Paths of the scan's files.
    """
    names = list(wanted_bounds)
    bounds = sorted({f"{side}_{encoding}" for encoding, _ in wanted_bounds.values() for side in ("lo", "hi")})
    rows = ds.dataset(path).to_table(["file_name", "column_name", *bounds], filter=pc.field("column_name").isin(names))
    kept_files: set[str] = set(files.to_pylist())
    for name, (encoding, value) in wanted_bounds.items():
        column_rows = rows.filter(pc.equal(rows["column_name"], name))
        text = value.decode() if isinstance(value, bytes) else value
        matching = pc.and_(
            pc.less_equal(column_rows[f"lo_{encoding}"], text), pc.greater_equal(column_rows[f"hi_{encoding}"], text)
        )
        kept_files &= set(column_rows.filter(matching)["file_name"].to_pylist())
    return len(kept_files)


def kept_by_spark(spark: SparkSession, path: Path, bounds: dict[str, tuple[str, object]]) -> int:
    """The same by a Spark job, as Hudi does it where the index is large."""
    conditions = [
        f"column_name = '{name}' AND lo_{encoding} <= {_literal(value)} AND hi_{encoding} >= {_literal(value)}"
        for name, (encoding, value) in bounds.items()
    ]
    rows = spark.read.schema(_spark_schema()).parquet(str(path)).where(" OR ".join(f"({c})" for c in conditions))
    return len(rows.groupBy("file_name").count().where(f"count = {len(bounds)}").collect())


def _literal(value: object) -> str:
    if isinstance(value, bytes):
        return f"'{value.decode()}'"
    return f"{float(value)!r}D" if isinstance(value, float) else f"{value}L"


def _spark_schema() -> str:
    names = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double"}
    return ", ".join(f"{field.name} {names[field.type]}" for field in SCHEMA)
