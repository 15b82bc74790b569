"""How the statistics of a table's columns differ between two snapshots, as `diff` shows it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from metastore.contract import read_contract
from metastore.format.table_column import Column
from metastore.format.value_rendering import TIMES, render_average_time, render_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.reading.summary_rows import Row

MEASURES: tuple[str, ...] = tuple(
    next(one["measures"] for one in read_contract("functions")["functions"] if one["name"] == "diff")
)
_NUMBER = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal\(.*")
OF_TABLE = ("count", "files")
"""Measures of the whole table, which are the same in each column's row."""
_OF_NUMBERS = ("min", "q25", "q50", "q75", "max", "avg", "std")
_DOUBLE = Column("", ("",), "double", "double")
_OF_SUMS = ("avg", "std", "avg_len")
"""Measures that are made of floating-point sums: another order of the same rows changes their last digits."""
_NOISE = 1e-9
"""So much of such a measure is no difference."""


def compare_summaries(before: Iterable[Row], after: Iterable[Row], zone: str = "UTC") -> list[Row]:
    """The measures that differ, the largest change first; what is the table's is told once, without a column.

    Example:
        >>> old = [{"column_name": "id", "column_type": "int", "min": "1", "count": 2}]
        >>> compare_summaries(old, [{**old[0], "min": "-1"}])
        [{'column_name': 'id', 'measure': 'min', 'before': '1', 'after': '-1', 'change': -2.0, 'reason': None}]
    """
    old, new = ({row["column_name"]: row for row in rows} for rows in (before, after))
    both = [(old[name], new[name]) for name in new if name in old]
    counts = {measure: _of_table(measure, both) for measure in OF_TABLE}
    found = [
        _make_row(None, measure, str(ends[0]), str(ends[1]), float(ends[1] - ends[0]))
        for measure, ends in counts.items()
        if ends is not None and ends[0] != ends[1]
    ]
    for name in dict.fromkeys([*new, *old]):
        for measure in MEASURES:
            row = _compare(name, measure, old.get(name, {}), new.get(name, {}), zone)
            if row is not None and not _is_told_of_table(row, counts.get(measure)):
                found.append(row)
    return sort_by_change(found)


def _of_table(measure: str, both: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> tuple[int, int] | None:
    """A measure of the whole table in both snapshots, by the columns of both; None where it is not known."""
    sides = [[row[measure] for row in rows if row.get(measure) is not None] for rows in zip(*both, strict=True)]
    return (max(sides[0]), max(sides[1])) if sides and all(sides) else None


def _is_told_of_table(row: Row, ends: tuple[int, int] | None) -> bool:
    """Whether a row of a column says what the table's row says, or only that the column is new or gone."""
    if ends is None:
        return False
    was, now = row["before"], row["after"]
    return was is None or now is None or (was, now) == (str(ends[0]), str(ends[1]))


def sort_by_change(rows: Sequence[Row]) -> list[Row]:
    """What is true of the whole table first, then the largest changes, then what is no number."""
    of_table = [row for row in rows if row["column_name"] is None]
    numbers = [row for row in rows if row["column_name"] is not None and row["change"] is not None]
    texts = [row for row in rows if row["column_name"] is not None and row["change"] is None]
    return [*of_table, *sorted(numbers, key=_share_of_change, reverse=True), *texts]


def _share_of_change(row: Row) -> float:
    """A change as a share of what it changed; that of a distribution is one already."""
    change: float = abs(row["change"])
    whole = max((_parse_size(row[end]) for end in ("before", "after") if row[end] is not None), default=0.0)
    return change / whole if whole else change


def _parse_size(text: str) -> float:
    try:
        return abs(float(text))
    except ValueError:  # the average of dates
        return 0.0


def has_measure(measure: str, row: Mapping[str, Any]) -> bool:
    """Whether a measure of a column is a number where all is known of it: of few values, or none, some are not."""
    if measure in ("count", "null_count", "files"):
        return True
    if measure in ("nan_count", "inf_count"):
        return row["column_type"] in ("float", "double")
    count: int | None = row["count"]
    nulls: int | None = row["null_count"]
    if measure == "null_percentage":
        return count is None or count > 0
    if measure not in _OF_NUMBERS or not _NUMBER.fullmatch(row["column_type"]):
        return False
    return count is None or nulls is None or count - nulls > (measure == "std")


def _compare(name: str, measure: str, old: Mapping[str, Any], new: Mapping[str, Any], zone: str) -> Row | None:
    was, now = _text(measure, old, zone), _text(measure, new, zone)
    if was == now or _is_noise(measure, old, new):
        return None
    first, second = _number(old, measure), _number(new, measure)
    change = None if first is None or second is None else second - first
    return _make_row(name, measure, was, now, change)


def _make_row(name: str | None, measure: str, before: str | None, after: str | None, change: float | None) -> Row:
    return {
        "column_name": name,
        "measure": measure,
        "before": before,
        "after": after,
        "change": change,
        "reason": None,
    }


def _is_noise(measure: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a measure differs by no more than it may for the same rows in another order."""
    first, second = _number(old, measure), _number(new, measure)
    if measure not in _OF_SUMS or first is None or second is None:
        return False
    spread = max(_number(old, "std") or 0, _number(new, "std") or 0) if measure == "avg" else 0  # around 0 none is left
    return math.isclose(first, second, rel_tol=_NOISE, abs_tol=_NOISE * spread)


def _text(measure: str, row: Mapping[str, Any], zone: str) -> str | None:
    value = row.get(measure)
    if measure == "avg" and value is not None and row["column_type"] in TIMES:
        return render_average_time(value, row["column_type"], zone)
    return render_value(value, _DOUBLE) if isinstance(value, float) else None if value is None else str(value)


def _number(row: Mapping[str, Any], measure: str) -> float | None:
    value = row.get(measure)
    if value is None or (isinstance(value, str) and not _NUMBER.fullmatch(row["column_type"])):
        return None
    try:
        number = float(value)
    except ValueError:  # a type, or a value that another type wrote
        return None
    return number if math.isfinite(number) else None
