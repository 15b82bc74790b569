"""How the statistics of a table's columns differ between two snapshots, as `diff` shows it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from metastore.contract import read_contract
from metastore.format.table_column import Column
from metastore.format.value_rendering import render_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


def compare_summaries(before: Iterable[Row], after: Iterable[Row]) -> list[Row]:
    """The measures that differ, column by column: those of the later summary first, then those that it no longer has.

    Example:
        >>> old = [{"column_name": "id", "column_type": "int", "min": "1", "count": 2}]
        >>> compare_summaries(old, [{**old[0], "min": "-1"}])
        [{'column_name': 'id', 'measure': 'min', 'before': '1', 'after': '-1', 'change': -2.0, 'reason': None}]
    """
    old, new = ({row["column_name"]: row for row in rows} for rows in (before, after))
    return [
        found
        for name in dict.fromkeys([*new, *old])
        for measure in MEASURES
        if (found := _compare(name, measure, old.get(name, {}), new.get(name, {})))
    ]


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


def _compare(name: str, measure: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Row | None:
    was, now = _text(old.get(measure)), _text(new.get(measure))
    if was == now or _is_noise(measure, old, new):
        return None
    first, second = _number(old, measure), _number(new, measure)
    change = None if first is None or second is None else second - first
    return {"column_name": name, "measure": measure, "before": was, "after": now, "change": change, "reason": None}


def _is_noise(measure: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a measure differs by no more than it may for the same rows in another order."""
    first, second = _number(old, measure), _number(new, measure)
    if measure not in _OF_SUMS or first is None or second is None:
        return False
    spread = max(_number(old, "std") or 0, _number(new, "std") or 0) if measure == "avg" else 0  # around 0 none is left
    return math.isclose(first, second, rel_tol=_NOISE, abs_tol=_NOISE * spread)


def _text(value: Any) -> str | None:
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
