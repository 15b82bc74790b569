"""The 99 queries of TPC-DS with the Metastore and without it: equal rows, files read, planning and total time.

    uv run python benchmarks/tpcds.py                          # scale 1, five counted runs: hours on two cores
    uv run python benchmarks/tpcds.py --scale 0.1 --runs 1
    uv run python benchmarks/tpcds.py --runs 0 --queries 3 14  # compares rows only

Sales and returns in stores and the inventory are ordered by date, those of catalogs and of the web are in no order;
each is an analyzed Iceberg table of 16 data files. "Off" is a Spark without us, and cost-based optimization is off too;
"cbo" is without us and has the spark.sql.cbo settings that we switch on: planning that takes longer than there is ours.
Rows are compared without the final LIMIT, which leaves open which of equal rows it takes; floats are rounded.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import median, planning, report, spark_session

import metastore
from metastore._demo.executed import files_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT = {
    "off": {
        "spark.metastore.enabled": "false",
        "spark.sql.cbo.enabled": "false",
        "spark.sql.cbo.joinReorder.enabled": "false",
    },
    "cbo": {"spark.metastore.enabled": "false"},
}
ONE_FILE_A_TASK = {"spark.sql.files.openCostInBytes": "1g", "spark.sql.files.maxPartitionBytes": "1g"}
SLOWER, LATER = 1.1, 0.2  # a query may be slower by this factor and these seconds
Rows = Counter[tuple[Any, ...]]


@dataclass
class Side:
    """A session with the Metastore or without it, and what its runs of one query took."""

    session: SparkSession
    seconds: list[float] = field(default_factory=list)
    planning: list[float] = field(default_factory=list)
    files: int = 0

    def rows(self, query: str) -> Rows:
        """All rows of a query, in no order."""
        frame = self.session.sql(query)
        found = Counter(tuple(map(_comparable, row)) for row in frame.collect())
        self.files = sum(files_read(frame))
        return found

    def run(self, query: str) -> None:
        """Runs a query once and takes the time."""
        start = time.perf_counter()
        frame = self.session.sql(query)
        frame.collect()
        self.seconds.append(time.perf_counter() - start)
        self.planning.append(planning(frame))


def _comparable(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def data(work: Path, scale: float) -> Path:
    """Generates the data and the queries once, in an environment with the DuckDB that has the generator."""
    folder = work / f"tpcds-{scale}"
    if not (folder / "queries.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        script = Path(__file__).with_name("tpcds_data.py")
        own = ["uv", "run", "--quiet", "--isolated", "--only-group", "tpcds", "python", str(script)]
        subprocess.run([*own, str(folder), "--scale", str(scale)], check=True, cwd=script.parent.parent)
    return folder


def create_tables(spark: SparkSession, source: Path) -> None:
    """Copies every table into Iceberg, file by file, and analyzes it."""
    for key, value in ONE_FILE_A_TASK.items():
        spark.conf.set(key, value)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.tpcds")
    for folder in sorted(f for f in source.iterdir() if f.is_dir()):
        name = f"ice.tpcds.{folder.name}"
        spark.read.parquet(str(folder)).writeTo(name).tableProperty("write.distribution-mode", "none").create()
        metastore.analyze(spark, name, progress=False)
    for key in ONE_FILE_A_TASK:
        spark.conf.unset(key)


def compare(number: str, query: str, sessions: dict[str, SparkSession], runs: int) -> dict[str, Any]:
    """Compares the rows of one query with the Metastore and without it, then times all sessions in turn."""
    sides = {name: Side(session) for name, session in sessions.items()}
    unlimited = re.sub(r"\s+LIMIT \d+\s*$", "", query)
    rows = sides["off"].rows(unlimited)
    different = sides["on"].rows(unlimited) != rows
    for _ in range(runs):
        for side in sides.values():
            side.run(query)
    row = {"query": number, "rows": rows.total(), "equal": not different}
    row |= {f"files {name}": sides[name].files for name in ("off", "on")}
    if runs:
        seconds = {f"{name} s": median(side.seconds) for name, side in sides.items()}
        row |= seconds
        row |= {f"planning {name} ms": median(side.planning) for name, side in sides.items()}
        row["slower"] = seconds["on s"] > seconds["off s"] * SLOWER + LATER
    sys.stderr.write(f"{row}\n")
    return row


def totals(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over all queries, the planning that we add in percent of their time, and the queries that fail a target."""
    times = [name for name in rows[0] if name.endswith((" s", " ms"))]
    sums = {f"total {name}": sum(row[name] for row in rows) for name in [*times, "files off", "files on"]}
    for other in WITHOUT if times else ():
        added = sums["total planning on ms"] - sums[f"total planning {other} ms"]
        sums[f"planning added to {other} %"] = round(added / sums["total on s"] / 10, 1)
    return {
        **sums,
        "different": [row["query"] for row in rows if not row["equal"]],
        "slower": [row["query"] for row in rows if row.get("slower")],
    }


def main() -> int:
    """Runs the queries; 1 if the rows of any of them differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-DS scale factor (default 1)")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each query (default 5)")
    parser.add_argument("--queries", nargs="*", help="numbers of queries (default all)")
    parser.add_argument("--work", type=Path, help="folder that keeps the generated data")
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp(prefix="metastore-tpcds-"))
    work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(work / "ice", ignore_errors=True)
    source = data(work, given.scale)
    queries = json.loads((source / "queries.json").read_text())
    with spark_session(work, **{"spark.sql.ansi.doubleQuotedIdentifiers": "true"}) as on:
        create_tables(on, source)
        sessions = {name: on.newSession() for name in WITHOUT} | {"on": on}
        for name, settings in WITHOUT.items():
            for key, value in settings.items():
                sessions[name].conf.set(key, value)
        for session in sessions.values():
            session.sql("USE ice.tpcds")
        chosen = {n: queries[n].strip().rstrip(";") for n in given.queries or queries}
        rows = [compare(number, query, sessions, given.runs) for number, query in chosen.items()]
    sums = totals(rows)
    print(sums)
    report("tpcds", rows, scale=given.scale, runs=given.runs, **sums)
    return 1 if sums["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
