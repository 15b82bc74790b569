"""Answers in a terminal, through rich."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.table import Table
from rich.text import Text

from metastore.display.cells import brief, caption, head, is_number, shown_columns

if TYPE_CHECKING:
    from metastore.answers import Answer

_ROWS = 200
_KEYS = ("column_name", "path", "name", "snapshot", "table")


def render(answer: Answer) -> Table:
    """The answer as a table that fits the width of the terminal."""
    names = shown_columns(answer)
    table = Table(title=caption(answer), title_justify="left", title_style="bold", header_style="bold", box=None)
    for name in names:
        justify: Literal["left", "right"] = "right" if is_number(answer, name) else "left"
        style = "cyan" if name == next((key for key in _KEYS if key in names), None) else None
        table.add_column(head(name), justify=justify, style=style, no_wrap=name in _KEYS, overflow="ellipsis")
    for row in answer[:_ROWS]:
        # Text: what stands in a table's values is no markup.
        table.add_row(*(Text(brief(name, row[name]), overflow="ellipsis") for name in names))
    if len(answer) > _ROWS:
        table.caption = f"{len(answer) - _ROWS:,} more rows: --json shows all"
    return table
