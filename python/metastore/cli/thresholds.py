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
_SHOWN = 3
_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True)
class Unknown:
    """Columns of which a measure is not known.

    Attributes:
        among: How many columns may have it.
        reasons: Why, by the column's name.
    """

    among: int
    reasons: Mapping[str, str]

    def tell(self, measure: str, table: str) -> str:
        """A line that says so, and what would help."""
        names = [*list(self.reasons)[:_SHOWN], *(["..."] if len(self.reasons) > _SHOWN else [])]
        why = "; ".join(dict.fromkeys(self.reasons.values()))
        return (
            f"{measure} is unknown for {len(self.reasons)} of {self.among} columns and crosses nothing there: "
            f"{', '.join(names)} ({why}). {write_analyze(table)} keeps it of the current snapshot."
        )


@dataclass(frozen=True)
class Threshold:
    """A bound for the change of a measure.

    Attributes:
        text: As it was given.
        measure: Which measure of `diff`.
        sign: How the change compares with the limit where it is crossed.
        limit: The limit: a difference, or a share of the value before where it was given in percent.
        is_share: Whether that.
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
        return bool(_COMPARE[self.sign](self._measured(row), self.limit))

    def _measured(self, row: Mapping[str, Any]) -> float:
        """The change in the threshold's unit: percent of what was before, or the difference."""
        change: float = row["change"]
        if not self.is_share:
            return change
        whole = abs(float(row["before"]))
        return 100 * change / whole if whole else change * float("inf")

    def tell_crossed(self, rows: Iterable[Mapping[str, Any]]) -> list[str]:
        """A line for each column whose change crosses it; what is true of the whole table is told once."""
        unit = " %" if self.is_share else ""
        told: dict[str, None] = {}
        for row in filter(self.is_crossed, rows):
            subject = "" if self.measure in summary_changes.TABLE_MEASURES else f"{row['column_name']}: "
            told[f"{subject}{self.text}, the change is {self._measured(row):.6g}{unit}"] = None
        return list(told)

    def list_unknown(
        self, rows: Iterable[Mapping[str, Any]], before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
    ) -> Unknown:
        """Of which columns its measure is not known, though they may have it.

        Args:
            rows: Those of `diff`.
            before: The summary before; needed where the measure is none of distributions.
            after: The one after.
        """
        if self.needs_distributions:
            own = [row for row in rows if row["measure"] == self.measure and row["reason"] != ONLY_COUNTS]
            return Unknown(len(own), {row["column_name"]: row["reason"] for row in own if row["change"] is None})
        former = {row["column_name"]: row for row in before}
        both = [(former[row["column_name"]], row) for row in after if row["column_name"] in former]
        asked = [sides for sides in both if all(summary_changes.has_measure(self.measure, side) for side in sides)]
        missing = {}
        for old, new in asked:
            lacking = [when for when, row in (("before", old), ("after", new)) if row[self.measure] is None]
            if lacking:
                missing[new["column_name"]] = f"not known {' and '.join(lacking)}"
        return Unknown(len(asked), missing)

    @property
    def needs_distributions(self) -> bool:
        """Whether its measure is one of distributions."""
        return self.measure in distribution_changes.MEASURES


def parse_threshold(text: str) -> Threshold:
    """A threshold as it is typed: a measure, `>` or `<`, with `=` or without, and a number, or a number with `%`.

    Raises:
        InvalidArgument: It is not of that form, names no measure, or holds where nothing has changed.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise InvalidArgument(
            "--fail-on", f"{text} is not of the form MEASURE>NUMBER", "Such as psi>0.2 or count<-10%."
        )
    measure, sign, number, percent = found.groups()
    known = [*distribution_changes.MEASURES, *summary_changes.MEASURES]
    if measure not in known:
        hint = suggest_names(measure, known) or f"Known: {', '.join(known)}."
        raise InvalidArgument("--fail-on", f"{measure} is no measure of diff", hint)
    if percent and measure in distribution_changes.MEASURES:
        raise InvalidArgument("--fail-on", f"{measure} has no value before that {number} % could be a share of")
    threshold = Threshold(text.strip(), measure, sign, float(number), bool(percent))
    if _COMPARE[sign](0, threshold.limit):
        raise InvalidArgument("--fail-on", f"{text} holds without a change", f"For any growth say {measure}>0.")
    return threshold
