"""The page: cards, overview and tables written as one HTML document."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import pkgutil
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FunctionLoader

from metastore.display.caption import list_caption_parts
from metastore.display.cells import format_cell
from metastore.display.columns import column_heading, is_number, read_column, read_known_values
from metastore.display.numbers import format_bytes
from metastore.display.report.alerts import Alert, find_alerts
from metastore.display.report.card import Card, Fact
from metastore.display.report.cards import make_cards
from metastore.display.report.charts import HEIGHT, WIDTH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.answers import Answer
    from metastore.display.report.contents import Contents


_STALE = "The table has changed since it was analyzed: what follows is about an earlier snapshot of it."
_LAYOUT = (
    "How many data files a look-up of one value reads, as far as all statistics tell, how many overlap there, and the "
    "statement that would help where it would at least halve them."
)
_NO_HISTORY = "Set spark.metastore.history.enabled to true, and what pruning saves the session's queries is told here."
_NO_QUERY = "No query of this table has been recorded in this session."
_NOTES = (
    "Everything on this page was read from the stored statistics of the table; no data file was read for it.",
    "~ stands before numbers that may be off; how far stands beside them, where that is known.",
    "Bars of a histogram stand for equally wide ranges of values. The few values far out are in the first or last bar.",
    "Shares of values leave nulls out. Lengths are bytes.",
    "Numbers of distinct values have a standard error: two of three are nearer than that, 19 of 20 within twice that.",
    "What pruning saved is told where Spark is asked: it is of a session's queries, and nothing stored.",
)


_MOST_CARDS = 100
"""Cards of more columns than these are packed, and the page's script draws those that are looked at."""
_CARDS_PER_PACK = 50
_WITHOUT_SCRIPT = "The distribution of each column is drawn by the script of this page, which does not run here."


@dataclass(frozen=True)
class _Group:
    kind: str
    alerts: list[tuple[Alert, int | None]] = field(default_factory=list)


@dataclass(frozen=True)
class _Heading:
    name: str
    head: str
    is_number: bool


@dataclass(frozen=True)
class _Table:
    id: str
    title: str
    text: str
    columns: tuple[_Heading, ...] = ()
    rows: tuple[tuple[tuple[_Heading, str], ...], ...] = ()


def render_page(contents: Contents) -> str:
    """Return the whole page. Its security policy allows only its own script and style."""
    alerts = find_alerts(contents)
    cards = make_cards(contents, alerts)
    tables = _list_tables(contents)
    style = _read("page.css")
    script = _read("page.js")
    policy = f"default-src 'none'; style-src 'sha256-{_digest(style)}'; script-src 'sha256-{_digest(script)}'"
    sections = [
        ("overview", "Overview"),
        ("columns", "Columns"),
        *[(table.id, table.title) for table in tables],
        ("about", "How to read this"),
    ]
    caption = list_caption_parts(contents.summary)
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=caption[0],
            caption=caption[1:],
            former=_list_earlier_parts(contents.before, caption[0]),
            warnings=[_STALE] if contents.summary.current is False else [],
            policy=policy,
            style=style,
            script=script,
            sections=sections,
            tiles=_list_tiles(contents, alerts),
            groups=_group_alerts(alerts, cards),
            cards=cards,
            packs=_pack(cards) if len(cards) > _MOST_CARDS else [],
            cards_per_pack=_CARDS_PER_PACK,
            without_script=_WITHOUT_SCRIPT,
            tables=tables,
            notes=_NOTES,
            width=WIDTH,
            height=HEIGHT,
        )
    )


def _pack(cards: Sequence[Card]) -> list[str]:
    """Return the contents of cards: JSON arrays of HTML, as gzip in Base64."""
    module: Any = _environment().get_template("card.html").module
    packs = []
    for first in range(0, len(cards), _CARDS_PER_PACK):
        group = cards[first : first + _CARDS_PER_PACK]
        contents = [module.card_content(card, WIDTH, HEIGHT) for card in group]
        packed = gzip.compress(json.dumps(contents).encode("utf-8"), mtime=0)
        packs.append(base64.b64encode(packed).decode("ascii"))
    return packs


def _list_earlier_parts(before: Contents | None, subject: str) -> list[str]:
    """Return the caption of the earlier snapshot, without its table if that is the same."""
    if before is None:
        return []
    parts = list_caption_parts(before.summary)
    if parts[0] == subject:
        return parts[1:]
    return parts


def _list_tiles(contents: Contents, alerts: Sequence[Alert]) -> list[Fact]:
    rows = contents.summary.rows
    if not rows:
        return []
    first = rows[0]
    coverage = "" if first["files"] == first["files_total"] else f"{first['files']:,} of them analyzed"
    tiles = [
        Fact("rows", format_cell("count", first["count"])),
        Fact("columns", f"{len(rows):,}"),
        Fact("data files", format_cell("files_total", first["files_total"]), coverage),
    ]
    sizes = read_known_values(contents.summary, "size_bytes")
    if sizes:
        tiles.append(Fact("size of the columns", format_bytes(sum(sizes)), "compressed"))
    tiles.append(Fact("alerts", f"{len(alerts):,}"))
    return tiles


def _group_alerts(alerts: Sequence[Alert], cards: Sequence[Card]) -> list[_Group]:
    """Group alerts by kind: problems first, then the most frequent kinds."""
    positions = {}
    for card in cards:
        for alert in card.alerts:
            positions[alert.column] = card.position
    groups: dict[str, _Group] = {}
    for alert in alerts:
        group = groups.setdefault(alert.kind, _Group(alert.kind))
        group.alerts.append((alert, positions.get(alert.column)))
    return sorted(groups.values(), key=_group_order)


def _group_order(group: _Group) -> tuple[bool, int]:
    alert, _ = group.alerts[0]
    return not alert.is_problem, -len(group.alerts)


def _list_tables(contents: Contents) -> list[_Table]:
    tables = []
    if contents.layout is not None:
        tables.append(_table("layout", "Layout", _LAYOUT, contents.layout))
    if contents.history is not None:
        text = _savings(contents.history, is_recorded=contents.is_recorded)
        tables.append(_table("pruning", "Pruning", text, contents.history))
    return tables


def _savings(history: Answer, *, is_recorded: bool) -> str:
    """Return the savings by pruning, in a sentence."""
    if not len(history):
        return _NO_QUERY if is_recorded else _NO_HISTORY
    total = _sum_cells(history, "files_total")
    read = _sum_cells(history, "files_read")
    skipped = _sum_cells(history, "bytes_skipped")
    return (
        f"The {len(history):,} scans of this session read {read:,} of {total:,} data files, "
        f"and left {format_bytes(skipped)} unread. What left files out stands under reasons."
    )


def _sum_cells(answer: Answer, name: str) -> int:
    return sum(filter(None, read_column(answer, name)))


def _table(section: str, title: str, text: str, answer: Answer) -> _Table:
    if not len(answer):
        return _Table(section, title, text)
    heads = []
    for name in answer.columns:
        head = _Heading(name, column_heading(name), is_number(answer, name))
        heads.append(head)
    rows = [_format_row(row, heads) for row in answer.rows]
    return _Table(section, title, text, tuple(heads), tuple(rows))


def _format_row(row: Mapping[str, Any], heads: Sequence[_Heading]) -> tuple[tuple[_Heading, str], ...]:
    return tuple((head, format_cell(head.name, row[head.name])) for head in heads)


@cache
def _environment() -> Environment:
    return Environment(autoescape=True, trim_blocks=True, loader=FunctionLoader(_read))


@cache
def _read(name: str) -> str:
    content = pkgutil.get_data(__name__, name)
    if content is None:
        raise FileNotFoundError(f"{name} is missing beside {__file__}")
    return content.decode("utf-8")


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return base64.b64encode(digest).decode("ascii")
