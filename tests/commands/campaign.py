"""Many random UPDATE, DELETE and MERGE statements with us and without us, by hand or at night.

    uv run python tests/commands/campaign.py --format iceberg --commands 10000
    uv run python tests/commands/campaign.py --kind delta-vectors --commands 40 --seed 7

Runs so many commands of each format, over its kinds of tables. Prints a line a round, and exits with 1 where rows,
rewritten files or errors differ. Each run adds a line a format to results.jsonl beside this file, so that runs add up;
two of them may run side by side.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from commands.targets import Kind
    from commands.twins import Comparison

ROUND = 40
"""Commands on one table."""
RESULTS = HERE / "results.jsonl"


@dataclass
class Tally:
    """The sums over all rounds of one format."""

    commands: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    files_read: int = 0
    files: int = 0
    seconds: float = 0.0

    def add(self, kind: Kind, comparison: Comparison, seconds: float) -> None:
        """Adds a round."""
        self.commands[kind.name] += comparison.commands
        self.differences += comparison.differences
        self.files_read += comparison.files_read
        self.files += comparison.files
        self.seconds += seconds


@dataclass(frozen=True)
class Campaign:
    """The rounds to run.

    Attributes:
        commands: of each format, over its kinds.
        seed: of the first round; the others count on.
        deadline: on the monotonic clock; no round begins after it.
    """

    kinds: list[Kind]
    commands: int
    seed: int
    deadline: float

    def run(self, spark: SparkSession, tallies: dict[str, Tally]) -> None:
        """Runs rounds over the kinds of tables in turn until each format had enough commands."""
        number = 0
        while self._goes_on(tallies):
            kind = self.kinds[number % len(self.kinds)]
            tally = tallies[kind.format]
            missing = self.commands - tally.commands.total()
            if missing > 0:
                _run_round(spark, kind, tally, commands=min(ROUND, missing), seed=self.seed + number)
            number += 1

    def _goes_on(self, tallies: dict[str, Tally]) -> bool:
        is_short = any(tally.commands.total() < self.commands for tally in tallies.values())
        return is_short and time.monotonic() < self.deadline


def main() -> int:
    """Runs a campaign and adds its results to the file of results."""
    from commands.targets import KINDS  # noqa: PLC0415 - the path is set above

    formats = sorted({kind.format for kind in KINDS})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=10_000, help="commands of each format, over its kinds")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first round; the others count on")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no round after these")
    parser.add_argument("--format", choices=formats, help="of tables of this format alone")
    parser.add_argument("--kind", choices=[kind.name for kind in KINDS], help="of tables of this kind alone")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to which each run adds its lines")
    parser.add_argument("--classes", type=Path, help="a folder of classes in place of the shim's own, as of a mutant")
    arguments = parser.parse_args()
    kinds = [kind for kind in KINDS if arguments.format in {None, kind.format} and arguments.kind in {None, kind.name}]
    if not kinds:
        parser.error(f"{arguments.kind} is no kind of {arguments.format}")
    print(f"--seed {arguments.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # what was done is written
    tallies = {kind.format: Tally() for kind in kinds}
    campaign = Campaign(
        kinds=kinds,
        commands=arguments.commands,
        seed=arguments.seed,
        deadline=time.monotonic() + 60 * arguments.minutes,
    )
    try:
        with _session(arguments.classes) as spark:
            campaign.run(spark, tallies)
    finally:
        _save(arguments.results, tallies, arguments.seed)
    _print_sums(arguments.results)
    return 1 if any(tally.differences for tally in tallies.values()) else 0


def _run_round(spark: SparkSession, kind: Kind, tally: Tally, commands: int, seed: int) -> None:
    from commands.twins import compare, fill  # noqa: PLC0415 - the path is set above
    from planner.plans import conf  # noqa: PLC0415 - as above

    began = time.monotonic()
    # Users have adaptive plans; every other round goes without.
    with conf(spark, spark__sql__adaptive__enabled="true" if seed % 2 else "false"):
        target = fill(spark, kind, f"commanded_{seed}")
        comparison = compare(target, commands, seed)
        target.drop()
    seconds = time.monotonic() - began
    tally.add(kind, comparison, seconds)
    print(
        f"{kind.name}: {comparison.commands} commands, {comparison.files_read} of {comparison.files} files read,"
        f" {len(comparison.differences)} differences, {seconds / comparison.commands:.2f} s a command",
        *comparison.differences,
        sep="\n",
        flush=True,
    )


@contextmanager
def _session(classes: Path | None) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from lakes import FORMATS, session_conf  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="commands-") as folder:
        scratch = Path(folder)
        for name in ("spark", "warehouse"):
            (scratch / name).mkdir()
        settings = {**session_conf(scratch / "spark", scratch / "warehouse"), **SETTINGS}
        settings["spark.driver.extraJavaOptions"] += f" {JAVA}"
        if classes is not None:
            settings["spark.driver.extraClassPath"] = str(classes)
        builder = SparkSession.builder.appName("commands")
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        if "iceberg" in FORMATS:
            spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        try:
            yield spark
        finally:
            spark.stop()


SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
"""Fewer tasks than other tests have: a command on so few rows is as long as the tasks it starts."""

JAVA = "-Duser.timezone=UTC"
"""In another zone, also in GMT, Delta reads its log a second time after each commit to verify its checksum."""


def _save(results: Path, tallies: dict[str, Tally], seed: int) -> None:
    """Adds a line for each format that had commands."""
    for name, tally in tallies.items():
        if not tally.commands:
            continue
        line = {
            "format": name,
            "commands": tally.commands.total(),
            "kinds": dict(tally.commands),
            "seed": seed,
            "files read": tally.files_read,
            "of": tally.files,
            "differences": tally.differences,
            "seconds": round(tally.seconds),
            "commit": _commit(),
        }
        with results.open("a", encoding="utf-8") as file:  # one write, so that runs side by side do not mix
            file.write(json.dumps(line) + "\n")


def _commit() -> str:
    """The commit of the code, marked where files other than the results were changed since."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    is_changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", f":!{RESULTS.name}")
    return f"{commit}-dirty" if is_changed else commit


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def _print_sums(results: Path) -> None:
    """Prints what all runs of the results file came to."""
    if not results.exists():
        return
    lines = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    for name in sorted({line["format"] for line in lines}):
        runs = [line for line in lines if line["format"] == name]
        differences = sum(len(run["differences"]) for run in runs)
        print(f"{name}: {_total(runs, 'commands')} commands in {len(runs)} runs, {differences} differences")


def _total(runs: Iterable[dict[str, Any]], name: str) -> int:
    return sum(run[name] for run in runs)


if __name__ == "__main__":
    sys.exit(main())
