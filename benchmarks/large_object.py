"""ANALYZE of one large object on an S3 server: memory of each task's Python process, busy cores, seconds.

    uv run python benchmarks/large_object.py                                  # 10 GB in 80 row groups
    uv run python benchmarks/large_object.py --gigabytes 0.5 --groups 4       # a first try
    uv run python benchmarks/large_object.py --groups 1 --delay 20            # one row group, 20 ms a request

The columns are those of `memory.py`: nearly all values are distinct, which is the worst case. A process must stay below
1 GB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import memory
import object_store
from analyze_on_s3 import ROOT, make_settings
from common import TICKS, read_stat, report, seconds, spark_session, work_folder

import metastore

_POLL_SECONDS = 0.1


class Workers(threading.Thread):
    """Watches the Python processes that run Spark's tasks.

    Attributes:
        peaks: The peak memory of each process in MB.
        cpu: The CPU seconds of each process.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[int, int] = {}
        self.cpu: dict[int, float] = {}
        self._ended = threading.Event()

    def run(self) -> None:
        """Looks at the processes until the end."""
        while not self._ended.wait(_POLL_SECONDS):
            self.look()

    def end(self) -> None:
        """Looks a last time."""
        self._ended.set()
        self.join()
        self.look()

    def look(self) -> None:
        """Notes memory and CPU seconds of the processes of now."""
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self._is_worker(folder):
                    self._note(folder)
            except (OSError, KeyError):
                continue  # it has ended meanwhile

    def _is_worker(self, folder: Path) -> bool:
        is_ours = f"SPARK_LOCAL_DIRS={os.environ['SPARK_LOCAL_DIRS']}".encode() in (folder / "environ").read_bytes()
        return is_ours and b"pyspark.daemon" in (folder / "cmdline").read_bytes()

    def _note(self, folder: Path) -> None:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        process = int(folder.name)
        self.peaks[process] = int(status["VmHWM"].split()[0]) >> 10
        self.cpu[process] = sum(map(int, read_stat(folder)[11:13])) / TICKS


def measure(address: str, work: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Analyzes the object in a Spark that has started; returns a row for each process, and facts of all."""
    with spark_session(work, **make_settings(address)) as spark:
        spark.range(1000).write.parquet(str(work / "small"))
        metastore.analyze(spark, f"parquet.`{work / 'small'}`", progress=False)
        workers = Workers()
        workers.look()
        before = dict(workers.cpu)
        workers.start()
        table = f"parquet.`{ROOT}/{object_store.LARGE_KEY.rpartition('/')[0]}`"
        reports = []
        wall = seconds(lambda: reports.append(metastore.analyze(spark, table, progress=False)))
        workers.end()
        cores = spark.sparkContext.defaultParallelism
    cpu = {process: used - before.get(process, 0.0) for process, used in workers.cpu.items()}
    busy = [process for process, used in cpu.items() if used > 0]
    rows = [{"process": process, "peak_mb": workers.peaks[process], "cpu_seconds": cpu[process]} for process in busy]
    facts = {
        "seconds": wall,
        "cores": cores,
        "busy_cores": sum(cpu.values()) / wall,
        "table_rows": reports[0].rows,
        "refused": [refusal.subject for refusal in reports[0].refused],
    }
    return rows, facts


def main() -> None:
    """Writes the file, analyzes it on the server, and fails where a process takes too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=10, help="size of the object (default 10)")
    parser.add_argument("--columns", type=int, default=30, help="its columns (default 30)")
    parser.add_argument("--groups", type=int, default=80, help="its row groups (default 80)")
    parser.add_argument("--delay", type=float, default=0, help="milliseconds that each request waits (default 0)")
    parser.add_argument("--work", type=work_folder, help="folder for the file (default: a temporary one)")
    options = parser.parse_args()
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    with tempfile.TemporaryDirectory(prefix="metastore-large-", dir=options.work) as folder:
        os.environ["SPARK_LOCAL_DIRS"] = folder
        path = Path(folder) / "data.parquet"
        rows = memory.write(path, options.columns, int(options.gigabytes * 2**30), options.groups)
        size = path.stat().st_size
        with object_store.running(options.delay / 1000, path) as address:
            processes, facts = measure(address, Path(folder))
    assert (facts["table_rows"], facts["refused"]) == (rows, []), facts
    shape = {
        "gigabytes": size / 2**30,
        "columns": options.columns,
        "row_groups": options.groups,
        "delay_ms": options.delay,
    }
    report("large-object", processes, **shape, **facts)
    sys.stderr.write(f"{facts['seconds']:.1f} s, {facts['busy_cores']:.2f} of {facts['cores']} cores busy\n")
    peak = max(row["peak_mb"] for row in processes)
    if peak > memory.LIMIT_MB:
        sys.exit(f"{peak} MB are more than {memory.LIMIT_MB}")


if __name__ == "__main__":
    main()
