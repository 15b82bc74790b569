"""The questions for each mutant: filters and others over small tables, with the right answers by their rows."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from metastore.format.object_layout import ZONE_FILES
from metastore.jvm_session import find_shim_package
from mutation import partial, queries, rows
from oracle import parquet, tables
from oracle.report import REQUIRED, cells_of
from oracle.run import identity
from oracle.spark_answers import matching_files
from oracle.verdict_checks import Conditions, draw_missing_kinds, draw_predicates
from oracle.verdicts import GONE, Rules, Stored
from planner import plans
from pruning import test_intersections as pairs
from pruning import test_zones, zoned
from rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from oracle.tables import Subject

CASES = Path(__file__).parents[1] / "cases" / "pruning.json"
VERDICTS = {
    "skip": "skip",
    "only_spark": "skip",
    "keep": "keep",
    "only_python": "keep",
    "all": "all",
    "stays": "kept, perhaps with all rows",
}
"""What comes out of the filters in a case, by the names of their lists."""
ALL = (1 << 63) - 1
LOSSES: tuple[dict[str, Any], ...] = (
    {"lo": None}, {"hi": None}, {"lo": None, "hi": None}, {"nulls": None}, {"nans": None},
    {"lo_exact": False}, {"hi_exact": False}, {"lo_exact": False, "hi_exact": False},
    {"lo": None, "nulls": None}, {"hi": None, "nulls": None},
)  # fmt: skip
"""What may be unknown of a column of a file, or not exact."""
GROUPED = ("Candidates.scala", "Condition.scala", "ConjunctFilter.scala", "Evaluation.scala", "ValueLookups.scala")
"""Sources of what judges many files at once."""
MANY = 16_400
FEW = 40
"""So many values may be asked where the allowance is what is tried."""


@dataclass(frozen=True)
class Suite:
    """Questions that one call answers, a line each; `wrong` says whether rows disprove a line.

    `only` names the sources whose mutants it is for, where it takes too long for all.
    """

    name: str
    ask: Callable[[], str]
    wrong: Callable[[int, str], bool]
    conf: tuple[tuple[str, str], ...] = ()
    questions: Sequence[str] = ()
    only: tuple[str, ...] = ()

    def answers(self, spark: SparkSession) -> list[str]:
        """Asks under its settings."""
        with plans.conf(spark, **dict(self.conf)):
            return self.ask().split("\n")


@dataclass(frozen=True)
class Truth:
    """The files with a row for which a filter is true, and those with a row for which it is not: a `1` for each."""

    matching: str
    not_matching: str

    def denies(self, answer: str) -> bool:
        """Tells whether an answer skips a file with a matching row, or has one match fully that has another row."""
        read, _, full = answer.partition(" ")
        if len(read) != len(self.matching) or len(full) != len(self.not_matching):
            return True
        skipped = any(k == "0" and m == "1" for k, m in zip(read, self.matching, strict=True))
        return skipped or any(f == "1" and o == "1" for f, o in zip(full, self.not_matching, strict=True))


def texts(spark: SparkSession, lines: Sequence[str]) -> Any:
    """Returns lines as the shim takes them."""
    array = spark._sc._gateway.new_array(spark._jvm.java.lang.String, len(lines))
    for i, line in enumerate(lines):
        array[i] = line
    return array


def list_suites(spark: SparkSession, scratch: Path, seed: int, predicates: int, sources: set[str]) -> Iterator[Suite]:
    """Yields all suites for mutants of some sources, the quickest first; without predicates only the quick ones."""
    cells: set[tuple[str, str]] = set()
    yield from case_suites(spark)
    yield from partial.make_suites(spark, Random(seed), scratch / "partial")
    yield from rows.few_file_suites(spark, Random(seed))
    yield from pair_suites(spark)
    if not sources.isdisjoint(GROUPED):
        yield from many_file_suites(spark)
        yield from group_suites(spark, scratch / "groups")
    if "FileMeasures.scala" in sources:
        yield from rows.many_value_suites(spark, scratch / "many")
    if "ValueLookups.scala" in sources:
        yield from rows.many_point_suites(spark, scratch / "points")
    for number, kind in enumerate(("parquet", "parquet partitioned")):
        rng = Random(f"{seed}/{number}")
        subject = parquet.create(spark, kind, 40, scratch / f"{number}", rng)
        from_data = Rules(spark, subject)
        stored = Stored(spark, subject, str(subject.root), parquet.identifier(subject.root))
        if number == 0:
            yield from rows.make_suites(
                spark, subject, probe=from_data.probe, files=from_data.files, source="given", rng=rng
            )
        paths = subject.paths()
        files = [paths.get(path, GONE) for path in stored.probe.paths()]
        if number == 1:
            yield from rows.make_suites(spark, subject, probe=stored.probe, files=files, source="stored", rng=rng)
        if predicates:
            yield from filter_suites(
                spark,
                subject,
                pruners={"given": from_data, "stored": stored},
                count=predicates,
                rng=rng,
                asked_before=cells,
            )
    yield from queries.make_suites(spark, scratch / "queries", sources)
    if not predicates:
        return
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.oracle")
    rng = Random(f"{seed}/unsorted")
    subject = tables.iceberg(spark, "ice.oracle.mutation", "unsorted", files=80, scratch=scratch / "unsorted", rng=rng)
    import metastore  # noqa: PLC0415 - Spark is there by now

    metastore.analyze(spark, "ice.oracle.mutation", progress=False, distribution=True)
    stored = Stored(spark, subject, *identity(spark, "ice.oracle.mutation"))
    paths = subject.paths()
    files = [paths.get(path, GONE) for path in stored.probe.paths()]
    yield from rows.make_suites(spark, subject, probe=stored.probe, files=files, source="analyzed", rng=rng)
    yield from filter_suites(
        spark, subject, pruners={"unsorted": stored}, count=predicates, rng=rng, asked_before=cells
    )


def case_suites(spark: SparkSession) -> Iterator[Suite]:
    """The cases that are data: each says what has to come out."""
    probes = find_shim_package(spark).pruning.PruningProbe
    cases = json.loads(CASES.read_text()) + [rule.case for rule in RULES]
    for case in cases:
        conf = tuple(case.get("conf", {}).items())
        expected_verdicts = [(text, verdict) for listed, verdict in VERDICTS.items() for text in case.get(listed, [])]
        is_sound = "contradiction" not in case["name"]  # which less knowledge may resolve
        zones = [case["zone"], *(weaker(case["zone"]) if is_sound else ())]
        with plans.conf(spark, **dict(conf)):
            probe = probes.ofZones(spark._jsparkSession, case["schema"], json.dumps(zones))
            prepared = probe.prepare(texts(spark, [text for text, _ in expected_verdicts]))
        truths = [
            Truth(str(int(v != "skip")) * len(zones), str(int(v in ("skip", "keep"))) * len(zones))
            for _, v in expected_verdicts
        ]
        # As it is written a condition may tell more than the optimizer leaves of it.
        certain = [
            Truth(str(int(v == "all")) * len(zones), str(int(v == "skip")) * len(zones)) for _, v in expected_verdicts
        ]
        questions = [text for text, _ in expected_verdicts]
        name = f"case {case['name']}"
        yield Suite(
            name,
            ask=lambda p=prepared: p.verdicts(ALL),
            wrong=lambda i, a, t=truths: t[i].denies(a),
            conf=conf,
            questions=questions,
        )
        written = probe.prepareAsWritten(texts(spark, questions))
        yield Suite(
            f"{name}, as written",
            ask=lambda p=written: p.verdicts(ALL),
            wrong=lambda i, a, t=certain: t[i].denies(a),
            conf=conf,
            questions=questions,
        )
        yield Suite(f"{name}, told", ask=prepared.explained, wrong=is_error, conf=conf, questions=questions)


def weaker(zone: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields what is known of a file with less known of its columns, or of one of them."""
    columns = zone["columns"]
    for chosen in ({*columns}, *({name} for name in columns if len(columns) > 1)):
        for loss in LOSSES:
            weaker_columns = {
                name: {**column, **loss} if name in chosen else column for name, column in columns.items()
            }
            present = {
                name: {key: value for key, value in column.items() if value is not None}
                for name, column in weaker_columns.items()
            }
            yield {**zone, "columns": present}


def pair_suites(spark: SparkSession) -> Iterator[Suite]:
    """Two conditions on one column, over small files of every kind."""
    probes = find_shim_package(spark).pruning.PruningProbe
    for kind in pairs.KINDS:
        files = [rows for n in (1, 2, 3) for rows in itertools.combinations((*kind.values, None), n)]
        zones = json.dumps([pairs.zone(file, kind) for file in files])
        both = list(itertools.combinations(pairs.atoms(kind), 2))[::7]
        probe = probes.ofZones(spark._jsparkSession, f"v {kind.type}", zones)
        questions = [f"{a.text} AND {b.text}" for a, b in both]
        prepared = probe.prepare(texts(spark, questions))
        truths = [_truth_of_pair(a, b, files) for a, b in both]
        name = f"pairs {kind.type}"
        yield Suite(
            name,
            ask=lambda p=prepared: p.verdicts(ALL),
            wrong=lambda i, a, t=truths: t[i].denies(a),
            questions=questions,
        )


def _truth_of_pair(a: pairs.Atom, b: pairs.Atom, files: Sequence[tuple]) -> Truth:
    def matches(value: Any) -> bool:
        return (a.of_null and b.of_null) if value is None else a.true(value) and b.true(value)

    return Truth(
        "".join(str(int(any(map(matches, file)))) for file in files),
        "".join(str(int(not all(map(matches, file)))) for file in files),
    )


def group_suites(spark: SparkSession, folder: Path) -> Iterator[Suite]:
    """Many files that are judged in groups first: none may be skipped that is not skipped alone."""
    files, summary = zoned.random_block(1, test_zones.FILES)
    probes = []
    for name, least in (("zoned", zoned.SMALL), ("plain", zoned.NEVER)):
        zoned.write(folder / name, files, summary, least)
        probes.append(test_zones.probe_of(spark, folder / name))
    questions = test_zones.conditions(1)[::15]
    alone = probes[1].prepare(texts(spark, questions)).verdicts(ALL).split("\n")
    truths = [Truth(kept_bits, "".join("01"[bit == "0"] for bit in full)) for kept_bits, full in map(str.split, alone)]
    prepared = probes[0].prepare(texts(spark, questions))
    yield Suite(
        "groups",
        ask=lambda: prepared.verdicts(ALL),
        wrong=lambda i, a: truths[i].denies(a),
        conf=(),
        questions=questions,
        only=GROUPED,
    )
    zoned.write(folder / "known", *zoned.random_block(1, 20 * ZONE_FILES, few=0), zoned.SMALL)
    probe_with_groups = test_zones.probe_of(spark, folder / "known")

    def at(zone: float) -> int:
        return 10 * int(ZONE_FILES * zone) - 5 * 20 * ZONE_FILES

    conditions = [
        f"c0 > {at(0.5)}L AND c3 = {at(18.5)}BD / 100",  # the first files: one excludes each, the other all
        f"c0 > {at(0.5)}L AND c3 >= {at(5)}BD / 100",  # more than few are left
        f"c0 = {test_zones.NEVER_THERE}L AND c3 > 1 AND hash(c0, c4) = 1",  # none is left
    ]
    explained = probe_with_groups.prepare(texts(spark, conditions)).explained
    yield Suite("groups, told", ask=explained, wrong=is_error, conf=(), questions=conditions, only=GROUPED)


def many_file_suites(spark: SparkSession) -> Iterator[Suite]:
    """Yields filters over more files than single values are looked up in: file i has rows of i and of i + 1."""
    zones = [{"rows": 2, "columns": {"a": {"lo": str(i), "hi": str(i + 1), "nulls": 0}}} for i in range(MANY)]
    probe = find_shim_package(spark).pruning.PruningProbe.ofZones(spark._jsparkSession, "a INT", json.dumps(zones))
    conditions: dict[str, Callable[[int], bool]] = {
        "a >= 3": lambda a: a >= 3,
        "a >= 0 AND a <> 5": lambda a: a != 5,
        "a IN (7, 9)": lambda a: a in {7, 9},
        f"a < {MANY} OR a = 5": lambda a: a < MANY,
    }
    truths = [
        Truth(
            "".join("01"[true(i) or true(i + 1)] for i in range(MANY)),
            "".join("10"[true(i) and true(i + 1)] for i in range(MANY)),
        )
        for true in conditions.values()
    ]
    prepared = probe.prepare(texts(spark, list(conditions)))
    yield Suite(
        "many files",
        ask=lambda: prepared.verdicts(ALL),
        wrong=lambda i, a: truths[i].denies(a),
        conf=(),
        questions=list(conditions),
        only=GROUPED,
    )


def filter_suites(
    spark: SparkSession,
    subject: Subject,
    pruners: dict[str, Rules | Stored],
    count: int,
    rng: Random,
    asked_before: set[tuple[str, str]],
) -> Iterator[Suite]:
    """Yields random filters over a random table, and new kinds of comparison; Spark says which rows match."""
    conditions = Conditions.draw(rng)
    predicates = draw_predicates(subject, count, conditions, rng)
    predicates += draw_missing_kinds(subject, REQUIRED - asked_before, conditions, Random(rng.random()))
    asked_before |= {cell for predicate in predicates for cell in cells_of(predicate)}
    conditions.apply(spark)
    texts_of_predicates = [p.sql() for p in predicates]
    answers = matching(spark, subject, texts_of_predicates)
    questions = list(answers)
    for source, pruner in pruners.items():
        truths = truths_of(answers, pruner.files)
        prepared = pruner.probe.prepare(texts(spark, questions))

        def wrong(i: int, answer: str, truths: Sequence[Truth] = truths) -> bool:
            return truths[i].denies(answer)

        name = f"{subject.kind}, {source}"
        yield Suite(
            name, ask=lambda p=prepared: p.verdicts(ALL), wrong=wrong, conf=conditions.items(), questions=questions
        )
        yield Suite(
            f"{name}, few values",
            ask=lambda p=prepared: p.verdicts(FEW),
            wrong=wrong,
            conf=conditions.items(),
            questions=questions,
        )
        few = pruner.probe.prepare(texts(spark, questions[:40]))
        yield Suite(f"{name}, told", ask=few.explained, wrong=is_error, conf=conditions.items(), questions=questions)


Matching = dict[str, tuple[frozenset[str], frozenset[str]]]
"""Of conditions the files with a row for which each is true, and those with a row for which it is not."""


def matching(spark: SparkSession, subject: Subject, conditions: Sequence[str]) -> Matching:
    """Returns what Spark says, of the conditions that it answers."""
    matching_by_condition = matching_files(spark, subject, conditions)
    others_by_condition = matching_files(spark, subject, [f"(({text}) IS NOT TRUE)" for text in conditions])
    return {
        text: (m, o)
        for text, m, o in zip(conditions, matching_by_condition, others_by_condition, strict=True)
        if m is not None and o is not None
    }


def truths_of(answers: Matching, files: Sequence[str]) -> list[Truth]:
    """Returns the same of some files, in their order."""
    return [Truth(_bits(files, m), _bits(files, o)) for m, o in answers.values()]


def _bits(files: Sequence[str], subset: frozenset[str]) -> str:
    return "".join("1" if file in subset else "0" for file in files)


def is_error(_: int, answer: str) -> bool:
    """Tells whether something was thrown."""
    return answer.startswith("error")
