"""Records of the page: a card has everything that the page shows of one column, as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metastore.display.report.alerts import Alert


@dataclass(frozen=True)
class Fact:
    """A name and its value.

    Attributes:
        note: A remark on the value, such as its standard error.
        is_number: Whether the value is a number, which is never broken into two lines.
    """

    name: str
    text: str
    note: str = ""
    is_number: bool = False


@dataclass(frozen=True)
class Value:
    """A frequent value.

    Attributes:
        share: Its share of all values, as text.
        width: The same as a percentage.
    """

    text: str
    count: str
    share: str
    width: float


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A histogram as one SVG shape.

    Attributes:
        path: The bars.
        before: The outline of the earlier histogram; empty without a comparison.
        lo: The start of the axis, as text.
        hi: The end of the axis, as text.
        description: The histogram in a sentence.
        bars: The values and the share of each bar, separated by tabs and line breaks for the page's script.
        highest: The share of the values that a bar of full height stands for.
    """

    path: str
    before: str
    lo: str
    hi: str
    description: str
    bars: str
    highest: str


@dataclass(frozen=True)
class Change:
    """A measure that differs from the earlier snapshot."""

    measure: str
    before: str
    after: str
    change: str


@dataclass(frozen=True, kw_only=True)
class Card:
    """A column as a page shows it.

    Attributes:
        position: Its position among the columns.
        name: Its name.
        type: Its type.
        cells: Its row in the table of all columns: the text and the sort key of each cell.
        facts: Its numbers.
        width: The width class of these numbers in the page's style.
        quantiles: Its quantiles, by names such as `5 %`.
        quantiles_width: The width class of the quantiles.
        precision: The error of the quantiles, as text.
        picture: Its histogram, or None.
        values: Its most frequent values.
        remark: The reason why histogram or values are missing.
        alerts: Its alerts.
        changes: Its differences from the earlier snapshot.
        drift: The population stability index since the earlier snapshot, as text; empty if unknown.
    """

    position: int
    name: str
    type: str
    cells: tuple[tuple[str, float | None], ...]
    facts: tuple[Fact, ...]
    width: str
    quantiles: tuple[Fact, ...]
    quantiles_width: str
    precision: str
    picture: Picture | None
    values: tuple[Value, ...]
    remark: str
    alerts: tuple[Alert, ...]
    changes: tuple[Change, ...]
    drift: str
