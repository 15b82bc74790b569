"""Tables as the reading verbs tell of them, of any width, and a reader of pages."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from html.parser import HTMLParser
from itertools import pairwise

from metastore.answers import Answer, Summary
from metastore.contract import describe_function
from metastore.display.report.contents import ColumnContents, Contents

HOSTILE = "</script><script>alert(1)</script>"
ROWS = 100_000
_VOID = ("meta", "input", "path", "rect")


def names_of(function):
    return tuple(text.split()[0] for text in describe_function(function)["columns"])


def answer(function, rows, kind=Answer):
    columns = names_of(function)
    return kind(
        kind=function,
        subject="cat.db.t",
        columns=columns,
        rows=tuple({**dict.fromkeys(columns), **row} for row in rows),
    )


def summary_row(name, column_type="bigint", **more):
    return {
        "column_name": name, "column_type": column_type, "min": "1", "max": "99999", "approx_unique": 60_000,
        "avg": 5e4, "std": 1234.5678, "count": ROWS, "null_count": 321, "null_percentage": 0.321,
        "nan_count": 0, "inf_count": 0, "avg_len": 8.0, "max_len": 8, "size_bytes": 812_345, "exact": True,
        "distinct_error": 0.01625, "files": 12, "files_total": 12,
        "snapshot": "17", "current": True, "analyzed_at": datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc), **more,
    }  # fmt: skip


def column(name, column_type="bigint", values=("a value of some length",) * 8, edges=range(0, 100_001, 500), **more):
    """A column of which everything is kept, its edges as texts."""
    edges = list(map(str, edges))
    bins = [
        {"bin": i, "lo": lo, "hi": hi, "count": 1 + i % 7, "distinct": 7, "exact": True}
        for i, (lo, hi) in enumerate(pairwise(edges))
    ]
    frequent = [
        {
            "value": f"{value} {i}" if value else value,
            "frequency": 9000 - i,
            "fraction": 0.09,
            "exact": True,
            "error": 0,
        }
        for i, value in enumerate(values)
    ]
    quantiles = [{"probability": p, "value": edges[0], "exact": False, "error": 0.002} for p in (0.01, 0.5, 0.99)]
    return ColumnContents(
        summary_row(name, column_type, **more),
        *(answer("histogram", bins), answer("frequencies", frequent), answer("quantiles", quantiles)),
    )


def contents(*columns, **more):
    rows = answer("summary", [column_.summary for column_ in columns], Summary)
    return Contents(summary=replace(rows, current=True), columns=columns, **more)


class Page(HTMLParser):
    """The elements, attributes and texts of an HTML page; elements that do not nest are refused."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.texts, self._open = [], [], []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open[-1:] not in (["script"], ["style"]):
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]
