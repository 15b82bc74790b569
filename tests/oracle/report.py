"""Counts questions and answers by type and operator: a cell without a question is a hole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from oracle.predicates import Predicate
    from oracle.tables import Subject

COMPARISONS = (
    "=",
    "<=>",
    "<",
    "<=",
    ">",
    ">=",
    "<>",
    "BETWEEN",
    "NOT BETWEEN",
    "IN",
    "NOT IN",
    "IS NULL",
    "IS NOT NULL",
)
LOOSE = ("literal of another type", "column", "cast", "function")
FAMILIES = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    *("date", "timestamp", "timestamp_ntz", "string", "binary"),
)
EXTRA = {("string", "LIKE"), ("string", "NOT LIKE"), ("string", "substring"), ("date", "year of date")}
EXTRA |= {("int", "widening cast"), ("float", "widening cast"), ("collection", "function")}
REQUIRED = frozenset({(t, op) for t in FAMILIES for op in (*COMPARISONS, *LOOSE)} | EXTRA)


def cells_of(predicate: Predicate) -> set[tuple[str, str]]:
    """Returns the cells that a predicate belongs to; decimals are one type."""
    return {("decimal" if name.startswith("decimal") else name, operator) for name, operator in predicate.cells()}


def on_one_column(predicate: Predicate) -> bool:
    """Tells whether a predicate compares one column, or a function of it, with literals."""
    return not predicate.parts() and all(operator != "column" for _, operator in predicate.cells())


@dataclass(frozen=True)
class Wrong:
    """A file that was skipped although a row in it matches."""

    subject: Subject
    predicate: Predicate
    file: str
    source: str
    conf: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        used = {leaf.sql for leaf in self.subject.leaves if leaf.sql in self.predicate.sql()}
        values = {leaf.sql: self.subject.values[self.file][leaf] for leaf in self.subject.leaves if leaf.sql in used}
        return f"{self.source} on {self.subject.kind}: {self.predicate.sql()} skips {values} with {dict(self.conf)}"


@dataclass
class Report:
    """Verdicts so far: `needed` and `skipped` files per cell, what bounds prove and how much of it was used."""

    verdicts: int = 0
    raised: int = 0
    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    provable: Counter[tuple[str, str]] = field(default_factory=Counter)
    proven: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)
    provable_verdicts: int = 0
    proven_verdicts: int = 0
    missed: Counter[str] = field(default_factory=Counter)
    match_verdicts: int = 0
    matched: int = 0
    wrong_matches: list[str] = field(default_factory=list)
    useless_verdicts: int = 0
    decided_verdicts: int = 0
    undecided: Counter[str] = field(default_factory=Counter)

    def count(self, predicate: Predicate, files: int, kept_count: int, provable: int, missed: int) -> None:
        """Adds the verdicts of one predicate on `files` files."""
        self.verdicts += files
        self.provable_verdicts += provable
        self.proven_verdicts += provable - missed
        for cell in cells_of(predicate):
            self.cells[cell] += files
            self.skipped[cell] += files - kept_count
            self.provable[cell] += provable
            self.proven[cell] += provable - missed
        if missed:
            self.missed[predicate.sql()] += missed

    def count_decided(self, predicate: Predicate, useless: AbstractSet[str], kept_files: AbstractSet[str]) -> None:
        """Adds the verdicts of a predicate on one column on files none of whose rows match."""
        self.useless_verdicts += len(useless)
        self.decided_verdicts += len(useless - kept_files)
        if useless & kept_files:
            self.undecided[predicate.sql()] += len(useless & kept_files)

    @property
    def decided(self) -> float:
        """Share of the files without a matching row that predicates on one column skipped."""
        return self.decided_verdicts / max(self.useless_verdicts, 1)

    @property
    def power(self) -> float:
        """Share of the files that bounds exclude and that were skipped."""
        return self.proven_verdicts / max(self.provable_verdicts, 1)

    def empty_cells(self) -> list[tuple[str, str]]:
        """Returns the required cells without a question."""
        return sorted(REQUIRED - set(self.cells))

    def text(self) -> str:
        """Returns the table of verdicts: their number, the skipped, and the share of the provable that was skipped."""
        operators = [
            *COMPARISONS,
            "LIKE",
            "NOT LIKE",
            *sorted({op for _, op in self.cells} - {*COMPARISONS, "LIKE", "NOT LIKE"}),
        ]
        lines = [f"{self.verdicts} verdicts, {len(self.wrong)} wrong, {self.raised} predicates raised"]
        lines.append(f"provable {self.provable_verdicts}, skipped of these {self.power:.2%}")
        lines.append(
            f"on one column: {self.useless_verdicts} files without a match, skipped of these {self.decided:.2%}"
        )
        lines.append(
            f"full matches: {self.match_verdicts} verdicts, {self.matched} proven, {len(self.wrong_matches)} wrong"
        )
        lines.append("type, operator: verdicts, skipped, provable, skipped of the provable")
        for name in sorted({t for t, _ in self.cells}):
            for op in operators:
                cell = (name, op)
                if cell in self.cells:
                    share = self.proven[cell] / self.provable[cell] if self.provable[cell] else 1.0
                    lines.append(
                        f"  {name:<14}{op:<24}"
                        + "".join(f"{n[cell]:>8}" for n in (self.cells, self.skipped, self.provable))
                        + f"{share:>8.1%}"
                    )
        return "\n".join(lines)
