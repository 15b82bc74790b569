"""The story of `story.py` on every release of every table format, each in a Spark of its own.

    uv run python tests/versions/matrix.py [--spark 3.5] [--format hudi] [--variant TITLE] [--quick] [--jobs 2]

A line of Spark that this Python does not have gets an environment of its own, such as `.venv-spark40`; so do another
Scala and another Java. Prints one table; what is under way goes to stderr. Exits with 1 where something is not as
docs/gaps.json says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from metastore import jars

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from gaps import PARQUET, RELEASES, VARIANTS, Release, Variant, find_release
from versions.environments import PYSPARKS, ROOT, interpreter, java_home, say

if TYPE_CHECKING:
    from collections.abc import Sequence

PREDICATES = {"quick": 30, "whole": 300}
MINUTES = 20
ENVIRONMENTS = Lock()
"""Held while environments and jars are made: two cells may need the same."""


@dataclass(frozen=True)
class Cell:
    """A release on its Spark, with something else than usual or without."""

    release: Release
    variant: Variant | None = None

    @property
    def title(self) -> str:
        """As people call it."""
        title = f"{self.release.title} on Spark {self.release.spark_title}"
        return f"{title}, {self.variant.title}" if self.variant else title


CELLS = (
    *(Cell(release) for release in (*RELEASES, *PARQUET)),
    *(Cell(find_release(jar), variant) for variant in VARIANTS for jar in variant.jars),
)


def main() -> None:
    """Runs the cells that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spark", choices=sorted(PYSPARKS), help="this line of Spark alone")
    parser.add_argument(
        "--format", choices=sorted({cell.release.format for cell in CELLS}), help="this table format alone"
    )
    parser.add_argument("--scala", choices=["2.13"], help="Sparks alone that are built for another Scala than PySpark")
    parser.add_argument("--variant", choices=[variant.title for variant in VARIANTS], help="with this alone")
    parser.add_argument("--quick", action="store_true", help="the oldest releases alone, with fewer predicates")
    parser.add_argument("--predicates", type=int, help="how many random queries are compared, of each kind of table")
    parser.add_argument("--seed", type=int, default=20, help="of the random predicates")
    parser.add_argument("--jobs", type=int, default=2, help="how many cells run side by side")
    arguments = parser.parse_args()
    predicates = arguments.predicates or PREDICATES["quick" if arguments.quick else "whole"]
    cells = [cell for cell in CELLS if _is_selected(cell, arguments)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        outcomes = pool.map(lambda cell: _run(cell, predicates, arguments.seed), cells)
        results = list(zip(cells, outcomes, strict=True))
    Console(width=None if sys.stdout.isatty() else 160).print(_table(results))
    wrong = [
        f"{cell.title}, {outcome['table']}: {difference}"
        for cell, outcomes in results
        for outcome in outcomes
        for difference in outcome["wrong"]
    ]
    print("\n".join(wrong) or f"{len(results)} cells: as declared.")
    sys.exit(1 if wrong or not results else 0)


def _is_selected(cell: Cell, arguments: argparse.Namespace) -> bool:
    if arguments.spark and cell.release.spark != arguments.spark:
        return False
    if arguments.format and cell.release.format != arguments.format:
        return False
    if arguments.scala and cell.release.scala != arguments.scala:
        return False
    if arguments.variant:
        return cell.variant is not None and cell.variant.title == arguments.variant
    return not arguments.quick or (cell.release.quick and cell.variant is None)


def _run(cell: Cell, predicates: int, seed: int) -> list[dict[str, Any]]:
    began = time.monotonic()
    say(f"{cell.title} ...")
    outcomes = _outcomes(cell, predicates, seed)
    verdict = "not as declared" if any(outcome["wrong"] for outcome in outcomes) else "as declared"
    say(f"{cell.title}: {verdict}, {time.monotonic() - began:.0f} s")
    return outcomes


def _outcomes(cell: Cell, predicates: int, seed: int) -> list[dict[str, Any]]:
    release = cell.release
    with ENVIRONMENTS:
        python = interpreter(release.spark, release.scala)
        if release.format != "parquet":
            jars.fetch_all(release.jar)
    command = [python, ROOT / "tests" / "versions" / "story.py", release.jar]
    more = ["--predicates", str(predicates), "--seed", str(seed)]
    if cell.variant:
        more += ["--variant", cell.variant.title]
    try:
        done = subprocess.run(
            [*command, *more],
            env={**os.environ, **_variables(cell)},
            capture_output=True,
            text=True,
            timeout=60 * MINUTES,
            check=True,
        )
        return list(json.loads(done.stdout.splitlines()[-1]))
    except subprocess.CalledProcessError as failed:
        return [_failed(failed.stderr.strip().splitlines() or ["it ended without a word"])]
    except subprocess.TimeoutExpired:
        return [_failed([f"not done after {MINUTES} minutes"])]


def _variables(cell: Cell) -> dict[str, str]:
    variables = {"PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in ("python", "tests"))}
    if cell.variant and cell.variant.java:
        variables["JAVA_HOME"] = str(java_home(cell.variant.java))
    return variables


def _failed(said: Sequence[str]) -> dict[str, Any]:
    for line in said[-30:]:
        say(f"    {line}")
    return {"table": "", "rows": 0, "files": 0, "read": 0, "asked": 0, "refused": "", "wrong": [said[-1]]}


def _table(results: Sequence[tuple[Cell, Sequence[dict[str, Any]]]]) -> Table:
    table = Table("Spark", "Release", "With", "Table", "Rows", "Files read", "Queries compared", "Result")
    for cell, outcomes in results:
        for outcome in outcomes:
            table.add_row(
                cell.release.spark_title,
                cell.release.title,
                cell.variant.title if cell.variant else "",
                outcome["table"],
                str(outcome["rows"]),
                f"{outcome['read']} of {outcome['files']}",
                str(outcome["asked"]),
                _result(outcome),
            )
    return table


def _result(outcome: dict[str, Any]) -> str:
    if outcome["wrong"]:
        return f"{len(outcome['wrong'])} wrong"
    return f"refused: {outcome['refused']}" if outcome["refused"] else "as without us"


if __name__ == "__main__":
    main()
