"""Answers as plain text: in pipes, in logs, as `repr`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from metastore.display.caption import build_caption
from metastore.display.cells import format_cell, format_marked_cell, rank_errors
from metastore.display.columns import choose_columns, column_heading, is_number
from metastore.display.layout import GAP, fit_columns
from metastore.display.remarks import list_approximations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.answers import Answer


_ROWS_OF_REPR = 50


def render(answer: Answer, width: int | None = None) -> str:
    """The answer as aligned columns, shortened for a screen."""
    layout = fit_columns(answer, _ROWS_OF_REPR, width)
    columns = [AlignedColumn([column.heading, *column.cells], column.is_number) for column in layout.columns]
    lines = [build_caption(answer), *align_columns(columns), *layout.remarks]
    return "\n".join(filter(None, lines))


def render_complete(answer: Answer) -> str:
    """The answer as aligned columns with every row and value in full, and a legend of marks."""
    names = choose_columns(answer)
    columns = [_complete_column(answer, name) for name in names]
    return "\n".join([*align_columns(columns), *list_approximations(answer, names)])


def _complete_column(answer: Answer, name: str) -> AlignedColumn:
    errors = rank_errors(answer)
    cells = [format_marked_cell(row, name, errors, format_cell) for row in answer.rows]
    return AlignedColumn([column_heading(name), *cells], is_number(answer, name))


@dataclass(frozen=True)
class AlignedColumn:
    """A heading and the texts below it; numbers are aligned to the right."""

    texts: Sequence[str]
    is_number: bool = False

    def pad(self) -> list[str]:
        """The texts, padded to the width of the widest."""
        width = max(map(cell_len, self.texts))
        return [self._pad_text(text, width) for text in self.texts]

    def _pad_text(self, text: str, width: int) -> str:
        blanks = " " * (width - cell_len(text))
        return blanks + text if self.is_number else text + blanks


def align_columns(columns: Sequence[AlignedColumn]) -> list[str]:
    """The lines of a table, with two blanks between columns."""
    lines = zip(*[column.pad() for column in columns], strict=True)
    return [(" " * GAP).join(cells).rstrip() for cells in lines]
