"""Answers as plain text: in pipes, in logs, as `repr`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len

from metastore.display.cells import (
    build_caption,
    column_heading,
    displayed_value,
    format_cell,
    is_number,
    shown_columns,
)
from metastore.display.layout import GAP, fit_columns

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
    """The answer as aligned columns, every row and value in full, nothing beside them."""
    names = shown_columns(answer)
    body = [[format_cell(name, displayed_value(row, name)) for name in names] for row in answer.rows]
    return "\n".join(
        align_cells([[column_heading(name) for name in names], *body], [is_number(answer, name) for name in names])
    )


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
