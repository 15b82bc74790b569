"""Shared by all benchmarks: one Spark with Iceberg, a description of the machine, results as table and JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from pyspark.sql import DataFrame, SparkSession

RESULTS = Path(os.environ.get("METASTORE_BENCHMARK_RESULTS", Path(__file__).resolve().parent / "results"))
PHASES = ("parsing", "analysis", "optimization", "planning")
# Spark ignores a configuration without an appender, and logs as it does by default.
QUIET = """\
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
appender.none.type = Null
appender.none.name = none
"""
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def spark_session(work: Path, **conf: str) -> Iterator[SparkSession]:
    """A local Spark on all cores with the Iceberg catalog `ice` under `work`."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the environment comes first

    from metastore import jars  # noqa: PLC0415

    log = work / "log4j2.properties"
    log.write_text(QUIET)
    settings = {
        "spark.master": "local[*]",
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log} -Dderby.system.home={work}",
        **({} if "spark.jars" in conf else {"spark.jars": str(jars.fetch("iceberg-4.1"))}),
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(work / "ice"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.shuffle.partitions": str(os.cpu_count()),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **conf,
    }
    builder = SparkSession.builder.appName("benchmark")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def work_folder(text: str) -> Path:
    """Makes the folder that `--work` names, unless it is there."""
    folder = Path(text).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tpch(work: Path, table: str, scale: float, parts: int) -> Path:
    """Generates one TPC-H table as `parts` Parquet files, once; returns their folder."""
    folder = work / f"tpch-{scale}-{parts}" / table
    if not folder.exists():
        tool = Path(sys.executable).parent / "tpchgen-cli"
        command = [str(tool), "parquet", "-s", str(scale), f"--tables={table}", f"--parts={parts}"]
        subprocess.run([*command, f"--output-dir={folder.parent}"], check=True, capture_output=True)
    return folder


def seconds(action: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def cpu_seconds(servers: AbstractSet[int] = frozenset()) -> float:
    """CPU seconds so far of this process and all below it but the servers: Spark's JVM and its workers."""
    parents = {}
    ticks = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = read_stat(folder)
        except OSError:
            continue  # it has ended meanwhile; its parent has its time
        process = int(folder.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))
    return sum(ticks[process] for process in ticks if _is_below(process, parents, servers)) / TICKS


def read_stat(folder: Path) -> list[str]:
    """The fields of a process's `stat` after its name: the parent is 1, the ticks of user and system are 11 and 12."""
    return (folder / "stat").read_text().rpartition(")")[2].split()


def _is_below(process: int, parents: dict[int, int], servers: AbstractSet[int]) -> bool:
    while process in parents:
        if process in servers:
            return False
        if process == os.getpid():
            return True
        process = parents[process]
    return False


def alternate(actions: dict[str, Callable[[], object]], runs: int) -> dict[str, list[float]]:
    """Times the actions in turn, so that all of them see the same machine; the first round warms up."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for run in range(runs + 1):
        for name, action in actions.items():
            took = seconds(action)
            sys.stderr.write(f"{'warm-up' if run == 0 else f'run {run}'}: {name} {took:.2f} s\n")
            if run:
                times[name].append(took)
    return times


def planning(frame: DataFrame) -> int:
    """Milliseconds from the text of a query to its plan."""
    phases = frame._jdf.queryExecution().tracker().phases()  # noqa: SLF001 - it has no public name
    return sum(phases.apply(name).durationMs() for name in PHASES if phases.contains(name))


def median(values: list[float]) -> float:
    """Median of some times."""
    return statistics.median(values)


def machine() -> dict[str, Any]:
    """Describe the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def report(name: str, rows: list[dict[str, Any]], **facts: Any) -> None:
    """Prints the rows as a table and saves them."""
    columns = list(rows[0])
    texts = [[f"{row[c]:.3g}" if isinstance(row[c], float) else str(row[c]) for c in columns] for row in rows]
    widths = [max(len(c), *(len(t[i]) for t in texts)) for i, c in enumerate(columns)]
    for line in [columns, *texts]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    save(name, rows, **facts)


def save(name: str, rows: list[dict[str, Any]], **facts: Any) -> None:
    """Writes `results/<name>.json`, in METASTORE_BENCHMARK_RESULTS if set."""
    RESULTS.mkdir(exist_ok=True)
    document = {"benchmark": name, "machine": machine(), **facts, "rows": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n")
