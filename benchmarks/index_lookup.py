"""Size of the index of many data files, and the time to find a query's files by ten of its columns.

    python benchmarks/index_lookup.py [--store A] [--store B] [--store C] [--share 1] [--work FOLDER]

Store A is 1,288 data files of 2,078 columns, store B is 65,536 of 100, store C is 1,000,000 of 10. Their summaries
hold what the planner reads (row, null, NaN and distinct counts, bounds, lengths); all is written by the writer that
ANALYZE uses. The driver's planner is asked for `WHERE c1 = v1 AND ... c10 = v10`, timed inside its JVM. "Cold": the
JVM is warm, nothing of ours is cached: manifest and list of data files are read, joined with the scan's files, and
ten columns are read; every byte is verified. Paths are new to the JVM: to hash a million of them counts. "Any order":
the scan lists its files otherwise than the index does. "Cached": a second query, with the same list of files as the
first or with a new one. "Estimates": all of that and what the optimizer is told, the rows and ten columns' counts and
bounds, of a filter that leaves one file and of one that leaves all; there is no table level to tell the shares.
"limit", "top", "join", "aggregate": the same decision for ten rows, for the last ten by a column, for those with one
of 10,000 keys, and for counts and bounds of all rows. A session gives up after 2,000 ms
(`spark.metastore.planning.timeout`), the benchmark does not.
Alternatives: the same index read by pyarrow, and one table of everything as in Hudi's RFC-27, read by pyarrow and by
a Spark job.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import one_table
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from common import median, report, seconds, spark_session, work_folder

from metastore.format import object_layout
from metastore.format.block_writer import BlockWriter
from metastore.format.manifest import Manifest, TableIdentity
from metastore.format.object_schemas import FILES, SUMMARY
from metastore.format.table_column import Column, encoding_of
from metastore.jvm_session import find_shim_package
from metastore.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from metastore.format.manifest import SummaryRef
    from metastore.format.objects import ObjectRef

    LookedUpColumns = dict[int, tuple[Column, object]]

TYPES = ("bigint", "int", "double", "string", "date", "timestamp", "decimal(10,2)", "boolean", "float", "string")
PLANNER = ["column", "file", "rows", "nulls", "nans", "lo_long", "hi_long", "lo_double", "hi_double", "lo_binary",
           "hi_binary", "lo_exact", "hi_exact"]  # fmt: skip
TABLE = TableIdentity("iceberg", "5b0e7c8a-3c1f-4f5e-8d7a-2b9c6e4f1a00", "file:/benchmark", "ice.db.benchmark")
LOOKED_UP = 10
WARM_UP, RUNS = 200, 25
BATCH, LONGEST = 5, 10  # runs at a time, seconds of them
COLD, RELISTED, CACHED = (True, True), (False, True), (False, False)  # nothing is cached, the scan lists its files anew


@dataclass(frozen=True)
class Size:
    """A store to build, with its targets."""

    files: int
    columns: int
    megabytes: float
    milliseconds: float
    cached: float

    def of(self, share: float) -> Size:
        """The same with a share of its files."""
        return replace(self, files=int(self.files * share))


STORES = {
    "A": Size(1_288, 2_078, 40, 30, 1),
    "B": Size(65_536, 100, 85, 60, 1),
    "C": Size(1_000_000, 10, 130, 80, 6),
}


def build_store(path: str | Path, files: int, columns: int) -> Manifest:
    """Writes a store of so many data files and columns, with one block, and commits it.

    The types go round (`TYPES`); of each type some columns are clustered (bounds of neighbouring files adjoin), some
    are spread (every file holds nearly the whole range), some have few values, some have nulls. The same numbers
    always give the same store.

    Args:
        path: The folder of the store.
        files: Data files in the block.
        columns: Columns of the table.

    Returns:
        The committed manifest.
    """
    store = Store.open(str(path), writable=True)
    schema = tuple(_schema_column(i) for i in range(columns))
    listed = _files(files)
    writer = BlockWriter(store.put, schema, listed)
    for first in range(0, columns, writer.width):
        ordinals = range(first, min(first + writer.width, columns))
        writer.add(pa.concat_tables(_column(schema[i], i, files) for i in ordinals), ordinals)
    block = writer.finish("full", {}, TABLE, {})
    committed = store.commit(TABLE, lambda _: Manifest(table=TABLE, blocks=(block,)))
    assert committed is not None
    return committed


def _schema_column(ordinal: int) -> Column:
    kind = TYPES[ordinal % len(TYPES)]
    return Column(key=str(ordinal + 1), path=(f"column_{ordinal:04}",), type=kind, encoding=encoding_of(kind))


def _files(files: int) -> pa.Table:
    """The rows of `files`."""
    numbers = np.random.default_rng(1)
    listed = pa.table(
        {
            "file": pa.array(np.arange(files, dtype=np.int32)),
            "path": _paths(files),
            "size": numbers.integers(1 << 20, 1 << 27, files),
            "rows": _rows(files),
        }
    )
    missing = [field for field in FILES if field.name not in listed.column_names]
    for field in missing:
        listed = listed.append_column(field, pa.nulls(files, field.type))
    return listed.select(FILES.names)


def _paths(files: int) -> pa.Array:
    return pa.array(
        [f"file:/benchmark/data/{i // 64:05}-{i % 64}-{i * 2654435761 % 2**32:08x}.parquet" for i in range(files)]
    )


def _rows(files: int) -> np.ndarray:
    return np.random.default_rng(0).integers(10_000, 1_000_000, files)


def _column(column: Column, ordinal: int, files: int) -> pa.Table:
    """The summary rows of one column."""
    numbers = np.random.default_rng(ordinal)
    rows = _rows(files)
    lo, hi = _bounds(column, ordinal % 4, numbers, files)
    some_nulls = ordinal % 3 == 0
    values = {
        "column": np.full(files, ordinal, np.int32),
        "file": np.arange(files, dtype=np.int32),
        "rows": rows,
        "nulls": numbers.binomial(rows, 0.05) if some_nulls else np.zeros(files, np.int64),
        "nans": np.zeros(files, np.int64),
        "distinct": np.maximum(1, (rows * numbers.uniform(0.1, 0.9, files)).astype(np.int64)),
        f"lo_{column.encoding}": lo,
        f"hi_{column.encoding}": hi,
        "lo_exact": np.ones(files, np.bool_),
        "hi_exact": np.ones(files, np.bool_),
    }
    if column.encoding == "binary":
        values |= {"avg_len": np.full(files, 13.0), "max_len": np.full(files, 13)}
    arrays = [pa.array(values[f.name], f.type) if f.name in values else pa.nulls(files, f.type) for f in SUMMARY]
    return pa.table(arrays, schema=SUMMARY)


def _bounds(column: Column, shape: int, numbers: np.random.Generator, files: int) -> tuple[object, object]:
    span = {"boolean": 1, "int": 10**6, "date": 10_000, "decimal(10,2)": 10**7}.get(column.type, 10**12)
    if shape == 0:  # clustered
        edges = np.sort(numbers.integers(0, span, files + 1))
        lo, hi = edges[:-1], edges[1:]
    elif shape == 1:  # few values
        lo, hi = numbers.integers(0, 2, files), numbers.integers(1, 5, files) * max(1, span // 10)
    else:  # spread
        margin = max(1, span // 1000)
        lo, hi = numbers.integers(0, margin, files), span - numbers.integers(0, margin, files)
    if column.encoding == "long":
        return lo.astype(np.int64), np.minimum(hi, span).astype(np.int64)
    if column.encoding == "double":
        cents = lo / 100, hi / 100
        return tuple(c.astype(np.float32).astype(np.float64) if column.type == "float" else c for c in cents)
    return [f"{v:013}".encode() for v in lo], [f"{v:013}".encode() for v in hi]


def look_up(path: str, ordinals: list[int]) -> int:
    """Reads these columns of a store as a planner does, and counts the files that `lo <= v <= hi` keeps."""
    store = Store.open(path)
    manifest = store.read()
    assert manifest is not None
    block = manifest.blocks[0]
    files = store.get(block.files, ["file", "path", "size"])
    read_bytes = 0
    for ref in block.summary:
        chosen_ordinals = [ordinal for ordinal in ordinals if ordinal in ref.columns]
        if chosen_ordinals:
            rows = _row_groups(Path(path) / "objects" / ref.object.name, ref, chosen_ordinals, files.num_rows)
            read_bytes += sum(_evaluate(rows, block.columns[ordinal], ordinal) for ordinal in chosen_ordinals)
    return read_bytes


def _row_groups(path: Path, ref: SummaryRef, ordinals: list[int], files: int) -> pa.Table:
    per_group = object_layout.columns_per_row_group(files)
    groups = sorted({ref.columns.index(ordinal) // per_group for ordinal in ordinals})
    with pa.memory_map(str(path)) as source:
        metadata = _verified_footer(source, ref.object)
        _verify_chunks(source, metadata, groups)
        return pq.ParquetFile(source, metadata=metadata).read_row_groups(groups, columns=PLANNER)


def _verified_footer(source: pa.NativeFile, ref: ObjectRef) -> pq.FileMetaData:
    source.seek(ref.length - ref.footer_length)
    footer = source.read()
    assert hashlib.sha256(footer).hexdigest() == ref.footer_sha256
    return pq.read_metadata(source)


def _verify_chunks(source: pa.NativeFile, metadata: pq.FileMetaData, groups: list[int]) -> None:
    digests = base64.b64decode(metadata.metadata[b"metastore.digests"])
    for group in groups:
        row_group = metadata.row_group(group)
        for ordinal in range(row_group.num_columns):
            chunk = row_group.column(ordinal)
            if chunk.path_in_schema in PLANNER:
                source.seek(chunk.data_page_offset)
                offset = 16 * (group * row_group.num_columns + ordinal)
                digest = hashlib.sha256(source.read(chunk.total_compressed_size)).digest()[:16]
                assert digest == digests[offset : offset + 16]


def _evaluate(rows: pa.Table, column: Column, ordinal: int) -> int:
    rows = rows.filter(pc.equal(rows["column"], ordinal))
    lo, hi = rows[f"lo_{column.encoding}"], rows[f"hi_{column.encoding}"]
    value = pc.min_max(lo)["max"]
    return int(pc.sum(pc.and_(pc.less_equal(lo, value), pc.less_equal(value, hi))).as_py() or 0)


def _values(size: Size) -> LookedUpColumns:
    """The columns that a query asks for and the stored value of each that it wants: one that a middle file holds."""
    chosen = np.random.default_rng(1).choice(size.columns, min(LOOKED_UP, size.columns), replace=False)
    row_groups = {}
    for ordinal in sorted(chosen.tolist()):
        column = _schema_column(ordinal)
        lo, _ = _bounds(column, ordinal % 4, np.random.default_rng(ordinal), size.files)
        row_groups[ordinal] = column, lo[size.files // 2]
    return row_groups


def _literal(column: Column, value: object) -> str:
    if isinstance(value, bytes):
        return f"'{value.decode()}'"
    if column.encoding == "double":
        return f"CAST({float(value)!r}D AS {column.type})"  # type: ignore[arg-type]
    number = int(value)  # type: ignore[call-overload]
    texts = {
        "boolean": str(bool(number)),
        "date": f"date_from_unix_date({number})",
        "timestamp": f"timestamp_micros({number}L)",
        "decimal(10,2)": f"CAST({number / 100:.2f}BD AS decimal(10,2))",
    }
    return texts.get(column.type, f"CAST({number}L AS {column.type})")


def _planner(spark: SparkSession, path: Path, size: Size, looked_up: LookedUpColumns) -> dict[str, object]:
    """Measure the driver's planner, in milliseconds, and count the files that it leaves."""
    ddl = ", ".join(f"column_{i:04} {TYPES[i % len(TYPES)]}" for i in range(size.columns))
    query = " AND ".join(f"{column.path[0]} = {_literal(column, value)}" for column, value in looked_up.values())
    java = find_shim_package(spark).scan.LookupTimer
    listing = path.with_suffix(".txt")
    listed = _files(size.files)
    lines = (
        f"{file_size} {path}\n"
        for file_size, path in zip(listed["size"].to_pylist(), listed["path"].to_pylist(), strict=True)
    )
    listing.write_text("".join(lines))
    every = " AND ".join(f"{column.path[0]} >= {_literal(column, _lowest(column))}" for column, _ in looked_up.values())
    in_order, unselective, clustered = (
        java.open(spark._jsparkSession, ddl, str(path), TABLE.uuid, where, str(listing))  # noqa: SLF001
        for where in (query, every, "column_0000 >= 0")
    )
    timers = [in_order, in_order.inRandomOrder()]
    cold, any_order = (_milliseconds(lambda timer=timer: timer.nanos(BATCH, *COLD), WARM_UP, RUNS) for timer in timers)
    relisted, cached = (
        _milliseconds(lambda how=how: in_order.nanos(BATCH, *how), 1000, 200) for how in (RELISTED, CACHED)
    )
    estimates = {
        f"estimates, {files}, {'cold' if cold_run else 'cached'} ms": round(
            _milliseconds(partial(timer.estimating, BATCH, cold_run), WARM_UP, RUNS), 1
        )
        for files, timer in (("few files", in_order), ("all files", unselective))
        for cold_run in (True, False)
    }
    return {
        "cold ms": round(cold, 1),
        "target ms": size.milliseconds,
        "any order ms": round(any_order, 1),
        "cached, new list ms": round(relisted, 2),
        "cached ms": round(cached, 2),
        "target cached ms": size.cached,
        **estimates,
        **{
            f"{rule}, {'cold' if cold_run else 'cached'} ms": round(
                _milliseconds(partial(clustered.asking, rule, BATCH, cold_run), WARM_UP, RUNS), 1
            )
            for rule in ("limit", "top", "join", "aggregate")
            for cold_run in (True, False)
        },
        "kept": timers[0].kept(),
    }


def _milliseconds(nanos: Callable[[], list[int]], warm_up: int, runs: int) -> float:
    """The median of some runs, which come in batches."""

    def measured(most: int) -> list[float]:
        until, milliseconds = time.perf_counter() + LONGEST, []
        while len(milliseconds) < most and time.perf_counter() < until:
            milliseconds += [nanoseconds / 1e6 for nanoseconds in nanos()]
        return milliseconds

    measured(warm_up)
    return median(measured(runs))


def _lowest(column: Column) -> object:
    return b"0000000000000" if column.encoding == "binary" else 0


def _alternatives(spark: SparkSession, store: Path, size: Size, looked_up: LookedUpColumns) -> dict[str, object]:
    path, paths = store.with_suffix(".parquet"), _paths(size.files)
    if not path.exists():
        columns = [_schema_column(i) for i in range(size.columns)]
        rows = ((column.path[0], _column(column, i, size.files)) for i, column in enumerate(columns))
        one_table.write(path, paths, rows)
    keys = {column.path[0]: (str(column.encoding), value) for column, value in looked_up.values()}
    by_spark = partial(one_table.kept_by_spark, spark, path, keys)
    by_spark()
    return {
        "same index by pyarrow ms": round(_timed(lambda: look_up(str(store), list(looked_up))), 1),
        "one table MB": round(path.stat().st_size / 1e6, 1),
        "one table by pyarrow ms": round(_timed(lambda: one_table.kept_by_pyarrow(path, keys, paths), 3), 1),
        "one table by Spark ms": round(_timed(by_spark, 3), 1),
    }


def _timed(function: Callable[[], object], runs: int = 7) -> float:
    return 1000 * median([seconds(function) for _ in range(runs)])


def measure(spark: SparkSession, name: str, size: Size, work: Path) -> dict[str, object]:
    """Builds a store, unless it is there, and measures it."""
    path = work / name / "_metastore"
    path.parent.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    if not path.exists():
        build_store(path, size.files, size.columns)
    built = time.perf_counter() - start
    objects = list((path / "objects").iterdir())
    looked_up = _values(size)
    return {
        "store": name,
        "files": size.files,
        "columns": size.columns,
        "objects": len(objects),
        "build s": round(built, 1),
        "MB": round(sum(path.stat().st_size for path in objects) / 1e6, 1),
        "target MB": size.megabytes,
        **_planner(spark, path, size, looked_up),
        **_alternatives(spark, path, size, looked_up),
    }


def main() -> None:
    """Measures the chosen stores, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="append", choices=sorted(STORES))
    parser.add_argument("--share", type=float, default=1, help="of each store's files (default 1: all)")
    parser.add_argument("--work", type=work_folder, help="folder that keeps the stores")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = arguments.work or Path(folder)
        with spark_session(work) as spark:
            spark.conf.set("spark.metastore.planning.timeout", "600s")
            sizes = {name: STORES[name].of(arguments.share) for name in arguments.store or sorted(STORES)}
            rows = [measure(spark, name, size, work) for name, size in sizes.items()]
            report("index_lookup", rows, load=[round(minutes, 1) for minutes in os.getloadavg()])


if __name__ == "__main__":
    main()
