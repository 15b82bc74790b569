"""Answers in a terminal, through rich. All that is shown is `Text`: what stands in a table is no markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.console import Group
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from metastore.display.cells import build_caption
from metastore.display.layout import GAP, DisplayColumn, fit_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.answers import Answer


_ROWS = 200


def render(answer: Answer, width: int) -> Group:
    """The answer as a table that fits the width of the terminal."""
    layout = fit_columns(answer, _ROWS, width)
    table = Table(header_style="bold", box=None, padding=(0, GAP, 0, 0), pad_edge=False)
    for column in layout.columns:
        side: Literal["left", "right"] = "right" if column.is_number else "left"
        style = _style(column)
        table.add_column(
            Text(column.head), justify=side, style=style, no_wrap=True, overflow="ellipsis", width=column.width
        )
    for cells in zip(*(column.cells for column in layout.columns), strict=True):
        table.add_row(*map(Text, cells))
    above = [Text(line, style="bold") for line in [build_caption(answer)] if line]
    return Group(*above, table, *(Text(remark, style="dim") for remark in layout.remarks))


def _style(column: DisplayColumn) -> str | None:
    return "blue" if column.is_bar else "cyan" if column.is_key else None


def render_comparison(
    number: int, title: str, sql: str, lines: Sequence[tuple[str, str, str]], remarks: Sequence[str]
) -> Group:
    """A query and its measurements without and with the Metastore."""
    table = Table(box=None, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("")
    table.add_column("without", justify="right")
    table.add_column("with the Metastore", justify="right", style="green")
    for line in lines:
        table.add_row(*(Text(part) for part in line))
    said = [Padding(Text(remark), (0, 0, 0, 2)) for remark in remarks]
    query = Padding(Syntax(sql, "sql", background_color="default", word_wrap=True), (1, 0, 1, 4))
    heading = Text(f"\nQuery {number}: {title}", style="bold")
    return Group(heading, query, Padding(table, (0, 0, 1, 2)), *said)
