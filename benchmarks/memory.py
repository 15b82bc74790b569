"""Peak memory of the task that analyzes one large data file, everything on: it has to stay below 1 GB.

    uv run python benchmarks/memory.py                     # 10 GB in one row group
    uv run python benchmarks/memory.py --groups 4000       # the same rows in 4,000 row groups
    uv run python benchmarks/memory.py --columns 400 --gigabytes 4

A third of the columns are strings of 36 bytes, the others integers and doubles; nearly all values are distinct, which
is the worst case: every value counts for percentiles, sketches, filters and lists.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import report, work_folder

from metastore.format.data_files import DataFile
from metastore.format.manifest import TableIdentity
from metastore.format.table_column import Column
from metastore.pipeline.block_task import BlockDestination, BlockTask, run_block_task
from metastore.spark_jobs.task_store import TaskStore

KINDS = (("bigint", "long"), ("double", "double"), ("string", "binary"))
_LETTERS = np.frombuffer(b"0123456789abcdef", np.uint8)
_TEXT_BYTES = 36
_ROW_BYTES = 8 + 8 + _TEXT_BYTES + 4
SETTINGS = {"theta_lgk": 12, "theta_hash": "iceberg", "histogram_bins": 1000, "frequencies_top": 1000}
LIMIT_MB = 1024


def columns(number: int) -> list[Column]:
    """Integers, doubles and strings in equal parts."""
    listed = []
    for i in range(number):
        spark_type, encoding = KINDS[i % len(KINDS)]
        listed.append(Column(key=str(i + 1), path=(f"c{i}",), type=spark_type, encoding=encoding))
    return listed


def write(path: Path, number: int, size: int, groups: int) -> int:
    """Writes the file and returns its rows; columns of a kind share their values, which takes no memory to write."""
    rows = 3 * size // (number * _ROW_BYTES)
    random = np.random.default_rng(1)
    texts = _LETTERS[random.integers(0, 16, rows * _TEXT_BYTES, np.uint8)]
    offsets = np.arange(rows + 1, dtype=np.int64) * _TEXT_BYTES
    kinds = [
        pa.array(random.integers(0, 1 << 60, rows)),
        pa.array(random.normal(size=rows)),
        pa.Array.from_buffers(pa.large_string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(texts)]),
    ]
    fields = [pa.field(f"c{i}", kinds[i % 3].type, metadata={"PARQUET:field_id": str(i + 1)}) for i in range(number)]
    table = pa.table([kinds[i % 3] for i in range(number)], pa.schema(fields))
    pq.write_table(
        table, path, row_group_size=-(-rows // groups), use_dictionary=False, compression="none", store_schema=False
    )
    return rows


def analyze(path: Path, rows: int, number: int) -> None:
    """Runs the task in this process and prints its peak memory."""
    before = _peak()
    file = DataFile(path=str(path), size=path.stat().st_size, rows=rows, format="parquet")
    task_store = TaskStore(str(path.parent / "store"))
    destination = BlockDestination(
        store=task_store, table=TableIdentity("iceberg", "u", "/", "t"), settings=SETTINGS, budget=1 << 30
    )
    start = time.perf_counter()
    run_block_task(
        destination,
        BlockTask(depth="full", columns=tuple(columns(number)), files=(file,), defaults={}, absent_is_null=True),
    )
    print(json.dumps({"peak_mb": _peak(), "idle_mb": before, "seconds": time.perf_counter() - start}))


def _peak() -> int:
    """Peak memory of this process in MB; `getrusage` would tell that of the one that started it, if that had more."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) >> 10


def main() -> None:
    """Writes the file, analyzes it in a process of its own, and fails where that takes too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=10, help="size of the data file (default 10)")
    parser.add_argument("--columns", type=int, default=30, help="its columns (default 30)")
    parser.add_argument("--groups", type=int, default=1, help="its row groups (default 1)")
    parser.add_argument("--work", type=work_folder, help="folder for the file (default: a temporary one)")
    parser.add_argument("--analyze", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.analyze:
        analyze(options.analyze, options.rows, options.columns)
        return
    with tempfile.TemporaryDirectory(prefix="metastore-memory-", dir=options.work) as folder:
        path = Path(folder) / "data.parquet"
        rows = write(path, options.columns, int(options.gigabytes * 2**30), options.groups)
        shape = [f"--rows={rows}", f"--columns={options.columns}"]
        command = [sys.executable, __file__, f"--analyze={path}", *shape]
        measured = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        size = path.stat().st_size
    shape = {"rows": rows, "columns": options.columns, "row groups": options.groups, "GB": size / 2**30}
    report(f"memory-{options.groups}x{options.columns}", [{**shape, **measured}])
    if measured["peak_mb"] > LIMIT_MB:
        sys.exit(f"{measured['peak_mb']} MB are more than {LIMIT_MB}")


if __name__ == "__main__":
    main()
