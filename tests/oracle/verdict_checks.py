"""Runs predicates past Spark's truth, the product's verdict and what bounds prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from oracle.generate import Generator
from oracle.minimise import smallest
from oracle.report import Report, Wrong, cells_of, on_one_column
from oracle.spark_answers import matching_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from pyspark.sql import SparkSession

    from oracle.predicates import Predicate
    from oracle.tables import Subject

ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia", "Europe/Berlin")


class Pruner(Protocol):
    """Says which files a predicate reads; `looks_up` says whether it knows single values of files."""

    looks_up: bool

    def kept_files(self, predicates: Sequence[str]) -> Sequence[frozenset[str] | None]: ...


@runtime_checkable
class Matcher(Protocol):
    """Says which files match fully."""

    def fully_matching_files(self, predicates: Sequence[str]) -> Sequence[frozenset[str]]: ...


@dataclass(frozen=True)
class Conditions:
    """Settings of a session that change what a predicate means."""

    time_zone: str
    ansi: bool

    @staticmethod
    def draw(rng: Random) -> Conditions:
        """Draws a time zone and a mode of errors."""
        return Conditions(rng.choice(ZONES), rng.random() < 0.5)

    def items(self) -> tuple[tuple[str, str], ...]:
        """Returns the settings by name."""
        return (("spark.sql.session.timeZone", self.time_zone), ("spark.sql.ansi.enabled", str(self.ansi).lower()))

    def apply(self, spark: SparkSession) -> None:
        """Sets them."""
        for key, value in self.items():
            spark.conf.set(key, value)


def draw_predicates(subject: Subject, count: int, conditions: Conditions, rng: Random) -> list[Predicate]:
    """Draws predicates over a subject."""
    generator = Generator(subject, rng, ansi=conditions.ansi)
    return [generator.predicate() for _ in range(count)]


def draw_missing_kinds(
    subject: Subject, missing: frozenset[tuple[str, str]], conditions: Conditions, rng: Random
) -> list[Predicate]:
    """Draws predicates for kinds of comparison without any so far, as far as the subject has the columns."""
    generator = Generator(subject, rng, ansi=conditions.ansi)
    predicates: list[Predicate] = []
    for _ in range(4000):
        predicate = generator.leaf()
        if cells_of(predicate) & missing:
            missing -= cells_of(predicate)
            predicates.append(predicate)
    return predicates


def check_verdicts(
    spark: SparkSession,
    subject: Subject,
    predicates: Sequence[Predicate],
    pruners: dict[str, Pruner],
    conditions: Conditions,
    reports: dict[str, Report],
) -> None:
    """Adds the verdicts of every pruner on every predicate and file to its report."""
    conditions.apply(spark)
    truths = matching_files(spark, subject, [p.sql() for p in predicates])
    answered = [(p, truth) for p, truth in zip(predicates, truths, strict=True) if truth is not None]
    for source, pruner in pruners.items():
        zones_of_files = subject.zones if pruner.looks_up else subject.bounds()
        plain = {f: zones for f, zones in zones_of_files.items() if f not in subject.changed | subject.obscured}
        excluded = [frozenset(f for f, zones in plain.items() if not p.may_be(True, zones)) for p, _ in answered]  # noqa: FBT003
        report = reports[source]
        report.raised += len(predicates) - len(answered)
        verdicts = pruner.kept_files([p.sql() for p, _ in answered])
        for (predicate, truth), provable, kept_files in zip(answered, excluded, verdicts, strict=True):
            if kept_files is None:
                report.raised += 1
                continue
            assert not truth & provable, f"the oracle's own bounds are wrong: {predicate.sql()} on {subject.kind}"
            report.count(predicate, len(subject.zones), len(kept_files), len(provable), len(provable & kept_files))
            if pruner.looks_up and on_one_column(predicate):
                report.count_decided(predicate, plain.keys() - truth, kept_files)
            for file in sorted(truth - kept_files):
                part = smallest(predicate, lambda p, f=file, by=pruner: _wrong(spark, subject, p, f, by))
                report.wrong.append(Wrong(subject, part, file, source, conditions.items()))
        if isinstance(pruner, Matcher):
            _judge_matches(spark, subject, [p for p, _ in answered], pruner, report)


def _judge_matches(
    spark: SparkSession, subject: Subject, predicates: Sequence[Predicate], pruner: Matcher, report: Report
) -> None:
    """Adds the files that are said to match fully; one with a row that does not is wrong."""
    texts = [p.sql() for p in predicates]
    with_others = matching_files(spark, subject, [f"({text} IS NOT TRUE)" for text in texts])
    for text, others, matched in zip(texts, with_others, pruner.fully_matching_files(texts), strict=True):
        if others is not None:
            report.match_verdicts += len(subject.zones)
            report.matched += len(matched)
            report.wrong_matches += [f"{subject.kind}: {text} is not true of all rows of {f}" for f in matched & others]


def _wrong(spark: SparkSession, subject: Subject, predicate: Predicate, file: str, pruner: Pruner) -> bool:
    truth = matching_files(spark, subject, [predicate.sql()])[0]
    kept_files = pruner.kept_files([predicate.sql()])[0]
    return truth is not None and kept_files is not None and file in truth and file not in kept_files
