"""Rounds of the oracle: a table, its statistics, random predicates, and a verdict on every file."""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import metastore
from lakes import FORMATS
from oracle import delta, hudi, parquet, tables
from oracle.minimise import case_of
from oracle.report import REQUIRED, Report
from oracle.verdict_checks import Conditions, Pruner, check_verdicts, draw_missing_kinds, draw_predicates
from oracle.verdicts import Queries, Rules, Stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from oracle.tables import Subject


def kinds_of_session() -> tuple[str, ...]:
    """The kinds of tables of the formats that this session has; a directory of Parquet files needs none."""
    if "hudi" in FORMATS:
        return hudi.KINDS
    iceberg_kinds = tables.ICEBERG_KINDS if "iceberg" in FORMATS else ()
    delta_kinds = delta.KINDS if "delta" in FORMATS else ()
    return (*iceberg_kinds, *delta_kinds, *parquet.KINDS)


KINDS = kinds_of_session()
DISTRIBUTED = ("unsorted", "deletes", "evolved")
SOURCES = ("stored statistics", "whole queries", "rules alone", "no statistics")


@dataclass(frozen=True)
class Size:
    """How much one round asks: of the predicates, the first `queries` also go through whole queries."""

    files: int = 40
    predicates: int = 130
    queries: int = 4


@dataclass
class Campaign:
    """Rounds over one Spark session; seed and number of a round give its tables and predicates.

    Only what is asked to fill kinds of comparison that are missing depends on the rounds before.
    """

    spark: SparkSession
    scratch: Path
    seed: int
    size: Size = field(default_factory=Size)
    number: int = 0
    reports: dict[str, Report] = field(default_factory=lambda: {source: Report() for source in SOURCES})

    @property
    def verdicts(self) -> int:
        """Verdicts so far, of all sources."""
        return sum(report.verdicts for report in self.reports.values())

    @property
    def missing(self) -> frozenset[tuple[str, str]]:
        """Kinds of comparison without a predicate so far."""
        return REQUIRED - frozenset(cell for report in self.reports.values() for cell in report.cells)

    def until(self, verdicts: int, tell: Callable[[str], None] = print, minutes: float = math.inf) -> None:
        """Runs rounds, at least one of each kind of table, until there are as many verdicts or time is up."""
        first = self.number
        last = time.monotonic() + 60 * minutes
        while time.monotonic() < last and self._goes_on(self.number - first, verdicts):
            self._timed(self.number, tell)
            self.number += 1

    def _goes_on(self, number: int, verdicts: int) -> bool:
        return self.verdicts < verdicts or number < len(KINDS) or (bool(self.missing) and number < 5 * len(KINDS))

    def _timed(self, number: int, tell: Callable[[str], None]) -> None:
        began = time.monotonic()
        self.round(number)
        wrong = sum(len(report.wrong) for report in self.reports.values())
        took, kind = time.monotonic() - began, KINDS[number % len(KINDS)]
        tell(f"round {number} ({kind}): {self.verdicts} verdicts, {wrong} wrong, {took:.1f} s")

    def text(self) -> str:
        """Returns all reports."""
        cases = [case_of(wrong) for report in self.reports.values() for wrong in report.wrong[:5]]
        return "\n".join([*(f"== {source}\n{report.text()}" for source, report in self.reports.items()), *cases])

    def round(self, number: int) -> None:
        """Makes one table, judges it, and drops it."""
        rng = Random(f"{self.seed}/{number}")
        kind = KINDS[number % len(KINDS)]
        folder = self.scratch / f"round-{number}"
        if kind in parquet.KINDS:
            self._plain_parquet(kind, folder, rng)
        elif kind in delta.KINDS:
            self._delta(kind, folder, rng)
        elif kind in hudi.KINDS:
            self._hudi(f"hudi_r{self.seed}_{number}", kind, folder, rng)
        else:
            self._iceberg(f"ice.oracle.r{self.seed}_{number}", kind, folder, rng)
        shutil.rmtree(folder, ignore_errors=True)

    def _iceberg(self, name: str, kind: str, folder: Path, rng: Random) -> None:
        spark = self.spark
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.oracle")
        subject = tables.iceberg(spark, name, kind, files=self.size.files, scratch=folder, rng=rng)
        metastore.analyze(spark, name, progress=False, distribution=kind in DISTRIBUTED)
        self._stored_and_whole(subject, *identity(spark, name), Conditions.draw(rng), rng)
        spark.sql(f"DROP TABLE {name}")

    def _delta(self, kind: str, folder: Path, rng: Random) -> None:
        subject = delta.create(self.spark, kind, self.size.files, folder, rng)
        self._stored_and_whole(subject, *delta.identity(self.spark, subject), Conditions.draw(rng), rng)

    def _hudi(self, name: str, kind: str, folder: Path, rng: Random) -> None:
        subject = hudi.create(self.spark, name, kind, files=self.size.files, scratch=folder, rng=rng)
        self._stored_and_whole(subject, *hudi.identity(self.spark, subject), Conditions.draw(rng), rng)
        hudi.drop(self.spark, subject)

    def _plain_parquet(self, kind: str, folder: Path, rng: Random) -> None:
        subject = parquet.create(self.spark, kind, self.size.files, folder, rng)
        assert subject.root is not None
        conditions = Conditions.draw(rng)
        rules = {"rules alone": Rules(self.spark, subject)}
        self._judge(subject, rules, conditions, self.size.predicates // 2, rng)
        self._stored_and_whole(subject, str(subject.root), parquet.identifier(subject.root), conditions, rng)

    def _stored_and_whole(
        self, subject: Subject, location: str, uuid: str, conditions: Conditions, rng: Random
    ) -> None:
        stored = Stored(self.spark, subject, location, uuid)
        assert not stored.unknown, f"{len(stored.unknown)} of {len(subject.zones)} files have no statistics"
        self._judge(subject, {"stored statistics": stored}, conditions, self.size.predicates, rng)
        self._judge(subject, {"whole queries": Queries(self.spark, subject)}, conditions, self.size.queries, rng)
        shutil.rmtree(f"{location}/_metastore")
        self._without(subject, conditions, rng)

    def _judge(
        self, subject: Subject, pruners: dict[str, Pruner], conditions: Conditions, count: int, rng: Random
    ) -> None:
        predicates = draw_predicates(subject, count, conditions, rng)
        if "whole queries" not in pruners:
            predicates += draw_missing_kinds(subject, self.missing, conditions, Random(rng.random()))
        check_verdicts(self.spark, subject, predicates, pruners=pruners, conditions=conditions, reports=self.reports)

    def _without(self, subject: Subject, conditions: Conditions, rng: Random) -> None:
        """Asks again what bounds exclude, with the statistics deleted: then nothing may be skipped."""
        report = self.reports["no statistics"]
        queries = Queries(self.spark, subject)
        for predicate in draw_predicates(subject, self.size.queries, conditions, rng):
            sql = predicate.sql()
            if any(not predicate.may_be(True, zones) for zones in subject.zones.values()):  # noqa: FBT003
                report.count(predicate, len(subject.zones), len(subject.zones), 0, 0)
                assert not queries.skipped_files([sql])[0], f"skips without statistics: {sql}"


def identity(spark: SparkSession, name: str) -> tuple[str, str]:
    """Returns location and uuid of an Iceberg table."""
    table = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    return str(table.location()).removeprefix("file:"), str(table.uuid())
