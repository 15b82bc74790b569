"""Answers as plain text: in pipes, in logs, as `repr`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from metastore.display.cells import (
    build_caption,
    column_heading,
    format_cell,
    format_marked_cell,
    is_number,
    rank_errors,
    shown_columns,
)
from metastore.display.layout import GAP, fit_columns, list_approximations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.answers import Answer


_ROWS_OF_REPR = 50


def render(answer: Answer, width: int | None = None) -> str:
    """The answer as aligned columns, shortened to what a screen holds."""
    layout = fit_columns(answer, _ROWS_OF_REPR, width)
    columns = layout.columns
    lines = [[column.head for column in columns], *zip(*(column.cells for column in columns), strict=True)]
    shown = align_cells(lines, [column.is_number for column in columns])
    return "\n".join(line for line in (build_caption(answer), *shown, *layout.remarks) if line)


def render_complete(answer: Answer) -> str:
    """The answer as aligned columns, every row and value in full, and what the mark of approximate numbers means."""
    names = shown_columns(answer)
    errors = rank_errors(answer)
    body = [[format_marked_cell(row, name, errors, format_cell) for name in names] for row in answer.rows]
    shown = align_cells([[column_heading(name) for name in names], *body], [is_number(answer, name) for name in names])
    return "\n".join([*shown, *list_approximations(answer, names)])


def align_cells(lines: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[str]:
    """Lines of cells under each other, two blanks apart, numbers to the right."""
    widths = [max(cell_len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return [
        (" " * GAP)
        .join(
            f"{' ' * (width - cell_len(text))}{text}" if number else f"{text}{' ' * (width - cell_len(text))}"
            for text, width, number in zip(line, widths, numbers, strict=True)
        )
        .rstrip()
        for line in lines
    ]
