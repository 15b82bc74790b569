"""Answers in a terminal, by rich. All texts are `Text`, so that no value of a table is taken for markup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from metastore.display.caption import build_caption
from metastore.display.layout import GAP, DisplayColumn, fit_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.answers import Answer


_ROWS = 200


def render(answer: Answer, width: int) -> Group:
    """The answer as a table that fits the width of the terminal."""
    layout = fit_columns(answer, _ROWS, width)
    remarks = [Text(remark, style="dim") for remark in layout.remarks]
    table = _make_table(layout.columns)
    caption = build_caption(answer)
    if not caption:
        return Group(table, *remarks)
    return Group(Text(caption, style="bold"), table, *remarks)


def _make_table(columns: Sequence[DisplayColumn]) -> Table:
    table = Table(header_style="bold", box=None, padding=(0, GAP, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(
            Text(column.heading),
            justify="right" if column.is_number else "left",
            style=_style(column),
            no_wrap=True,
            overflow="ellipsis",
            width=column.width,
        )
    for cells in zip(*[column.cells for column in columns], strict=True):
        table.add_row(*map(Text, cells))
    return table


def _style(column: DisplayColumn) -> str | None:
    if column.is_bar:
        return "blue"
    if column.is_key:
        return "cyan"
    return None


def render_comparison(
    number: int, title: str, sql: str, lines: Sequence[tuple[str, str, str]], remarks: Sequence[str]
) -> Group:
    """A query and its measurements without and with the Metastore."""
    table = Table(box=None, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("")
    table.add_column("without", justify="right")
    table.add_column("with the Metastore", justify="right", style="green")
    for line in lines:
        table.add_row(*map(Text, line))
    indented_remarks = [Padding(Text(remark), (0, 0, 0, 2)) for remark in remarks]
    query = Padding(Syntax(sql, "sql", background_color="default", word_wrap=True), (1, 0, 1, 4))
    heading = Text(f"\nQuery {number}: {title}", style="bold")
    return Group(heading, query, Padding(table, (0, 0, 1, 2)), *indented_remarks)
