"""What works on which table format and Spark, and what does not, as docs/gaps.json says it."""

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
        jar: Its name in `jars.lock`; of plain Parquet files, which Spark reads itself, a name of ours.
        quick: Whether the quick half of the matrix has it: the oldest of Spark 3.5, and the newest Spark.
        refused: What is said where it cannot be used; empty where it can.
        kinds_refused: The kinds of table alone that cannot be used, each with what is said.
    """

    format: str
    version: str
    spark: str
    jar: str
    quick: bool = False
    refused: str = ""
    kinds_refused: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def title(self) -> str:
        """The format and its release, as people call them."""
        return f"{self.format.capitalize()} {self.version}".strip()


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
RELEASES = tuple(Release(**one) for one in DECLARED["releases"])
PARQUET = tuple(
    Release(format="parquet", version="", spark=line, jar=f"parquet-{line}", quick=line == jars.LINES[-1])
    for line in jars.LINES
)
TARGETS = tuple(TestedTarget(**one) for one in DECLARED["targets"])
GAPS = tuple(Gap(**one) for one in DECLARED["gaps"])


def find_gap(behaviour: str, table_format: str, spark: str) -> Gap | None:
    """The gap in one behaviour, if it is one."""
    found = (one for one in GAPS if (one.behaviour, one.format) == (behaviour, table_format) and spark in one.sparks)
    return next(found, None)
