"""Figures of a room of code: how often something occurs, and in how much code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """Occurrences in a number of lines, functions, names or docstrings; `scale` 100 shows them as a percentage."""

    occurrences: int
    size: int
    scale: int = 100

    @property
    def value(self) -> float:
        """Occurrences per `scale` units of size."""
        return self.scale * self.occurrences / max(self.size, 1)

    @property
    def one_occurrence(self) -> float:
        """By how much one more occurrence raises the value."""
        return self.scale / max(self.size, 1)

    def __add__(self, other: Figure) -> Figure:
        """The figure of both pieces of code."""
        return Figure(self.occurrences + other.occurrences, self.size + other.size, self.scale)


def add_figures(parts: list[dict[str, Figure]]) -> dict[str, Figure]:
    """Sum the figures of several files, measure by measure."""
    total = parts[0]
    for part in parts[1:]:
        total = {measure: total[measure] + part[measure] for measure in total}
    return total
