"""The data files that have to be read for a filter, in the form that other engines take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from metastore.answers import Answer
from metastore.contract import read_contract
from metastore.errors import InvalidArgument
from metastore.suggestions import suggest_names
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Mapping

_SENTENCES: dict[str, str] = {reason["name"]: reason["sentence"] for reason in read_contract("reasons")}
_COLUMNS = pa.schema(
    [
        ("path", pa.string()),
        ("kept", pa.bool_()),
        ("reason", pa.string()),
        ("conjunct", pa.string()),
        ("statistic", pa.string()),
        ("rows", pa.int64()),
        ("deletes", pa.bool_()),
    ]
)
_STATES = {
    True: "current",
    False: "no longer current: newer data files are not here",
    None: "perhaps not current",
}
"""Texts for whether the table is still at the snapshot of the files."""
_MOST_SHOWN = 5
"""At most this many unused parts of the filter are in the text of an answer."""
_MOST_COMPARED = 1000
"""A mistyped path is compared with at most this many data files."""


@dataclass(frozen=True, kw_only=True)
class FileVerdict:
    """Whether a data file has to be read, and why.

    Attributes:
        path: The path as engines open it.
        reason: A name in `contract/reasons.json`: `SKIPPED...` or `KEPT...`.
        conjunct: The part of the filter that no row of the file fulfils.
        statistic: The columns whose statistics prove that; for a kept file, the columns without statistics.
        rows: Rows, deleted ones included, or None if unknown.
        has_deletes: Whether the table's metadata deletes rows of the file, or may do so.
    """

    path: str
    reason: str
    conjunct: str | None = None
    statistic: str | None = None
    rows: int | None = None
    has_deletes: bool = False

    @property
    def kept(self) -> bool:
        """Whether the file has to be read."""
        return not self.reason.startswith("SKIPPED")

    @property
    def sentence(self) -> str:
        """The reason as a sentence."""
        facts = {"conjunct": self.conjunct, "statistic": self.statistic, "column": self.statistic}
        return _SENTENCES[self.reason].format_map(facts)


@dataclass(frozen=True, repr=False, kw_only=True)
class PrunedFiles(Sequence[str]):
    """The paths of the data files that have to be read for a filter; their rows still have to be filtered.

    This is a sequence of paths. `scan_paths` is for engines that need at least one.

    Attributes:
        table: The table.
        filter: The filter.
        verdicts: Every current data file, in the table's order.
        snapshot: The snapshot that the files are of.
        current: Whether the table is at that snapshot, or None if unknown: newer files may be missing.
        analyzed: The number of files with statistics.
        unused: Parts of the filter that can skip no file, each with the reason as a sentence.

    Example:
        >>> kept = FileVerdict(path="/t/a.parquet", reason="KEPT_MAY_MATCH")
        >>> skipped = FileVerdict(path="/t/b.parquet", reason="SKIPPED", conjunct="a > 1", statistic="a")
        >>> files = PrunedFiles(
        ...     table="t", filter="a > 1", verdicts=(kept, skipped), snapshot="7", current=True, analyzed=2
        ... )
        >>> files
        1 of 2 data files of t may have rows with a > 1 (snapshot 7, current)
        >>> files.paths, files.why("/t/b.parquet").sentence
        (['/t/a.parquet'], 'no row can match a > 1 because of a')
    """

    table: str
    filter: str
    verdicts: tuple[FileVerdict, ...]
    snapshot: str | None
    current: bool | None
    analyzed: int
    unused: Mapping[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        """The files that have to be read; empty if no row can match."""
        return list(self._kept)

    @property
    def scan_paths(self) -> list[str]:
        """The files that have to be read, or else one file without a matching row: engines read the columns from it."""
        return self.paths or [verdict.path for verdict in self.verdicts[:1]]

    @property
    def total(self) -> int:
        """The number of data files of the table."""
        return len(self.verdicts)

    @property
    def with_deletes(self) -> list[str]:
        """The files to be read that have deleted rows: engines that read them by their paths see these rows, too."""
        return [verdict.path for verdict in self.verdicts if verdict.kept and verdict.has_deletes]

    def why(self, path: str) -> FileVerdict:
        """Return the verdict on one data file.

        Raises:
            InvalidArgument: The table has no such data file.
        """
        for verdict in self.verdicts:
            if verdict.path == path:
                return verdict
        hint = suggest_names(path, [verdict.path for verdict in self.verdicts[:_MOST_COMPARED]])
        raise InvalidArgument("path", f"{path} is no data file of {self.table}", hint)

    def explain(self) -> Answer:
        """One row per data file: kept or not, the reason, the part of the filter and the statistic behind it."""
        rows = [
            {
                "path": verdict.path,
                "kept": verdict.kept,
                "reason": verdict.reason,
                "conjunct": verdict.conjunct,
                "statistic": verdict.statistic,
                "rows": verdict.rows,
                "deletes": verdict.has_deletes,
            }
            for verdict in self.verdicts
        ]
        return Answer(
            kind="prune",
            subject=self.table,
            columns=tuple(_COLUMNS.names),
            rows=tuple(rows),
            schema=_COLUMNS,
            snapshot=self.snapshot,
            current=self.current,
        )

    @cached_property
    def _kept(self) -> tuple[str, ...]:
        return tuple(verdict.path for verdict in self.verdicts if verdict.kept)

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self._kept[index]

    def __repr__(self) -> str:
        counted = f"{len(self)} of {self.total} data files of {self.table}"
        lines = [f"{counted} may have rows with {self.filter} ({self._describe_state()})"]
        for conjunct, sentence in list(self.unused.items())[:_MOST_SHOWN]:
            lines.append(f"Not used: {conjunct} ({sentence})")
        return "\n".join(map(make_visible, lines))

    def _describe_state(self) -> str:
        parts = ["as listed now"]
        if self.snapshot:
            parts = [f"snapshot {self.snapshot}, {_STATES[self.current]}"]
        if self.analyzed < self.total:
            parts.append(f"{self.total - self.analyzed} not analyzed")
        if self.with_deletes:
            parts.append(f"{len(self.with_deletes)} with deletes")
        return "; ".join(parts)


def phrase_reason(name: str, **facts: str) -> str:
    """Phrase a reason as a sentence."""
    return _SENTENCES[name].format_map(facts)
