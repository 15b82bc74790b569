"""The test suites of others, with every directory analyzed and without us: both must have the same results.

    uv run python tests/peers/run.py [--suite JoinSuite --suite 'golden-*'] [--off-again] \
        [--delta-sources DIR] [--iceberg-sources DIR]

Spark's suites come as the jars of tests that Spark publishes. Delta and Iceberg publish none: their suites are compiled
from checkouts of their sources, Delta's tag v4.4.0 and Iceberg's tag apache-iceberg-1.11.0, and left out where none is
named. Results without us are kept and taken again. Prints one table; what is under way goes to stderr. Exits with 1
where a test has another result with us than without us and `explained.json` does not say why.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import delta_sources
import iceberg_sources
from environment import EnvironmentMissing, prepare, say
from rich.console import Console
from rich.table import Table
from suite_run import Suite, SuiteRun, results_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from environment import CompiledSuites, Environment

HERE = Path(__file__).resolve().parent
BY_CBO = "the same without us where Spark's cost-based optimizer is on, which our extension switches on"
SOURCES = {"delta": delta_sources.compile_suites, "iceberg": iceberg_sources.compile_suites}
"""What compiles the suites of projects that publish none."""
NOT_RUN = "(the run itself)"
"""A test by the name of which `TestLog` says that the suite could not be run."""
NOT_REACHED = "not run"
"""The result of a test that a run ended before."""


@dataclass(frozen=True)
class Explanation:
    """Why a test has another result with us.

    Attributes:
        suite: Its name in `suites.json`.
        test: Its name; that of a method of JUnit's stands for all its parameters.
        says: A part of the message of its failure: another failure of the same test is not explained.
        why: The reason.
    """

    suite: str
    test: str
    says: str
    why: str


@dataclass(frozen=True)
class Difference:
    """A test that has another result with us than without us."""

    suite: str
    test: str
    off: str
    on: str
    message: str
    why: str = ""

    def __str__(self) -> str:
        text = f"{self.suite}: {self.test}: {self.off} without us, {self.on} with us"
        return text + (f"\n    {self.message}" if self.message else "")


def main() -> None:
    """Runs the suites that the command line names."""
    arguments = _parse_arguments()
    suites = _select_suites(arguments)
    if arguments.list:
        print("\n".join(suite.name for suite in suites))
        return
    try:
        environment = prepare()
        compiled = _compile_suites(suites, arguments, environment)
    except EnvironmentMissing as error:
        sys.exit(str(error))
    explanations = _read_explanations()
    table = _empty_table()
    unexplained: list[Difference] = []
    for suite in suites:
        off, on = _run_both_ways(suite, compiled.get(suite.sources), environment, arguments)
        differences = compare(suite.name, off.tests, on.tests, explanations)
        differences = explain_by_cbo(
            differences, on.tests, _run_with_cbo(suite, differences, off, environment, arguments)
        )
        unexplained += _report_unexplained(differences)
        table.add_row(*_cells(suite.name, off, on, differences))
    Console(width=None if sys.stdout.isatty() else 160).print(table)
    print("\n".join(describe(unexplained)) or "Every difference is explained.")
    print(f"Results and logs: {results_folder()}")
    sys.exit(1 if unexplained or not suites else 0)


def _run_both_ways(
    suite: Suite,
    compiled: CompiledSuites | None,
    environment: Environment,
    arguments: argparse.Namespace,
) -> tuple[SuiteRun, SuiteRun]:
    off = SuiteRun(suite, with_us=False, compiled=compiled)
    off.results(environment, arguments.minutes, again=arguments.off_again)
    on = SuiteRun(suite, with_us=True, compiled=compiled)
    on.results(environment, arguments.minutes, again=True)
    return off, on


def _run_with_cbo(
    suite: Suite,
    differences: Sequence[Difference],
    off: SuiteRun,
    environment: Environment,
    arguments: argparse.Namespace,
) -> dict[str, dict[str, str]]:
    """Returns the results of the unexplained tests without us and with Spark's cost-based optimizer."""
    names = [difference.test for difference in differences if not difference.why and difference.test != NOT_RUN]
    if not names:
        return {}
    run = SuiteRun(replace(suite, tests=tuple(names)), with_us=False, with_cbo=True, compiled=off.compiled)
    return run.results(environment, arguments.minutes, again=True).tests


def explain_by_cbo(
    differences: Sequence[Difference],
    on: dict[str, dict[str, str]],
    with_cbo: dict[str, dict[str, str]],
) -> list[Difference]:
    """Explains the tests that fail in the same way without us where Spark's cost-based optimizer is on."""
    explained = []
    for difference in differences:
        result = with_cbo.get(difference.test)
        ours = on.get(difference.test)  # none if the run was ended before it
        if not difference.why and result is not None and ours is not None and _fails_alike(result, ours):
            explained.append(replace(difference, why=BY_CBO))
        else:
            explained.append(difference)
    return explained


def _fails_alike(failure: dict[str, str], other: dict[str, str]) -> bool:
    """Whether two results and the first lines of their messages are equal, apart from the numbers of expressions."""
    return failure["result"] == other["result"] == "failed" and _first_line(failure) == _first_line(other)


def _first_line(result: dict[str, str]) -> str:
    line = result.get("message", "").partition("\n")[0]
    return re.sub(r"#\d+", "#", line)


def _report_unexplained(differences: Sequence[Difference]) -> list[Difference]:
    unexplained = [difference for difference in differences if not difference.why]
    for line in describe(unexplained):
        say(f"  not explained: {line}")
    return unexplained


def describe(differences: Sequence[Difference]) -> list[str]:
    """Returns a text for each difference, and one a suite for its tests that one of the two runs did not reach."""
    compared = [difference for difference in differences if NOT_REACHED not in (difference.off, difference.on)]
    missed = Counter(difference.suite for difference in differences if difference not in compared)
    return [
        *map(str, compared),
        *(f"{suite}: {count} tests were run in one way alone (see --minutes)" for suite, count in missed.items()),
    ]


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="append", default=[], help="this suite alone, or those of a pattern")
    parser.add_argument("--list", action="store_true", help="print the names of the suites")
    parser.add_argument("--off-again", action="store_true", help="run without us too where results are kept")
    for sources in SOURCES:
        text = f"folder of a checkout of {sources.capitalize()}: its suites are run too"
        parser.add_argument(f"--{sources}-sources", type=Path, help=text)
    parser.add_argument("--minutes", type=float, default=60, help="that one run of one suite may take")
    return parser.parse_args()


def _select_suites(arguments: argparse.Namespace) -> list[Suite]:
    suites = _read_suites()
    for pattern in arguments.suite:
        if not any(fnmatch(suite.name, pattern) for suite in suites):
            sys.exit(f"no suite is named {pattern}; --list prints their names")
    if arguments.suite:
        suites = [suite for suite in suites if any(fnmatch(suite.name, pattern) for pattern in arguments.suite)]
    if arguments.list:
        return suites
    checkouts = _checkouts(arguments)
    return [suite for suite in suites if not suite.sources or suite.sources in checkouts]


def _checkouts(arguments: argparse.Namespace) -> dict[str, Path]:
    """Returns the checkouts that the command line names."""
    named = {sources: getattr(arguments, f"{sources}_sources") for sources in SOURCES}
    return {sources: checkout.resolve() for sources, checkout in named.items() if checkout is not None}


def _read_suites() -> list[Suite]:
    return [Suite.parse(entry) for entry in json.loads((HERE / "suites.json").read_text("utf-8"))]


def _compile_suites(
    suites: Sequence[Suite],
    arguments: argparse.Namespace,
    environment: Environment,
) -> dict[str, CompiledSuites]:
    """Compiles all suites of the sources that the suites come from, so that a run takes what another compiled."""
    compiled = {}
    for sources, checkout in _checkouts(arguments).items():
        if any(suite.sources == sources for suite in suites):
            classes = [suite.class_name for suite in _read_suites() if suite.sources == sources]
            compiled[sources] = SOURCES[sources](checkout, classes, environment)
    return compiled


def _read_explanations() -> list[Explanation]:
    entries = json.loads((HERE / "explained.json").read_text("utf-8"))
    return [
        Explanation(suite=entry["suite"], test=test, says=entry.get("says", ""), why=entry["why"])
        for entry in entries
        for test in entry["tests"]
    ]


def compare(
    suite: str,
    off: dict[str, dict[str, str]],
    on: dict[str, dict[str, str]],
    explanations: Sequence[Explanation],
) -> list[Difference]:
    """Returns the tests that have another result in one run than in the other, explained where an explanation fits."""
    differences = []
    for test in {**off, **on}:
        result_off = off.get(test, {}).get("result", NOT_REACHED)
        result_on = on.get(test, {}).get("result", NOT_REACHED)
        if result_off == result_on and test != NOT_RUN:
            continue
        message = on.get(test, {}).get("message", "")
        fitting = [entry.why for entry in explanations if _explains(entry, suite, test, message)]
        short = "\n    ".join(message.splitlines()[:4])
        differences.append(
            Difference(suite=suite, test=test, off=result_off, on=result_on, message=short, why="".join(fitting[:1]))
        )
    return differences


def _explains(explanation: Explanation, suite: str, test: str, message: str) -> bool:
    method = test.partition(" #")[0]  # of JUnit, without the number of its parameters
    return explanation.suite == suite and explanation.test in (test, method) and explanation.says in message


def _empty_table() -> Table:
    return Table(
        *("Suite", "Tests", "Passed off, on", "Fail both ways", "Differ", "Explained", "Seconds off, on"),
        *("Analyzed", "Queries", "Pruned, answered, by join"),
    )


def _cells(name: str, off: SuiteRun, on: SuiteRun, differences: Sequence[Difference]) -> list[str]:
    failed_both = len(off.failed & on.failed)
    explained = sum(1 for difference in differences if difference.why)
    counts = on.counts
    acted = ", ".join(
        str(counts.get(key, 0)) for key in ("scans pruned", "scans answered", "scans with keys of a join")
    )
    return [
        name,
        str(len(on.tests)),
        f"{off.passed}, {on.passed}",
        str(failed_both),
        str(len(differences)),
        str(explained),
        f"{off.seconds:.0f}, {on.seconds:.0f}",
        f"{counts.get('analyzed', 0)}" + (f", {counts['not analyzed']} not" if counts.get("not analyzed") else ""),
        str(counts.get("queries", 0)),
        acted,
    ]


if __name__ == "__main__":
    main()
