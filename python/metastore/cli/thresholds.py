"""Changes that fail a pipeline: `--fail-on "psi>0.2"`."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.errors import InvalidArgument
from metastore.reading import distribution_changes, summary_changes
from metastore.suggestions import suggest_names

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORM = re.compile(r"\s*([a-z0-9_]+)\s*(>=|<=|>|<)\s*([-+]?\d+(?:\.\d*)?)\s*(%?)\s*")
_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


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
        change: float = row["change"]
        if self.is_share:
            whole = abs(float(row["before"]))
            change = 100 * change / whole if whole else change * float("inf")
        return bool(_COMPARE[self.sign](change, self.limit))

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
