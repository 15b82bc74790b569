"""The behaviours of each table format on each Spark, and their gaps, as docs/gaps.json lists them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from metastore import jars

DECLARED = json.loads((Path(__file__).parents[1] / "docs" / "gaps.json").read_text("utf-8"))


@dataclass(frozen=True)
class Release:
    """A release of a table format on a Spark.

    Attributes:
        spark: Release line of Spark.
        scala: The Scala of that Spark where it is not that of its PySpark.
        jar: Its name in `jars.lock`; of plain Parquet files, which Spark reads itself, a name of ours.
        quick: Whether the quick half of the matrix has it: the oldest of Spark 3.5, and the newest Spark.
        refused: What is said where it cannot be used; empty where it can.
        kinds_refused: The kinds of table alone that cannot be used, each with what is said.
    """

    format: str
    version: str
    spark: str
    jar: str
    scala: str = ""
    quick: bool = False
    refused: str = ""
    kinds_refused: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def title(self) -> str:
        """The format and its release, as people call them."""
        return f"{self.format.capitalize()} {self.version}".strip()

    @property
    def spark_title(self) -> str:
        """The line of Spark, and its Scala where that is another one than PySpark's."""
        return f"{self.spark} (Scala {self.scala})" if self.scala else self.spark


@dataclass(frozen=True)
class Variant:
    """Something else than usual that a release is tested with.

    Attributes:
        jars: Of the releases that are tested with it.
        java: Version of Java; that of the machine where it is empty.
        beside: A jar of `jars.lock` that Spark has on its class path.
        conf: Settings of Spark.
        refused: A part of what is said where tables cannot be used with it; empty where they can.
    """

    title: str
    jars: tuple[str, ...]
    java: str = ""
    beside: str = ""
    conf: dict[str, str] = field(default_factory=dict, hash=False)
    refused: str = ""


@dataclass(frozen=True)
class TestedTarget:
    """A table format on a Spark, as it is tested."""

    __test__ = False

    format: str
    title: str
    spark: str


@dataclass(frozen=True)
class Gap:
    """Something that does not work.

    Attributes:
        behaviour: One of `BEHAVIOURS`.
        sparks: On which Sparks.
        when: Whether it will ever: "never" or "not yet".
        reason: Why, as a sentence without its full stop.
        raised: The code of the error that says so, ours or Spark's; None where queries run as without us.
    """

    behaviour: str
    format: str
    sparks: list[str] = field(hash=False)
    when: str
    reason: str
    raised: str | None = None


BEHAVIOURS: dict[str, str] = DECLARED["behaviours"]
RELEASES = tuple(Release(**entry) for entry in DECLARED["releases"])
PARQUET = (
    *(
        Release(format="parquet", version="", spark=line, jar=f"parquet-{line}", quick=line == jars.LINES[-1])
        for line in jars.LINES
    ),
    Release(format="parquet", version="", spark="3.5", scala="2.13", jar="parquet-3.5_2.13"),
)
VARIANTS = tuple(Variant(**{**entry, "jars": tuple(entry["jars"])}) for entry in DECLARED["variants"])
TARGETS = tuple(TestedTarget(**entry) for entry in DECLARED["targets"])
GAPS = tuple(Gap(**entry) for entry in DECLARED["gaps"])


def find_release(jar: str) -> Release:
    """The release whose jar has this name."""
    return next(release for release in (*RELEASES, *PARQUET) if release.jar == jar)


def find_gap(behaviour: str, table_format: str, spark: str) -> Gap | None:
    """The gap in one behaviour, if it is one."""
    gaps = (gap for gap in GAPS if (gap.behaviour, gap.format) == (behaviour, table_format) and spark in gap.sparks)
    return next(gaps, None)
