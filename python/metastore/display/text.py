"""Answers as plain text: in pipes, in logs, as `repr`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.display import bars
from metastore.display.cells import (
    GAP,
    brief,
    caption,
    cell,
    cut,
    fitting,
    head,
    is_number,
    shown_columns,
    value_of,
    widths,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from metastore.answers import Answer

_ROWS_OF_REPR = 50


def render(answer: Answer, width: int | None = None) -> str:
    """The answer as aligned columns, shortened to what a screen holds.

    Example:
        >>> from metastore.answers import Answer
        >>> print(render(Answer("files", "db.t", ("path", "rows"), ({"path": "/w/a.parquet", "rows": 1200},))))
        db.t
        path       rows
        a.parquet  1,200
    """
    names = fitting(answer, _ROWS_OF_REPR, width)
    sizes = widths(answer, names, _ROWS_OF_REPR, width)
    shown = table(answer, names, lambda name, value: cut(brief(name, value), sizes[name]), _ROWS_OF_REPR)
    lines = [caption(answer), *(_with_bars(answer, shown) if bars.counted(answer) else shown)]
    if len(answer) > _ROWS_OF_REPR:
        lines.append(f"... {len(answer) - _ROWS_OF_REPR:,} more rows")
    return "\n".join(line for line in lines if line)


def complete(answer: Answer) -> str:
    """The answer as aligned columns, every row and value in full, nothing beside them."""
    return "\n".join(table(answer, shown_columns(answer), cell, len(answer)))


def table(answer: Answer, names: Sequence[str], show: Callable[[str, object], str], rows: int) -> list[str]:
    """The lines of the answer's first rows."""
    numbers = [is_number(answer, name) for name in names]
    body = [[show(name, value_of(row, name)) for name in names] for row in answer[:rows]]
    return aligned([[head(name) for name in names], *body], numbers)


def _with_bars(answer: Answer, lines: list[str]) -> list[str]:
    drawn = [bars.text(share) for share in bars.shares(answer)[: len(lines) - 1]]
    width = max(map(len, lines)) + GAP
    return [lines[0], *(f"{line.ljust(width)}{bar}".rstrip() for line, bar in zip(lines[1:], drawn, strict=True))]


def aligned(lines: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[str]:
    """Lines of cells under each other, two blanks apart, numbers to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        "  ".join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, numbers, strict=True)
        ).rstrip()
        for line in lines
    ]
