"""Differences of the statistics of a table's columns between two snapshots, as `diff` shows them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from metastore.contract import describe_function
from metastore.format.counts import subtract
from metastore.format.table_column import Column
from metastore.format.value_rendering import TIMES, render_average_time, render_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from metastore.reading.summary_rows import Row

_DIFF = describe_function("diff")
MEASURES: tuple[str, ...] = tuple(_DIFF["measures"])
TABLE_MEASURES = ("count", "files")
"""Measures of the table, which are the same in each column's row."""
_NUMBER_TYPES = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal\(.*")
_NUMBER_MEASURES = ("min", "q25", "q50", "q75", "max", "avg", "std")
_DOUBLE = Column(key="", path=("",), type="double", encoding="double")
_SUM_MEASURES = ("avg", "std", "avg_len")
"""Measures computed from floating-point sums, whose last digits depend on the order of the rows."""
_NOISE = 1e-9
"""The largest relative difference at which such a measure counts as unchanged."""

_ColumnRow = Mapping[str, Any]
_N = TypeVar("_N", int, float)


@dataclass(frozen=True)
class _SummaryPair:
    """The rows of two summaries, by column."""

    before: Mapping[str, _ColumnRow]
    after: Mapping[str, _ColumnRow]
    zone: str

    def list_names(self) -> list[str]:
        """Return the columns of both summaries, those of the later one first."""
        return list(dict.fromkeys([*self.after, *self.before]))

    def find_table_values(self, measure: str) -> tuple[int, int] | None:
        """Return a measure of the table before and after, or None if unknown."""
        common = self.before.keys() & self.after.keys()
        old = _find_largest(measure, self.before, common)
        new = _find_largest(measure, self.after, common)
        return _require_both(old, new)

    def compare(self, name: str, measure: str) -> Row | None:
        """Make the row of a measure if it differs, else None."""
        before = self.before.get(name, {})
        after = self.after.get(name, {})
        old = _render(measure, before, self.zone)
        new = _render(measure, after, self.zone)
        if old == new:
            return None
        numbers = _parse_numbers(measure, before, after)
        if numbers is None:
            return _make_row(name, measure, old, new, None)
        if measure in _SUM_MEASURES and _is_noise(measure, numbers, (before, after)):
            return None
        return _make_row(name, measure, old, new, numbers[1] - numbers[0])


def compare_summaries(before: Iterable[Row], after: Iterable[Row], zone: str = "UTC") -> list[Row]:
    """List the measures that differ, the largest change first; measures of the table have one row, without a column.

    Example:
        >>> old = [{"column_name": "id", "column_type": "int", "min": "1", "count": 2}]
        >>> compare_summaries(old, [{**old[0], "min": "-1"}])
        [{'column_name': 'id', 'measure': 'min', 'before': '1', 'after': '-1', 'change': -2.0, 'reason': None}]
    """
    pair = _SummaryPair(_index_by_column(before), _index_by_column(after), zone)
    table_values = {measure: pair.find_table_values(measure) for measure in TABLE_MEASURES}
    rows = list(_compare_table(table_values))
    for name in pair.list_names():
        for measure in MEASURES:
            row = pair.compare(name, measure)
            if row is not None and not _repeats_table(row, table_values.get(measure)):
                rows.append(row)
    return sort_by_change(rows)


def _compare_table(values: Mapping[str, tuple[int, int] | None]) -> Iterator[Row]:
    """Yield the rows of the table's measures that differ."""
    for measure, pair in values.items():
        if pair is None:
            continue
        old, new = pair
        if old != new:
            yield _make_row(None, measure, str(old), str(new), float(new - old))


def _index_by_column(rows: Iterable[Row]) -> dict[str, _ColumnRow]:
    return {row["column_name"]: row for row in rows}


def _find_largest(measure: str, rows: Mapping[str, _ColumnRow], names: Iterable[str]) -> int | None:
    values: set[Any] = {rows[name].get(measure) for name in names}
    return max(values - {None}, default=None)


def _repeats_table(row: Row, table_values: tuple[int, int] | None) -> bool:
    """Return whether a column's row repeats the table's row, or only says that the column is new or gone."""
    if table_values is None:
        return False
    before = row["before"]
    after = row["after"]
    if before is None or after is None:
        return True
    old, new = table_values
    return (before, after) == (str(old), str(new))


def sort_by_change(rows: Sequence[Row]) -> list[Row]:
    """Sort rows: those of the table, then the largest changes, then changes without a number."""
    table_rows = []
    numbers = []
    texts = []
    for row in rows:
        if row["column_name"] is None:
            table_rows.append(row)
        elif row["change"] is not None:
            numbers.append(row)
        else:
            texts.append(row)
    numbers.sort(key=_share_of_change, reverse=True)
    return [*table_rows, *numbers, *texts]


def _share_of_change(row: Row) -> float:
    """Return a change as a share of the larger value, or the change itself of a row without values."""
    change: float = abs(row["change"])
    largest = max(_parse_size(row["before"]), _parse_size(row["after"]))
    if largest == 0:
        return change
    return change / largest


def _parse_size(text: str | None) -> float:
    try:
        return abs(float(text or 0))
    except ValueError:  # the average of dates
        return 0.0


def has_measure(measure: str, row: _ColumnRow) -> bool:
    """Return whether a column has a measure as a number: some need a type, rows, or two values."""
    applies = _APPLIES.get(measure, _never)
    return applies(row)


def _always(_: _ColumnRow) -> bool:
    return True


def _never(_: _ColumnRow) -> bool:
    return False


def _is_fractional(row: _ColumnRow) -> bool:
    return row["column_type"] in ("float", "double")


def _may_have_rows(row: _ColumnRow) -> bool:
    count: int | None = row["count"]
    return count is None or count > 0


def _may_have_numbers(row: _ColumnRow, fewest: int = 1) -> bool:
    if not _is_number_type(row["column_type"]):
        return False
    values = subtract(row["count"], row["null_count"])
    return values is None or values >= fewest


_APPLIES: Mapping[str, Callable[[_ColumnRow], bool]] = {
    "count": _always,
    "null_count": _always,
    "files": _always,
    "nan_count": _is_fractional,
    "inf_count": _is_fractional,
    "null_percentage": _may_have_rows,
    **dict.fromkeys(_NUMBER_MEASURES, _may_have_numbers),
    "std": partial(_may_have_numbers, fewest=2),
}
"""Functions that decide whether a column has a measure as a number, by the measure's name."""


def _make_row(name: str | None, measure: str, before: str | None, after: str | None, change: float | None) -> Row:
    return {
        "column_name": name,
        "measure": measure,
        "before": before,
        "after": after,
        "change": change,
        "reason": None,
    }


def _is_noise(measure: str, numbers: tuple[float, float], rows: tuple[_ColumnRow, _ColumnRow]) -> bool:
    """Return whether the same rows in another order may give the difference."""
    tolerance = 0.0
    if measure == "avg":  # around 0 a relative tolerance is too small
        deviations = [_parse_number(row, "std") or 0 for row in rows]
        tolerance = _NOISE * max(deviations)
    return math.isclose(*numbers, rel_tol=_NOISE, abs_tol=tolerance)


def _render(measure: str, row: _ColumnRow, zone: str) -> str | None:
    value = row.get(measure)
    if value is None:
        return None
    if measure == "avg" and row["column_type"] in TIMES:
        return render_average_time(value, row["column_type"], zone)
    if isinstance(value, float):
        return render_value(value, _DOUBLE)
    return str(value)


def _parse_numbers(measure: str, before: _ColumnRow, after: _ColumnRow) -> tuple[float, float] | None:
    """Return a measure as finite numbers before and after, else None."""
    return _require_both(_parse_number(before, measure), _parse_number(after, measure))


def _require_both(before: _N | None, after: _N | None) -> tuple[_N, _N] | None:
    """Both numbers, or None if one is unknown."""
    if before is None or after is None:
        return None
    return before, after


def _parse_number(row: _ColumnRow, measure: str) -> float | None:
    """Return a measure as a finite number, else None."""
    value: Any = row.get(measure)
    if isinstance(value, str) and not _is_number_type(row["column_type"]):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):  # unknown, the name of a type, or a value of another type
        return None
    if math.isfinite(number):
        return number
    return None


def _is_number_type(column_type: str) -> bool:
    return _NUMBER_TYPES.fullmatch(column_type) is not None
