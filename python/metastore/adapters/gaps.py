"""What works on which table format and Spark, and what does not: data, of which tests and docs/formats.md are made."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Release:
    """A release of a table format on a Spark.

    Attributes:
        format: As in the manifest.
        version: The release.
        spark: Release line of Spark.
        jar: Its name in `jars.lock`.
        quick: Whether the quick half of the matrix has it: the oldest and the newest of Spark 3.5.
        refused: What is said where it cannot be used; empty where it can.
        kinds_refused: The kinds of table alone that cannot be used, each with what is said.
    """

    format: str
    version: str
    spark: str
    jar: str
    quick: bool = False
    refused: str = ""
    kinds_refused: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """The format and its release, as people call them."""
        return f"{self.format.capitalize()} {self.version}"


RELEASES = (
    Release("iceberg", "1.4.3", "3.5", "iceberg-3.5@1.4", refused="needs Iceberg 1.6, found 1.4.3"),
    Release("iceberg", "1.6.1", "3.5", "iceberg-3.5@1.6", quick=True),
    Release("iceberg", "1.8.1", "3.5", "iceberg-3.5@1.8"),
    Release("iceberg", "1.10.2", "3.5", "iceberg-3.5@1.10"),
    Release("iceberg", "1.12.0", "3.5", "iceberg-3.5"),
    Release("delta", "3.2.1", "3.5", "delta-3.5@3.2", quick=True),
    Release("delta", "3.3.2", "3.5", "delta-3.5"),
    Release(
        "hudi",
        "0.15.0",
        "3.5",
        "hudi-3.5@0.15",
        quick=True,
        kinds_refused=(("mor", "needs Hudi 1.0 for a merge-on-read table, found 0.15.0"),),
    ),
    Release("hudi", "1.0.2", "3.5", "hudi-3.5@1.0"),
    Release("hudi", "1.2.0", "3.5", "hudi-3.5"),
    Release("iceberg", "1.10.2", "4.0", "iceberg-4.0"),
    Release("delta", "4.0.1", "4.0", "delta-4.0"),
    Release("iceberg", "1.12.0", "4.1", "iceberg-4.1"),
    Release("delta", "4.4.0", "4.1", "delta-4.1"),
)
"""Oldest first, by Spark and format."""

BEHAVIOURS = {
    "name": "ANALYZE by a catalog's name",
    "path": "ANALYZE by path",
    "partition": "ANALYZE of a PARTITION",
    "incremental": "only new data files are read",
    "pruning": "data files skipped",
    "numbers": "numbers to the optimizer",
    "snapshots": "statistics of older snapshots, `at =>`",
    "deletes": "deleted rows told from physical ones",
    "evolution": "renamed, dropped and re-added columns",
    "widening": "columns of a type that was widened",
    "functions": "table functions, `metastore.open`",
    "source": '`spark.read.format("metastore")`',
    "locate": "`metastore.locate` of many keys",
}
"""What users rely on, by the name that gaps use."""


@dataclass(frozen=True)
class TestedTarget:
    """A table format on a Spark, as it is tested.

    Attributes:
        format: As in the manifest.
        title: The format and its release, as people call them.
        spark: Release line of Spark.
    """

    format: str
    title: str
    spark: str


@dataclass(frozen=True)
class Gap:
    """Something that does not work.

    Attributes:
        behaviour: A key of `BEHAVIOURS`.
        format: Of which format.
        sparks: On which Sparks.
        when: Whether it will ever.
        reason: Why, as a sentence without its full stop.
        raised: The code of the error that says so, ours or Spark's; None where queries run as without us.
    """

    behaviour: str
    format: str
    sparks: tuple[str, ...]
    when: Literal["never", "not yet"]
    reason: str
    raised: str | None = None


_BY_CATALOG = "Iceberg finds tables by catalogs: a path alone does not say which metadata file is the newest"

TARGETS = (
    TestedTarget("iceberg", "Iceberg 1.12", "4.1"),
    TestedTarget("delta", "Delta 4.4", "4.1"),
    TestedTarget("parquet", "Parquet files", "4.1"),
    TestedTarget("iceberg", "Iceberg 1.12", "3.5"),
    TestedTarget("delta", "Delta 3.3", "3.5"),
    TestedTarget("hudi", "Hudi 1.2", "3.5"),
    TestedTarget("parquet", "Parquet files", "3.5"),
)

GAPS = (
    Gap("path", "iceberg", ("3.5", "4.1"), "never", _BY_CATALOG, "METASTORE_UNSUPPORTED_TABLE"),
    Gap(
        "snapshots",
        "parquet",
        ("4.1", "3.5"),
        "never",
        "a directory has no snapshots: what is asked about it is answered from its newest statistics, `current` tells",
        "METASTORE_INVALID_ARGUMENT",
    ),
    Gap("deletes", "parquet", ("4.1", "3.5"), "never", "rows of a Parquet file are never deleted"),
    Gap(
        "evolution",
        "parquet",
        ("4.1", "3.5"),
        "never",
        "columns have no identity but their names: a column that a file lacks, or has in other case, is unknown there",
    ),
    *(
        Gap("widening", kind, sparks, "never", why)
        for kind, sparks, why in (
            ("parquet", ("4.1", "3.5"), "a directory has no types but those of its files"),
            ("delta", ("3.5",), "Delta 3.3 itself widens an integer to no more than INT"),
        )
    ),
    *(
        Gap("source", kind, ("3.5",), "never", "Spark has data sources in Python since 4.0", "DATA_SOURCE_NOT_FOUND")
        for kind in ("iceberg", "delta", "hudi", "parquet")
    ),
    Gap("deletes", "hudi", ("3.5",), "never", "log files do not say how many rows they delete or change: unknown"),
    Gap(
        "evolution",
        "hudi",
        ("3.5",),
        "not yet",
        "columns may be added, and are null in older files; a table that schema-on-read has changed is read as "
        "without us, for its files call columns by names that now may mean others",
        "METASTORE_UNSUPPORTED_TABLE",
    ),
    Gap(
        "locate",
        "hudi",
        ("3.5",),
        "not yet",
        "Hudi shows no row's position; `metastore.locate` in SQL names data files",
        "METASTORE_UNSUPPORTED_TABLE",
    ),
)


def find_gap(behaviour: str, format: str, spark: str) -> Gap | None:  # noqa: A002 - the word of the field
    """The gap in one behaviour, if it is one."""
    return next(
        (one for one in GAPS if (one.behaviour, one.format) == (behaviour, format) and spark in one.sparks), None
    )


def render_formats_page() -> str:
    """Returns the page `docs/formats.md`."""
    notes: list[Gap] = []
    rows = [_row(behaviour, notes) for behaviour in BEHAVIOURS]
    head = ["| |" + "".join(f" {one.title}, Spark {one.spark} |" for one in TARGETS), "|---" * (len(TARGETS) + 1) + "|"]
    said = [f"{number}. {_sentence(one)}" for number, one in enumerate(notes, 1)]
    return "\n".join([_PAGE, *head, *rows, "", *said, "", _RELEASES, *_releases()]) + "\n"


def _verdict(one: Release) -> str:
    return one.refused or "; ".join(("yes", *(said for _, said in one.kinds_refused)))


def _releases() -> list[str]:
    sparks = sorted({one.spark for one in RELEASES})
    verdicts = {(one.title, one.spark): _verdict(one) for one in RELEASES}
    head = ["| |" + "".join(f" Spark {spark} |" for spark in sparks), "|---" * (len(sparks) + 1) + "|"]
    titles = dict.fromkeys(one.title for one in sorted(RELEASES, key=lambda one: one.format))
    cells = {title: " | ".join(verdicts.get((title, spark), "") for spark in sparks) for title in titles}
    return [*head, *(f"| {title} | {of_title} |" for title, of_title in cells.items())]


def _row(behaviour: str, notes: list[Gap]) -> str:
    cells = []
    for target in TARGETS:
        found = find_gap(behaviour, target.format, target.spark)
        if found is not None and found not in notes:
            notes.append(found)
        cells.append("yes" if found is None else f"{found.when} ({notes.index(found) + 1})")
    return f"| {BEHAVIOURS[behaviour]} | {' | '.join(cells)} |"


def _sentence(one: Gap) -> str:
    title = next(target.title for target in TARGETS if target.format == one.format and target.spark in one.sparks)
    error = f" Raises `{one.raised}`." if one.raised else ""
    return f"{title}: {one.reason}.{error}"


_PAGE = """# Table formats

Made from the gaps in `python/metastore/adapters/gaps.py` by `python -m metastore.adapters.gaps docs/formats.md`.
Tests go through the same list: what is said to work is tested, and what is said to raise an error raises it.
Limits that are alike for all formats are in [limits.md](limits.md).
"""

_RELEASES = """## Releases

Each of these goes through one story, in a Spark of its own, by `tests/versions/matrix.py`: analyze, read fewer files,
delete, update, merge, analyze again, look back, and compare random queries with the answers without us. A release
older than the oldest of them is read as without us; ANALYZE, table functions, EXPLAIN and `metastore doctor --spark`
say which one is needed. An empty cell was not run: releases between those that were are taken to be like them; newer
ones are tried, and where they lack what we ask of them it is named.
"""

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_formats_page(), "utf-8")
