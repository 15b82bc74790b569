"""Answers in a notebook: one HTML table with its style inside, no script."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from jinja2 import Environment, Template

from metastore.display import bars
from metastore.display.cells import brief, caption, head, is_number, shown_columns, value_of

if TYPE_CHECKING:
    from metastore.answers import Answer

_ROWS = 200

_TEMPLATE = """\
<div class="metastore"><style>
.metastore table { border-collapse: collapse; font-size: 0.9em; }
.metastore th, .metastore td { padding: 0.2em 0.7em; text-align: left; white-space: nowrap; }
.metastore tbody tr { border-top: 1px solid rgba(128, 128, 128, 0.3); }
.metastore .n { text-align: right; font-variant-numeric: tabular-nums; }
.metastore .bar { background: linear-gradient(to right, rgba(66, 133, 244, 0.3) var(--p), transparent var(--p)); }
</style>
{% if caption %}<p>{{ caption }}</p>
{% endif %}<table><thead><tr>{% for c in columns %}<th{% if c.number %} class="n"{% endif %}>{{ c.head }}</th>\
{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr>{% for c in row %}<td{% if c.kind %} class="{{ c.kind }}"{% endif %}\
{% if c.percent is not none %} style="--p: {{ c.percent }}%"{% endif %}>{{ c.text }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>{% if more %}
<p>{{ more }} more rows</p>{% endif %}</div>"""


def render(answer: Answer) -> str:
    """The answer as HTML; shares of nulls, frequencies and bins get a bar behind them."""
    names = shown_columns(answer)
    columns = [{"head": head(name), "number": is_number(answer, name)} for name in names]
    lengths = bars.shares(answer)
    rows = [
        [_cell(answer, name, value_of(row, name), lengths[place] if lengths else None) for name in names]
        for place, row in enumerate(answer[:_ROWS])
    ]
    more = max(0, len(answer) - _ROWS)
    return _template().render(caption=caption(answer), columns=columns, rows=rows, more=more)


def _cell(answer: Answer, name: str, value: object, share: float | None) -> dict[str, object]:
    percent = value if name == "null_percentage" else None
    if share is not None and name == bars.counted(answer):
        percent = round(100 * share, 1)
    kind = " ".join(["n"] * is_number(answer, name) + ["bar"] * (percent is not None))
    return {"text": brief(name, value), "kind": kind, "percent": percent}


@lru_cache(maxsize=1)
def _template() -> Template:
    return Environment(autoescape=True).from_string(_TEMPLATE)
