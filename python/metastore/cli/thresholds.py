"""Changes that fail a pipeline: `--fail-on "psi>0.2"`."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.cli.shell_hints import write_analyze
from metastore.errors import InvalidArgument
from metastore.reading import distribution_changes, summary_changes
from metastore.reading.distribution_changes import ONLY_COUNTS
from metastore.suggestions import suggest_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_FORM = re.compile(r"\s*([a-z0-9_]+)\s*(>=|<=|>|<)\s*([-+]?\d+(?:\.\d*)?)\s*(%?)\s*")
_MOST_NAMES = 3
_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True)
class Unknown:
    """Columns whose values of a measure are unknown.

    Attributes:
        columns: The number of columns that may have it.
        reasons: The reasons, by the names of the columns without it.
    """

    columns: int
    reasons: Mapping[str, str]

    def describe(self, measure: str, table: str) -> str:
        """Write a line about them, with the command that would help."""
        names = list(self.reasons)
        if len(names) > _MOST_NAMES:
            names = [*names[:_MOST_NAMES], "..."]
        reasons = "; ".join(dict.fromkeys(self.reasons.values()))
        return (
            f"{measure} is unknown for {len(self.reasons)} of {self.columns} columns and crosses nothing there: "
            f"{', '.join(names)} ({reasons}). {write_analyze(table)} keeps it of the current snapshot."
        )


@dataclass(frozen=True)
class Threshold:
    """A bound for the change of a measure.

    Attributes:
        text: The words of the user.
        measure: The name of a measure of `diff`.
        sign: The comparison of the change with the limit.
        limit: The limit: a difference, or a percentage of the value before.
        is_share: Whether the limit is a percentage.
    """

    text: str
    measure: str
    sign: str
    limit: float
    is_share: bool

    def is_crossed(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of `diff` crosses it; an unknown change does not."""
        if row["measure"] != self.measure or row["change"] is None:
            return False
        return bool(_COMPARE[self.sign](self._measured_change(row), self.limit))

    def _measured_change(self, row: Mapping[str, Any]) -> float:
        """The change in the threshold's unit: a difference, or a percentage of the value before."""
        change: float = row["change"]
        if not self.is_share:
            return change
        before = abs(float(row["before"]))
        if not before:
            return change * float("inf")
        return 100 * change / before

    def describe_crossings(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """Write a line for each column whose change crosses it; one line for a measure of the whole table."""
        lines = map(self._describe_crossing, filter(self.is_crossed, rows))
        return list(dict.fromkeys(lines))

    def _describe_crossing(self, row: Mapping[str, Any]) -> str:
        unit = " %" if self.is_share else ""
        text = f"{self.text}, the change is {self._measured_change(row):.6g}{unit}"
        if self.measure in summary_changes.TABLE_MEASURES:
            return text
        return f"{row['column_name']}: {text}"

    def list_unknown(
        self, rows: Iterable[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
    ) -> Unknown:
        """List the columns whose values of the measure are unknown, though they may have it.

        Args:
            rows: The rows of `diff`.
            before: The summary before; needed unless the measure is one of distributions.
            after: The summary after.
        """
        if self.needs_distributions:
            return self._list_unknown_distances(rows)
        rows_before = {row["column_name"]: row for row in before}
        columns = 0
        missing: dict[str, str] = {}
        for row_after in after:
            name = row_after["column_name"]
            sides = {"before": rows_before.get(name), "after": row_after}
            if all(map(self._may_have_measure, sides.values())):
                columns += 1
                missing |= self._find_missing(name, sides)
        return Unknown(columns, missing)

    def _may_have_measure(self, row: Mapping[str, Any] | None) -> bool:
        return row is not None and summary_changes.has_measure(self.measure, row)

    def _find_missing(self, name: str, sides: Mapping[str, Any]) -> dict[str, str]:
        """Return the reason why the measure of a column is unknown, by its name; empty if it is known."""
        missing = [side for side, row in sides.items() if row[self.measure] is None]
        if not missing:
            return {}
        return {name: f"not known {' and '.join(missing)}"}

    def _list_unknown_distances(self, rows: Iterable[Mapping[str, Any]]) -> Unknown:
        columns = 0
        missing: dict[str, str] = {}
        for row in rows:
            if row["measure"] != self.measure or row["reason"] == ONLY_COUNTS:
                continue
            columns += 1
            if row["change"] is None:
                missing[row["column_name"]] = row["reason"]
        return Unknown(columns, missing)

    @property
    def needs_distributions(self) -> bool:
        """Whether its measure is one of distributions."""
        return self.measure in distribution_changes.MEASURES


def parse_threshold(text: str) -> Threshold:
    """Parse a threshold: a measure, `>`, `>=`, `<` or `<=`, and a number, or a number with `%`.

    Raises:
        InvalidArgument: It is not of that form, names no measure, or holds where nothing has changed.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        reason = f"{text} is not of the form MEASURE>NUMBER"
        raise InvalidArgument("--fail-on", reason, "Such as psi>0.2 or count<-10%.")
    measure, sign, number, percent = match.groups()
    _require_measure(measure)
    if percent and measure in distribution_changes.MEASURES:
        raise InvalidArgument("--fail-on", f"{measure} has no value before that {number} % could be a share of")
    limit = float(number)
    if _COMPARE[sign](0, limit):
        raise InvalidArgument("--fail-on", f"{text} holds without a change", f"For any growth say {measure}>0.")
    return Threshold(text=text.strip(), measure=measure, sign=sign, limit=limit, is_share=bool(percent))


def _require_measure(name: str) -> None:
    measures = [*distribution_changes.MEASURES, *summary_changes.MEASURES]
    if name not in measures:
        hint = suggest_names(name, measures) or f"Known: {', '.join(measures)}."
        raise InvalidArgument("--fail-on", f"{name} is no measure of diff", hint)
