"""Answers in a notebook: one HTML table with its style inside, no script."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from jinja2 import Environment, Template

from metastore.display.cells import list_caption_parts
from metastore.display.layout import fit_columns

if TYPE_CHECKING:
    from metastore.answers import Answer
    from metastore.display.layout import DisplayColumn


_ROWS = 200

_TEMPLATE = """\
<div class="metastore"><style>
.metastore table { border-collapse: collapse; font-size: 0.9em; }
.metastore th, .metastore td { padding: 0.2em 0.7em; text-align: left; white-space: nowrap; }
.metastore tbody tr { border-top: 1px solid rgba(128, 128, 128, 0.3); }
.metastore .n { text-align: right; font-variant-numeric: tabular-nums; }
.metastore .bar { background: linear-gradient(to right, rgba(66, 133, 244, 0.3) var(--p), transparent var(--p)); }
</style>
{% if caption %}<p>{% for part in caption %}{% if not loop.first %}, {% endif %}<bdi>{{ part }}</bdi>{% endfor %}</p>
{% endif %}<table><thead><tr>{% for c in columns %}<th{% if c.is_number %} class="n"{% endif %}>\
<bdi>{{ c.head }}</bdi></th>\
{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr>{% for c in row %}<td{% if c.kind %} class="{{ c.kind }}"{% endif %}\
{% if c.percent is not none %} style="--p: {{ c.percent }}%"{% endif %}><bdi>{{ c.text }}</bdi></td>{% endfor %}</tr>
{% endfor %}</tbody></table>{% for remark in remarks %}
<p><bdi>{{ remark }}</bdi></p>{% endfor %}</div>"""


def render(answer: Answer) -> str:
    """The answer as HTML; shares of nulls, frequencies and bins get a bar behind them."""
    layout = fit_columns(answer, _ROWS)
    columns = [column for column in layout.columns if not column.is_bar]
    rows = [[_cell(column, place) for column in columns] for place in range(len(answer[:_ROWS]))]
    return _template().render(caption=list_caption_parts(answer), columns=columns, rows=rows, remarks=layout.remarks)


def _cell(column: DisplayColumn, place: int) -> dict[str, object]:
    share = column.shares[place] if column.shares else None
    kind = " ".join(["n"] * column.is_number + ["bar"] * (share is not None))
    return {"text": column.cells[place], "kind": kind, "percent": None if share is None else round(100 * share, 1)}


@lru_cache(maxsize=1)
def _template() -> Template:
    return Environment(autoescape=True).from_string(_TEMPLATE)
