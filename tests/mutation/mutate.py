"""Mutation tests of the pruning rules: what the tests would not notice if a rule were another.

    uv run python tests/mutation/mutate.py
    uv run python tests/mutation/mutate.py --files 'TopRows|LimitedFiles' --minutes 10
    uv run python tests/mutation/mutate.py --predicates 100

Every mutant changes one expression of the shim's rules. The first suite that notices kills it: as `wrong` if a file is
skipped, or said to match fully, that rows disprove, and as `weaker` if anything else comes out than without it. Asked
are the cases of tests/cases, files of which a part is known, groups of files, and queries of the sources that queries
alone reach; with --predicates random filters over random tables as well, which take longer than all of these. Not asked
are those that equivalent.json lists, with the reason of each, unless --listed says so. Exits with 1 if one survives
that is not listed, or if a rule is wrong without any mutant.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from mutation.mutator import Mutant
    from mutation.suites import Suite

OUTCOMES = ("wrong", "weaker", "survived", "not covered", "equivalent")
SLACK = 1_000_000
"""A mutant may ask so many questions more than ten times what is usual before it counts as endless."""


@dataclass
class Runner:
    """One Spark session with all mutants; what the rules answer without any is what others are compared with."""

    spark: SparkSession
    suites: Sequence[Suite]
    switch: Any
    usual: dict[str, list[str]] = field(default_factory=dict)
    reached: dict[str, str] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)

    def begin(self) -> list[str]:
        """Asks everything without a mutant, and returns the answers that rows disprove."""
        wrong = []
        for suite in self.suites:
            self.switch.turnOn(-1, 1 << 62)
            self.usual[suite.name] = suite.answers(self.spark)
            self.asked[suite.name] = (1 << 62) - self.switch.questionsLeft()
            self.reached[suite.name] = self.switch.reachedBits()
            assert suite.answers(self.spark) == self.usual[suite.name], f"{suite.name} has other answers each time"
            answers = enumerate(self.usual[suite.name])
            wrong += [f"{suite.name}: {suite.questions[i]}: {a}" for i, a in answers if suite.wrong(i, a)]
        return wrong

    def outcome(self, number: int, file: str) -> str:
        """Returns what becomes of a mutant of a source, by the first suite that kills it."""
        outcome = "not covered"
        for suite in self.suites:
            if self.reached[suite.name][number] == "1" and (file in suite.only or not suite.only):
                outcome = self._of_suite(suite, number)
                if outcome != "survived":
                    break
        return outcome

    def _of_suite(self, suite: Suite, number: int) -> str:
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - Spark is there by now
        from pyspark.errors import PySparkException  # noqa: PLC0415 - as above

        self.switch.turnOn(number, 10 * self.asked[suite.name] + SLACK)
        try:
            answers = suite.answers(self.spark)
        except (Py4JJavaError, PySparkException):
            return "wrong"  # an endless loop, or an error that would have ended the query
        finally:
            self.switch.turnOn(-1, 1 << 62)
        usual = self.usual[suite.name]
        other = [i for i, (a, b) in enumerate(zip(answers, usual, strict=False)) if a != b]
        if any(suite.wrong(i, answers[i]) for i in other):
            return "wrong"
        return "weaker" if other or len(answers) != len(usual) else "survived"


def equivalents() -> dict[tuple[str, str, str], str]:
    """Returns the mutants that change nothing, each with the reason."""
    listed = json.loads((HERE / "equivalent.json").read_text("utf-8"))
    return {
        (entry["file"], source, change): entry["why"]
        for entry in listed
        for source, changes in entry["mutants"].items()
        for change in changes
    }


def main() -> int:
    """Runs all mutants and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", default="", help="a regular expression: only sources of such names")
    parser.add_argument("--limit", type=int, default=sys.maxsize, help="at most so many mutants, chosen at random")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no mutant after these")
    parser.add_argument("--seed", type=int, default=20, help="of the random tables and filters")
    parser.add_argument(
        "--predicates", type=int, default=0, help="ask so many random filters of each of three random tables too"
    )
    parser.add_argument("--again", type=Path, help="only mutants that survived in this file, which --json wrote")
    parser.add_argument("--listed", action="store_true", help="ask the mutants that equivalent.json lists, too")
    parser.add_argument("--json", type=Path, help="write the outcome of every mutant to this file too")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # that Spark refuses a condition is no news here
    from mutation import build, suites  # noqa: PLC0415 - the path is set above

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutation-") as scratch:
        chosen = build.sources(arguments.files)
        sources = {source.name for source in chosen}
        made = build.build(chosen)
        tell(f"{len(made.mutants)} mutants compiled, {made.refused} are no Scala, {minutes(began)}")
        session = _session(Path(scratch), made.classes)
        chosen_suites = list(
            suites.list_suites(session, Path(scratch) / "tables", arguments.seed, arguments.predicates, sources)
        )
        runner = Runner(session, chosen_suites, build.switch(session))
        wrong = runner.begin()
        question_count = sum(map(len, runner.usual.values()))
        size = f"{len(chosen_suites)} suites of {question_count} questions"
        tell(f"{size}, {len(wrong)} wrong without a mutant, {minutes(began)}")
        for line in wrong:
            tell(f"wrong without a mutant: {line}")
        mutants = survivors(made.mutants, arguments.again) if arguments.again else made.mutants
        outcomes = run_mutants(
            runner, mutants, arguments.limit, began + 60 * arguments.minutes, ask_listed=arguments.listed
        )
        session.stop()
    report(outcomes, began)
    if arguments.json:
        rows = [{**vars(mutant), "outcome": outcome} for mutant, outcome in outcomes]
        arguments.json.write_text(json.dumps(rows, indent=1))
    return int(bool(wrong) or any(outcome in {"survived", "not covered"} for _, outcome in outcomes))


def survivors(mutants: dict[int, Mutant], earlier: Path) -> dict[int, Mutant]:
    """Returns the mutants without those that were killed earlier; those that are new are among them."""
    earlier_mutants = json.loads(earlier.read_text())
    named = [
        ((m["file"], m["source"], f"{m['before']} -> {m['after']}"), m["outcome"] in OUTCOMES[:2])
        for m in earlier_mutants
    ]
    killed = {key for key, was_killed in named if was_killed} - {key for key, was_killed in named if not was_killed}
    return {number: mutant for number, mutant in mutants.items() if mutant.key not in killed}


def run_mutants(
    runner: Runner, mutants: dict[int, Mutant], limit: int, until: float, *, ask_listed: bool
) -> list[tuple[Mutant, str]]:
    """Returns the outcome of each mutant that there is time for; an equivalent one runs only if another has its key."""
    listed, counts = equivalents(), Counter(mutant.key for mutant in mutants.values())
    chosen = list(mutants)
    Random(0).shuffle(chosen)  # those that there is time for stand for all
    chosen = chosen[:limit]
    outcomes: list[tuple[Mutant, str]] = []
    for position, number in enumerate(chosen):
        if time.monotonic() > until:
            tell(f"time is up after {position} of {len(chosen)} mutants")
            break
        mutant = mutants[number]
        is_known = mutant.key in listed and counts[mutant.key] == 1 and not ask_listed
        outcome = "equivalent" if is_known else runner.outcome(number, mutant.file)
        if outcome in {"survived", "not covered"} and mutant.key in listed:
            outcome = "equivalent"
        outcomes.append((mutant, outcome))
        if outcome in {"survived", "not covered"}:
            tell(f"{outcome}: {mutant}")
        if position % 50 == 49:
            tell(f"{position + 1} of {len(chosen)}: {shares(outcome for _, outcome in outcomes)}")
    return sorted(outcomes, key=lambda of: (of[0].file, of[0].line))


def shares(outcomes: Iterable[str]) -> str:
    """Returns how many mutants came to each end."""
    counted = Counter(outcomes)
    killed = counted["wrong"] + counted["weaker"]
    decided = killed + counted["survived"] + counted["not covered"]
    parts = ", ".join(f"{counted[name]} {name}" for name in OUTCOMES if counted[name])
    return f"killed {killed / max(decided, 1):.1%} ({parts})"


def report(outcomes: Sequence[tuple[Mutant, str]], began: float) -> None:
    """Prints the share of every file, and who survived."""
    for file in sorted({mutant.file for mutant, _ in outcomes}):
        print(f"{file}: {shares(outcome for mutant, outcome in outcomes if mutant.file == file)}")
    for name in ("survived", "not covered"):
        print(*(f"{name}: {mutant}" for mutant, outcome in outcomes if outcome == name), sep="\n")
    print(f"{len(outcomes)} mutants, {shares(outcome for _, outcome in outcomes)}, {minutes(began)}")


def tell(line: str) -> None:
    """Shows progress."""
    print(line, file=sys.stderr, flush=True)


def minutes(since: float) -> str:
    """Returns how long that is ago."""
    return f"{(time.monotonic() - since) / 60:.1f} min"


def _session(scratch: Path, classes: Path) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - --help does without

    from lakes import ONE_COMPILER, session_conf  # noqa: PLC0415 - as above

    (scratch / "tables").mkdir()
    builder = SparkSession.builder.appName("mutation")
    settings = session_conf(scratch, scratch / "warehouse")
    options = settings["spark.driver.extraJavaOptions"].replace(ONE_COMPILER, "")  # the rules run often here
    settings |= {"spark.driver.extraJavaOptions": options, "spark.metastore.aggregates.enabled": "true"}
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.config("spark.driver.extraClassPath", str(classes)).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


if __name__ == "__main__":
    sys.exit(main())
