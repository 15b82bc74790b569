"""Tables whose data files were analyzed: lists of any kind and histograms of any size, written through the store."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernel.samples import ARROW, column
from metastore.adapters.table_facts import TableFacts
from metastore.format import sortable_values
from metastore.format.data_files import DataFile
from metastore.format.manifest import Block, Manifest, SummaryRef, TableIdentity
from metastore.format.object_schemas import FILES, FREQUENCIES, HISTOGRAMS
from metastore.kernel.column_kernel import ColumnKernel
from metastore.kernel.detail_limits import DetailLimits
from metastore.kernel.statistic_rows import sketch_rows, summary_rows
from metastore.spark_jobs.task_store import TaskStore
from metastore.store import Store
from metastore.store.block_files import read_block_files
from metastore.store.coverage import Coverage
from metastore.store.data_file_access import LOCAL_FILES
from metastore.table_level.snapshot_level import write_table_level
from metastore.table_level.table_details import TableLevelOptions
from metastore.table_level.value_jobs import ValueJobs

if TYPE_CHECKING:
    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column

IDENTITY = TableIdentity("iceberg", "7d2a3a3e-0000-4000-8000-000000000001", "/w/t", "db.t")


@dataclass(frozen=True)
class Content:
    """One column: its Spark type, the values of each file, what each file's list is.

    Kinds: `complete`, `duplicates`, `none`, or a number: so many of the most frequent values.
    """

    spark_type: str
    files: list[pa.Array]
    kinds: list[Any]


def stored_values(array: pa.Array, of: Column) -> list[Any]:
    """Values without nulls, as the format stores them; NaN is one value."""
    array = array.drop_null()
    if of.encoding == "binary" and not sortable_values.is_wide_decimal(of):
        return [value if isinstance(value, bytes) else value.encode() for value in array.to_pylist()]
    sortable = sortable_values.sortable_array(array, of)
    return [float("nan") if value != value else sortable_values.sortable_to_stored(value, of) for value in sortable]  # noqa: PLR0124 - NaN


def count_values(array: pa.Array, of: Column) -> list[tuple[Any, int]]:
    """Values and frequencies, most frequent first."""
    counts = Counter("NaN" if value != value else value for value in stored_values(array, of))  # noqa: PLR0124 - NaN
    pairs = [(float("nan") if value == "NaN" else value, count) for value, count in counts.items()]
    return sorted(pairs, key=lambda pair: (-pair[1], str(pair[0])))


def histogram(array: pa.Array, of: Column, bins: int) -> dict[str, Any] | None:
    """The row of a histogram, without its column and file; None without bins or values."""
    kernel = ColumnKernel(of, 1 << 30, DetailLimits(bins=max(bins, 2)))
    kernel.add(array.cast(ARROW[of.type]))
    bars = kernel.finish(len(array)).histogram
    if bars is None or bins == 0:
        return None
    distincts = None if bars.distincts is None else bars.distincts.tolist()
    edges = {f"edges_{of.encoding}": bars.edges.to_pylist()}
    return {"kind": "equi_height", **edges, "counts": bars.counts.tolist(), "distincts": distincts}


def write_block(folder: Path, contents: list[Content], bins: int = 100) -> tuple[Store, TableFacts, Coverage]:
    """Write one block of all files, and say what ANALYZE would know then."""
    store = Store.open(str(folder), writable=True)
    columns = tuple(column(content.spark_type, f"c{i}", str(i)) for i, content in enumerate(contents))
    statistics, lists, bars = [], [], []
    for c, (of, content) in enumerate(zip(columns, contents, strict=True)):
        for f, (array, kind) in enumerate(zip(content.files, content.kinds, strict=True)):
            kernel = ColumnKernel(of, 1 << 30)
            kernel.add(array.cast(ARROW[content.spark_type]))
            counts = count_values(array, of)
            listed, name, floor = _cut(counts, kind)
            singles = sum(count == 1 for _, count in counts)
            column_statistics = replace(
                kernel.finish(len(array)), frequencies=name, frequencies_floor=floor, singles=singles
            )
            statistics.append((c, f, column_statistics))
            lists += [{"column": c, "file": f, f"value_{of.encoding}": v, "frequency": n} for v, n in listed]
            bar = histogram(array, of, bins)
            bars += [{"column": c, "file": f, **bar}] if bar else []
    paths = [_path(folder, i) for i in range(len(contents[0].files))]
    block = _block(store, columns, paths, statistics=statistics, lists=lists, bars=bars)
    files = tuple(
        DataFile(path=_path(folder, i), size=1, rows=len(array), format="parquet")
        for i, array in enumerate(contents[0].files)
    )
    for position, file in enumerate(files):
        _write(file.path, [(of, content.files[position]) for of, content in zip(columns, contents, strict=True)])
    facts = TableFacts(
        format="iceberg",
        uuid=IDENTITY.uuid,
        location=IDENTITY.location,
        root=IDENTITY.location,
        name="db.t",
        identifier="db.t",
        snapshot="1",
        columns=columns,
        files=files,
        defaults={},
        absent_is_null=True,
        local=True,
        snapshot_sql="db.t",
    )
    return store, facts, Coverage(read_block_files(store, [block]), files)


def commit_table_level(
    folder: Path,
    contents: list[Content],
    bins: int = 100,
    context: Any = None,
    *,
    distribution: bool = False,
    **options: Any,
) -> tuple[Store, Snapshot]:
    """Write the table level, and commit it; with a Spark context lists may be reduced by jobs."""
    store, facts, coverage = write_block(folder, contents, bins)
    jobs = (
        ValueJobs(
            context=context,
            store=TaskStore(str(folder)),
            files={file.path: file for file in facts.files},
            access=LOCAL_FILES,
        )
        if context
        else None
    )
    if jobs and distribution:
        jobs = replace(jobs, distribution=frozenset(range(len(contents))))
    level = write_table_level(store, facts, coverage, TableLevelOptions(bins=bins, **options), jobs=jobs)
    manifest = Manifest(table=IDENTITY, blocks=tuple(i.block for i in coverage.blocks), snapshots=(level.snapshot,))
    store.commit(IDENTITY, lambda _: manifest)
    return store, level.snapshot


def _path(folder: Path, number: int) -> str:
    return str(folder / "data" / f"f{number}.parquet")


def _write(path: str, columns: list[tuple[Column, pa.Array]]) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    fields = [pa.field(of.path[0], ARROW[of.type], metadata={"PARQUET:field_id": of.key}) for of, _ in columns]
    arrays = [array.cast(kind.type) for (_, array), kind in zip(columns, fields, strict=True)]
    pq.write_table(pa.table(arrays, schema=pa.schema(fields)), path)


def _cut(counts: list[tuple[Any, int]], kind: Any) -> tuple[list[tuple[Any, int]], str, int | None]:
    if kind == "complete":
        return counts, kind, 0
    if kind == "duplicates":
        return [pair for pair in counts if pair[1] > 1], kind, 1
    if kind == "none":
        return [], kind, None
    return counts[:kind], "top", counts[kind][1] if len(counts) > kind else 0


def _block(store: Store, columns: Any, paths: list[str], statistics: Any, lists: Any, bars: Any) -> Block:
    summary, sketches = summary_rows(statistics), sketch_rows(statistics)
    refs = {"sketches": store.put("sketches", sketches, [sketches.num_rows])}
    if lists:
        refs["frequencies"] = store.put("frequencies", pa.Table.from_pylist(lists, FREQUENCIES), [len(lists)])
    if bars:
        refs["histograms"] = store.put("histograms", pa.Table.from_pylist(bars, HISTOGRAMS), [len(bars)])
    summary_ref = store.put("summary", summary, [summary.num_rows])
    names = ("name", "length", "sha256", "footer_length", "footer_sha256")
    details = {f"{kind}_{name}": getattr(ref, name) for kind, ref in refs.items() for name in names}
    rows = [
        {"file": i, "path": path, "size": 1, "rows": None, **details, **{f"{kind}_file": i for kind in refs}}
        for i, path in enumerate(paths)
    ]
    listed = store.put("files", pa.Table.from_pylist(rows, FILES), [len(paths)])
    summaries = (SummaryRef(summary_ref, tuple(range(len(columns)))),)
    return Block(id=str(uuid.uuid4()), computed="full", columns=tuple(columns), files=listed, summary=summaries)


def integer_files(name: str, files: int, rows: int, seed: int = 0) -> list[np.ndarray]:
    """Integers of several distributions, file by file."""
    random = np.random.default_rng(seed)
    values = {
        "skewed": lambda: (random.pareto(1.0, files * rows) * 10).astype(np.int64),
        "uniform": lambda: random.integers(0, rows // 4, files * rows),
        "near unique": lambda: random.integers(0, files * rows * 20, files * rows),
        "all unique": lambda: random.permutation(files * rows),
        "sorted": lambda: np.arange(files * rows),
        "twice": lambda: np.concatenate([random.permutation(rows) for _ in range(files)]),
        "random": lambda: random.integers(-(1 << 62), 1 << 62, files * rows),
    }[name]()
    return np.split(values, files)
