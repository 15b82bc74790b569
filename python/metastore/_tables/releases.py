"""Releases of table formats, each on a Spark, that `tests/versions/matrix.py` runs; docs/formats.md shows them."""

from __future__ import annotations

from dataclasses import dataclass


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
