"""Answers in a notebook: one HTML table with its style and its drawings inside, no script.

Nothing is fetched, so it looks the same offline and in a saved notebook. Colours follow the theme of the notebook
(JupyterLab, VS Code), else the browser's setting. Selectors are long because they have to override JupyterLab's own
rules for tables.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from jinja2 import Environment, Template

from metastore.display.bars import even_histogram
from metastore.display.caption import list_caption_parts
from metastore.display.cells import format_brief_cell
from metastore.display.layout import fit_columns
from metastore.format.sparkline import LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.answers import Answer
    from metastore.display.layout import DisplayColumn


_ROWS = 2000
_HEIGHT = 20

STYLE = """\
.metastore { color-scheme: light dark; --bar: rgba(66, 133, 244, 0.35); --line: rgba(128, 128, 128, 0.35);
  --ink: var(--jp-ui-font-color0, var(--vscode-editor-foreground, CanvasText));
  --page: var(--jp-layout-color0, var(--vscode-editor-background, Canvas));
  color: var(--ink); background: var(--page); font-size: 0.85rem; line-height: 1.4; max-width: 100%; }
.metastore p { margin: 0.3em 0; }
.metastore .said { opacity: 0.75; }
.metastore .box { overflow: auto; max-height: 34em; width: fit-content; max-width: 100%;
  box-sizing: border-box; border: 1px solid var(--line); scrollbar-color: gray transparent; }
.metastore table { border-collapse: separate; border-spacing: 0; margin: 0; font-size: inherit;
  table-layout: auto; }
.metastore tbody tr:nth-child(n) { background: none; }
.metastore .box th, .metastore .box td { padding: 0.2em 0.7em; text-align: left; white-space: nowrap;
  unicode-bidi: plaintext; border: 0; background: none; line-height: inherit; }
.metastore .box thead th { position: sticky; top: 0; z-index: 1; background: var(--page);
  border-bottom: 1px solid var(--line); }
.metastore td.key:first-child { position: sticky; left: 0; background: var(--page); max-width: 14em; overflow: hidden;
  text-overflow: ellipsis; }
.metastore .box thead th.key:first-child { left: 0; z-index: 2; }
.metastore .box tbody tr + tr td { border-top: 1px solid var(--line); }
.metastore .box .n { text-align: right; font-variant-numeric: tabular-nums; }
.metastore .box .bar { background: linear-gradient(to right, var(--bar) var(--p), transparent var(--p)); }
.metastore svg { display: block; width: 7em; height: 1.4em; fill: #4285f4; border-bottom: 1px solid var(--line); }
.metastore svg.shape { width: 100%; max-width: 60em; height: 7em; }
.metastore .ends { display: flex; justify-content: space-between; max-width: 60em; }
"""

_TEMPLATE = """\
<div class="metastore"><style>
{{ style }}</style>
{% macro draw(bars, kind="") %}<svg{{ kind }} viewBox="0 0 {{ bars.width }} {{ height }}" preserveAspectRatio="none" \
role="img" aria-label="histogram"><path d="{{ bars.path }}"/></svg>{% endmacro %}\
{% if caption %}<p>{% for part in caption %}{% if not loop.first %}, {% endif %}<bdi>{{ part }}</bdi>{% endfor %}</p>
{% endif %}{% if shape %}{{ draw(shape, " class=shape"|safe) }}<p class="ends"><bdi>{{ ends[0] }}</bdi>\
<bdi>{{ ends[1] }}</bdi></p>
{% endif %}<div class="box" tabindex="0"><table><thead><tr>{% for c in columns %}\
<th{% if c.kind %} class="{{ c.kind }}"{% endif %}>{{ c.text }}</th>\
{% endfor %}</tr></thead><tbody>
{% for row in rows %}<tr>{% for c in row %}<td{% if c.kind %} class="{{ c.kind }}"{% endif %}\
{% if c.percent is not none %} style="--p: {{ c.percent }}%"{% endif %}>\
{% if c.bars %}{{ draw(c.bars) }}{% else %}{{ c.text }}{% endif %}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>{% for remark in remarks %}
<p class="said"><bdi>{{ remark }}</bdi></p>{% endfor %}</div>"""


def render(answer: Answer) -> str:
    """The answer as HTML; shares of nulls, frequencies and bins get a bar behind them, histograms are drawn."""
    layout = fit_columns(answer, _ROWS)
    columns = [column for column in layout.columns if not column.is_bar]
    visible_rows = answer[:_ROWS]
    return _template().render(
        style=STYLE,
        height=_HEIGHT,
        columns=list(map(_heading, columns)),
        rows=[_row(columns, number) for number in range(len(visible_rows))],
        caption=list_caption_parts(answer),
        remarks=layout.remarks,
        **_histogram(answer),
    )


def _histogram(answer: Answer) -> dict[str, object]:
    """The drawing of a histogram and the texts at its ends, for the template; empty for other answers."""
    if answer.kind != "histogram":
        return {}
    histogram = even_histogram(answer)
    if histogram is None:
        return {}
    lowest = format_brief_cell("lo", answer[0]["lo"])
    highest = format_brief_cell("hi", answer[-1]["hi"])
    return {"shape": _bars(histogram.counts), "ends": [lowest, highest]}


def _heading(column: DisplayColumn) -> dict[str, object]:
    return {"text": column.heading, "kind": " ".join(_classes(column))}


def _row(columns: Sequence[DisplayColumn], row: int) -> list[dict[str, object]]:
    return [_cell(column, row) for column in columns]


def _cell(column: DisplayColumn, row: int) -> dict[str, object]:
    """A cell of the template: its text or sparkline, the classes of its style, the length of the bar behind it."""
    text = column.cells[row]
    classes = _classes(column)
    share = column.shares[row] if column.shares else None
    cell: dict[str, object] = {"text": text, "percent": None}
    if share is not None:
        classes.append("bar")
        cell["percent"] = round(100 * share, 1)
    if column.is_sparkline and text:
        cell["bars"] = _bars(list(map(LEVELS.index, text)))
    cell["kind"] = " ".join(classes)
    return cell


def _classes(column: DisplayColumn) -> list[str]:
    classes = []
    if column.is_key:
        classes.append("key")
    if column.is_number:
        classes.append("n")
    return classes


def _bars(heights: Sequence[float]) -> dict[str, object]:
    """A row of bars as the path of an SVG."""
    highest = max(heights) or 1
    steps = []
    for height in heights:
        top = _HEIGHT * (1 - height / highest)
        steps.append(f"V{top:.3g}h1")
    path = f"M0 {_HEIGHT}{''.join(steps)}V{_HEIGHT}z"
    return {"width": len(heights), "path": path}


@lru_cache(maxsize=1)
def _template() -> Template:
    return Environment(autoescape=True).from_string(_TEMPLATE)
