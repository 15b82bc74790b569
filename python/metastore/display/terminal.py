"""Answers in a terminal, through rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.console import Group
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from metastore.display import bars
from metastore.display.cells import brief, caption, fitting, head, is_number, value_of, widths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.answers import Answer

_ROWS = 200
_KEYS = ("column_name", "path", "name", "snapshot", "table")


def render(answer: Answer, width: int) -> Table:
    """The answer as a table that fits the width of the terminal."""
    names = fitting(answer, _ROWS, width)
    sizes = widths(answer, names, _ROWS, width)
    table = Table(title=caption(answer), title_justify="left", title_style="bold", header_style="bold", box=None)
    for name in names:
        justify: Literal["left", "right"] = "right" if is_number(answer, name) else "left"
        style = "cyan" if name == next((key for key in _KEYS if key in names), None) else None
        table.add_column(head(name), justify=justify, style=style, no_wrap=True, overflow="ellipsis", width=sizes[name])
    drawn = [bars.text(share) for share in bars.shares(answer)]
    if drawn:
        table.add_column("", style="blue", no_wrap=True)
    for place, row in enumerate(answer[:_ROWS]):
        # Text: what stands in a table's values is no markup.
        cells = [Text(brief(name, value_of(row, name)), overflow="ellipsis") for name in names]
        table.add_row(*cells, *drawn[place : place + 1])
    if len(answer) > _ROWS:
        table.caption = f"{len(answer) - _ROWS:,} more rows: --json shows all"
    return table


def comparison(
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
