"""The facts of a column on a page: bounds, moments, counts, length, age, size and quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.display.bars import read_positions
from metastore.display.cells import (
    displayed_value,
    format_brief_cell,
    format_cell,
    format_marked_cell,
    format_value,
    is_approximate,
)
from metastore.display.columns import read_column
from metastore.display.numbers import APPROXIMATE, format_bytes, format_number, is_numeric, mark_approximate
from metastore.display.report.alerts import format_share
from metastore.display.report.card import Fact
from metastore.display.shortening import is_cut, shorten_alike
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from metastore.answers import Answer

_LONGEST = 40
_TEXT_TYPES = ("string", "binary", "char", "varchar")
_TIME_FORMATS = {
    "date": "%Y-%m-%d",
    "timestamp": "%Y-%m-%d %H:%M:%S",
    "timestamp_ntz": "%Y-%m-%d %H:%M:%S",
}
_COUNTS = {
    "null_count": "nulls",
    "nan_count": "NaN",
    "inf_count": "infinite",
}
_WIDTHS = (
    (11, ""),
    (15, "wide"),
    (21, "wider"),
)
"""Numbers of digits, and the CSS classes that have room for them."""


def list_facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the facts of a row of `summary`, in the order in which the page shows them."""
    if row["column_type"] != "boolean":  # its two values are listed with their counts
        yield from _bound_facts(row)
        yield from _moment_facts(row)
    yield from _distinct_facts(row)
    yield from _count_facts(row)
    yield from _length_facts(row)
    yield from _age_facts(row)
    yield from _size_facts(row)


def _bound_facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the minimum and maximum, or the only value."""
    minimum, maximum = format_bounds(row)
    if row["min"] == row["max"]:
        yield from _number_facts(row, "min", "only value", minimum)
        return
    yield from _number_facts(row, "min", "minimum", minimum)
    yield from _number_facts(row, "max", "maximum", maximum)


def _moment_facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the mean and standard deviation."""
    for name, heading in (("avg", "mean"), ("std", "deviation")):
        text = format_brief_cell(name, displayed_value(row, name))
        yield from _number_facts(row, name, heading, text)


def _number_facts(row: Mapping[str, Any], name: str, heading: str, text: str) -> Iterator[Fact]:
    """Yield the fact of a cell, marked if it is approximate; none for an empty cell."""
    if displayed_value(row, name) is None:
        return
    marked_text = mark_approximate(text, is_approximate=is_approximate(row, name))
    yield Fact(heading, marked_text, is_number=is_numeric(row["column_type"]))


def format_bounds(row: Mapping[str, Any]) -> list[str]:
    """Return the minimum and maximum as texts; long ones are cut so that they still differ."""
    minimum = format_cell("", displayed_value(row, "min"))
    maximum = format_cell("", displayed_value(row, "max"))
    return _shorten_alike([minimum, maximum])


def _shorten_alike(texts: Sequence[str]) -> list[str]:
    return [format_brief_cell("", text) for text in shorten_alike(texts, _LONGEST)]


def _distinct_facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    if row["approx_unique"] is None:
        return
    note = ""
    error = row["distinct_error"]
    if error:
        note = f"standard error {100 * error:.1f}\u00a0%"
    yield Fact("distinct", format_marked_cell(row, "approx_unique"), note)


def _count_facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield nulls, also if their number is 0, and NaN and infinite values if there are any."""
    if row["null_count"] == 0:
        yield Fact("nulls", "0")
    for name, heading in _COUNTS.items():
        if row[name]:
            share = _describe_share(row[name], row["count"])
            yield Fact(heading, f"{row[name]:,}", share)


def _describe_share(count: int, rows: int | None) -> str:
    return format_share(count / rows) if rows else ""


def _length_facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the mean and greatest length of texts and byte strings."""
    if row["max_len"] is None or not row["column_type"].startswith(_TEXT_TYPES):
        return
    length = format_number(row["avg_len"] or 0)
    unit = "byte" if length == "1" else "bytes"
    yield Fact("length", f"{length} {unit}", f"at most {row['max_len']:,}")


def _age_facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the age of the newest value when the table was analyzed."""
    time_format = _TIME_FORMATS.get(row["column_type"])
    if time_format is None or row["analyzed_at"] is None:
        return
    positions, _ = read_positions([row["max"], row["analyzed_at"].strftime(time_format)])
    if positions:
        newest, analysis = positions
        yield Fact("newest", _describe_age(round(analysis - newest)))


def _describe_age(days: int) -> str:
    if days == 0:
        return "day of the analysis"
    unit = "day" if abs(days) == 1 else "days"
    direction = "before" if days > 0 else "after"
    return f"{abs(days):,} {unit} {direction} the analysis"


def _size_facts(row: Mapping[str, Any]) -> Iterator[Fact]:
    if row["size_bytes"] is not None:
        yield Fact("size", format_bytes(row["size_bytes"]))


def list_quantiles(answer: Answer | None, row: Mapping[str, Any]) -> list[Fact]:
    """Return the quantiles of a column; a single fact if their texts were cut to the same beginning."""
    if answer is None:
        return []
    quantiles = [quantile for quantile in answer.rows if quantile["value"] is not None]
    if _are_cut_to_the_same(quantiles):
        return [_joint_fact(quantiles)]
    texts = [make_visible(format_value(quantile["value"], row)) for quantile in quantiles]
    facts = []
    for quantile, text in zip(quantiles, _shorten_alike(texts), strict=True):
        marked_text = mark_approximate(text, is_approximate=_is_approximate_quantile(quantile))
        facts.append(Fact(_quantile_name(quantile), marked_text, is_number=is_numeric(row["column_type"])))
    return facts


def _are_cut_to_the_same(quantiles: Sequence[Mapping[str, Any]]) -> bool:
    if len(quantiles) < 2 or not is_cut(quantiles[0]["value"]):
        return False
    return len({quantile["value"] for quantile in quantiles}) == 1


def _joint_fact(quantiles: Sequence[Mapping[str, Any]]) -> Fact:
    first = quantiles[0]
    name = f"{_quantile_name(first)} to {_quantile_name(quantiles[-1])}"
    return Fact(name, make_visible(first["value"]), "what follows is not kept")


def _quantile_name(quantile: Mapping[str, Any]) -> str:
    return f"{format_number(100 * quantile['probability'])} %"


def _is_approximate_quantile(quantile: Mapping[str, Any]) -> bool:
    """Return whether the rank may be off, or the value without an ellipsis that says so."""
    if quantile["error"] != 0:
        return True
    return not quantile["exact"] and not is_cut(quantile["value"])


def describe_precision(answer: Answer | None) -> str:
    """Return the possible error of the quantiles; empty if this is unknown."""
    if not answer:
        return ""
    errors = read_column(answer, "error")
    if None in errors:
        return ""
    error = max(errors)
    ranks = f"ranks within {100 * error:.2g} %" if error else "ranks exact"
    if any(map(is_cut, read_column(answer, "value"))):
        return f"{ranks}, of long texts the beginning"
    return ranks if error else "exact"


def fit_width(facts: Iterable[Fact]) -> str:
    """Return the CSS class for the width of the longest number."""
    digits_of_numbers = [_count_digits(fact.text) for fact in facts if fact.is_number]
    longest = max(digits_of_numbers, default=0.0)
    for digits, style in _WIDTHS:
        if longest <= digits:
            return style
    return "widest"


def _count_digits(text: str) -> float:
    """Measure a number in digits: a comma or point is half as wide, the mark of approximate numbers half wider."""
    punctuation = text.count(",") + text.count(".")
    return len(text) - punctuation / 2 + text.count(APPROXIMATE) / 2
