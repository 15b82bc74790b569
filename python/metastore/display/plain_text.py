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
    """The answer as aligned columns, shortened for a screen."""
    layout = fit_columns(answer, _ROWS_OF_REPR, width)
    columns = layout.columns
    heads = [column.head for column in columns]
    rows = zip(*[column.cells for column in columns], strict=True)
    numbers = [column.is_number for column in columns]
    lines = [build_caption(answer), *align_cells([heads, *rows], numbers), *layout.remarks]
    return "\n".join(filter(None, lines))


def render_complete(answer: Answer) -> str:
    """The answer as aligned columns, every row and value in full, and the meaning of marks."""
    names = shown_columns(answer)
    errors = rank_errors(answer)
    headings = [column_heading(name) for name in names]
    rows = [[format_marked_cell(row, name, errors, format_cell) for name in names] for row in answer.rows]
    numbers = [is_number(answer, name) for name in names]
    lines = align_cells([headings, *rows], numbers)
    return "\n".join([*lines, *list_approximations(answer, names)])


def align_cells(lines: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[str]:
    """Lines of cells under each other, two blanks apart, numbers to the right."""
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return [_align_line(line, widths, numbers) for line in lines]


def _align_line(line: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    cells = []
    for text, width, is_right in zip(line, widths, numbers, strict=True):
        padding = " " * (width - cell_len(text))
        if is_right:
            cells.append(padding + text)
        else:
            cells.append(text + padding)
    return (" " * GAP).join(cells).rstrip()
