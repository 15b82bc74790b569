"""The queries of TPC-H, TPC-DS or JOB (22, 99, 113) with the Metastore and without it: rows, plans, files and time.

    uv run python benchmarks/tpc.py ds                         # scale 1, five counted runs: hours on two cores
    uv run python benchmarks/tpc.py h --scale 0.1 --runs 1
    uv run python benchmarks/tpc.py ds --runs 0 --queries 3 14  # compares rows and plans only
    uv run python benchmarks/tpc.py job --runs 3 --without off  # the Join Order Benchmark
    uv run python benchmarks/tpc.py ds --scale 0.1 --planning  # plans alone: the first, second and tenth of a driver
    uv run python benchmarks/tpc.py ds --work FOLDER           # data and analyzed tables stay there for the next run

Of TPC-H lineitem and orders are ordered by date, of TPC-DS sales and returns in stores and the inventory, of JOB the
cast by role and movies' infos by type; the other large tables are in no order; each is an analyzed Iceberg table of 16
data files. JOB has no generator: ours, `job.sql`, gives skewed and correlated tables in which its queries find rows.
"Off" is a Spark without us, and cost-based optimization is off too; "cbo" is without us and has the spark.sql.cbo
settings that we switch on: planning that takes longer than there is ours. Rows are compared without the final ORDER BY
and LIMIT, which leaves open which of equal rows it takes; floats are rounded; minima, all that JOB asks for, are
compared with the number of rows that they were taken of, and that is the number of rows in the results. Where the order
or the kind of a join differs between off and on, `plans` of the results says so, with the sizes and rows that the
optimizer expected and the rows that came; "joined" counts the rows that all joins of a query give. Results are written
after each query.
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

import plans
import tpc_planning
from common import median, planning, report, save, spark_session, work_folder
from pyspark.sql import functions

import metastore
from metastore.demo.executed_plan import count_files_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = {"h": "tpch", "ds": "tpcds", "job": "job"}
WITHOUT = {
    "off": {
        "spark.metastore.enabled": "false",
        "spark.sql.cbo.enabled": "false",
        "spark.sql.cbo.joinReorder.enabled": "false",
    },
    "cbo": {"spark.metastore.enabled": "false"},
}
ONE_FILE_A_TASK = {"spark.sql.files.openCostInBytes": "1g", "spark.sql.files.maxPartitionBytes": "1g"}
COUNTS = ("files off", "files on", "joined off", "joined on")
SLOWER, LATER = 1.1, 0.2  # a query may be slower by this factor and these seconds
Rows = Counter[tuple[Any, ...]]
Row = dict[str, Any]


@dataclass
class Side:
    """A session with the Metastore or without it, and what its runs of one query took."""

    session: SparkSession
    seconds: list[float] = field(default_factory=list)
    planning: list[float] = field(default_factory=list)
    files: int = 0
    plan: plans.Plan = field(default_factory=plans.Plan)

    def rows(self, query: str) -> Rows:
        """All rows of a query, in no order: to sort them Spark would run the last stage twice, and count twice."""
        frame = self.session.sql(query).repartition(1, functions.lit(0))
        row_counts = Counter(tuple(map(_comparable, row)) for row in frame.collect())
        self.files = sum(count_files_read(frame))
        self.plan = plans.of(frame)
        return row_counts

    def run(self, query: str) -> None:
        """Runs a query once and takes the time."""
        start = time.perf_counter()
        frame = self.session.sql(query)
        frame.collect()
        self.seconds.append(time.perf_counter() - start)
        self.planning.append(planning(frame))


def _comparable(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def without(on: SparkSession, names: set[str]) -> dict[str, SparkSession]:
    """Sessions of the same Spark that have the Metastore switched off."""
    sessions = {name: on.newSession() for name in WITHOUT if name in names}
    for name, session in sessions.items():
        for key, value in WITHOUT[name].items():
            session.conf.set(key, value)
    return sessions


def data(work: Path, benchmark: str, scale: float) -> Path:
    """Generates the data and the queries once, in an environment with the DuckDB that has the generator."""
    folder = work / f"{QUERIES[benchmark]}-{scale}"
    if not (folder / "queries.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        script = Path(__file__).with_name("tpc_data.py")
        command = ["uv", "run", "--quiet", "--isolated", "--only-group", "tpc", "python", str(script)]
        subprocess.run([*command, benchmark, str(folder), "--scale", str(scale)], check=True, cwd=script.parent.parent)
    return folder


def create_tables(spark: SparkSession, source: Path) -> str:
    """Copies every table into Iceberg, file by file, and analyzes it, but for those that a run before has left."""
    for key, value in ONE_FILE_A_TASK.items():
        spark.conf.set(key, value)
    namespace = "ice." + re.sub(r"\W", "_", source.name)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    for folder in sorted(f for f in source.iterdir() if f.is_dir()):
        name = f"{namespace}.{folder.name}"
        start = time.perf_counter()
        if not spark.catalog.tableExists(name):
            spark.read.parquet(str(folder)).writeTo(name).tableProperty("write.distribution-mode", "none").create()
        metastore.analyze(spark, name, progress=False)
        sys.stderr.write(f"{name}: {time.perf_counter() - start:.1f} s\n")
    for key in ONE_FILE_A_TASK:
        spark.conf.unset(key)
    return namespace


def compare(number: str, query: str, sessions: dict[str, SparkSession], runs: int) -> tuple[Row, list[Row]]:
    """Compares rows and plan of one query with the Metastore and without it, then times all sessions in turn."""
    sides = {name: Side(session) for name, session in sessions.items()}
    full, minima = re.subn(r"^SELECT (?=MIN\()", "SELECT COUNT(*), ", re.sub(r"\s+LIMIT \d+\s*$", "", query))
    rows = sides["off"].rows(full)
    different = sides["on"].rows(full) != rows
    count = next(iter(rows))[0] if minima else rows.total()
    for _ in range(runs):
        for side in sides.values():
            side.run(query)
    changes = plans.changes(sides["off"].plan, sides["on"].plan)
    row = {"query": number, "rows": count, "equal": not different, "plan changes": len(changes)}
    row |= {f"files {name}": sides[name].files for name in ("off", "on")}
    row |= {f"joined {name}": sides[name].plan.rows_joined() for name in ("off", "on")}
    if runs:
        seconds = {f"{name} s": median(side.seconds) for name, side in sides.items()}
        row |= seconds
        row |= {f"planning {name} ms": median(side.planning) for name, side in sides.items()}
        row["slower"] = seconds["on s"] > seconds["off s"] * SLOWER + LATER
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {row}\n")
    return row, changes


def totals(rows: list[Row]) -> Row:
    """Sums over all queries, the planning that we add in percent of their time, and the queries that fail a target."""
    times = [name for name in rows[0] if name.endswith((" s", " ms"))]
    facts: Row = {f"total {name}": sum(row[name] for row in rows) for name in [*times, *COUNTS]}
    facts |= added_planning(facts)
    facts["different"] = [row["query"] for row in rows if not row["equal"]]
    facts["slower"] = [row["query"] for row in rows if row.get("slower")]
    return facts


def added_planning(totals: Row) -> Row:
    """The planning that we add to each Spark without us, in percent of the time of all queries."""
    added = {}
    for name in WITHOUT:
        if f"total {name} s" in totals:
            milliseconds = totals["total planning on ms"] - totals[f"total planning {name} ms"]
            added[f"planning added to {name} %"] = round(milliseconds / totals["total on s"] / 10, 1)
    return added


def report_planning(name: str, queries: dict[str, str], sessions: dict[str, SparkSession], scale: float) -> int:
    """Prints and saves how long the queries are planned."""
    rows = tpc_planning.measure(queries, sessions)
    report(name, rows, scale=scale, rounds=tpc_planning.compare(rows))
    for turn, facts in tpc_planning.compare(rows).items():
        print(turn, facts)
    return 0


def run_queries(
    name: str, queries: dict[str, str], sessions: dict[str, SparkSession], options: argparse.Namespace
) -> int:
    """Runs the queries and saves what each took; 1 if the rows of any of them differ."""
    rows: list[Row] = []
    changed: dict[str, list[Row]] = {}
    facts: Row = {}
    for number, query in queries.items():
        row, changes = compare(number, query, sessions, options.runs)
        rows.append(row)
        if changes:
            changed[number] = changes
        facts = {"scale": options.scale, "runs": options.runs, **totals(rows)}
        save(name, rows, **facts, plans=changed)
    print(facts)
    report(name, rows, **facts, plans=changed)
    return 1 if facts["different"] else 0


def select_queries(source: Path, numbers: list[str] | None) -> dict[str, str]:
    """The generated queries with these numbers, or all of them."""
    queries = json.loads((source / "queries.json").read_text())
    return {number: queries[number].strip().rstrip(";") for number in numbers or queries}


def parse_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", choices=QUERIES, help="TPC-H, TPC-DS or JOB")
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor (default 1)")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each query (default 5)")
    parser.add_argument("--planning", action="store_true", help="plan the queries ten times, and run none")
    parser.add_argument("--queries", nargs="*", help="numbers of queries (default all)")
    parser.add_argument(
        "--without", nargs="*", choices=WITHOUT, default=[*WITHOUT], help="compared with (default both)"
    )
    parser.add_argument("--work", type=work_folder, help="folder that keeps the generated data and the tables")
    return parser.parse_args()


def main() -> int:
    """Runs or plans the queries; 1 if the rows of any of them differ."""
    options = parse_options()
    name = QUERIES[options.benchmark]
    work = options.work or Path(tempfile.mkdtemp(prefix=f"metastore-{name}-"))
    source = data(work, options.benchmark, options.scale)
    queries = select_queries(source, options.queries)
    with spark_session(work, **{"spark.sql.ansi.doubleQuotedIdentifiers": "true"}) as on:
        namespace = create_tables(on, source)
        sessions = without(on, {"off", *options.without}) | {"on": on}
        for session in sessions.values():
            session.sql(f"USE {namespace}")
        if options.planning:
            return report_planning(f"{name}-planning", queries, sessions, options.scale)
        return run_queries(name, queries, sessions, options)


if __name__ == "__main__":
    sys.exit(main())
