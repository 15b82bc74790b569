"""What in a table's statistics deserves a look, by rules that say their thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.display.cells import format_number, top_share
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from metastore.answers import Answer
    from metastore.display.report.contents import Contents


MANY_NULLS, MOST_ROWS, ALL_BUT_FEW = 0.5, 0.9, 0.99
"""From which share of the rows on nulls, one value and values that occur once are worth a remark."""
FEW_ROWS = 100
"""In smaller columns, values that are all different mean nothing."""
MANY_FILES, MOST_FILES = 4, 0.5
"""A look-up that reads so large a share of so many data files is poorly served by the table's order."""
DRIFT = 0.2
"""The population stability index from which a distribution counts as changed; from 0.1 on it is said to have moved."""
_PROBLEMS = ("all null", "NaN", "drifted", "gone", "other type")
_KEYS = ("tinyint", "smallint", "int", "bigint", "string", "decimal", "binary")


@dataclass(frozen=True)
class Alert:
    """Something about a column that deserves a look.

    Attributes:
        column: The column.
        kind: One or two words for it; alerts of one kind stand together.
        text: A sentence with its numbers.
    """

    column: str
    kind: str
    text: str

    @property
    def name(self) -> str:
        """The column's name as it is shown."""
        return make_visible(self.column)

    @property
    def is_problem(self) -> bool:
        """Whether it is rather a mistake than a property."""
        return self.kind in _PROBLEMS


def find_alerts(contents: Contents) -> list[Alert]:
    """The alerts of a table, in the order of its columns."""
    found = [alert for row in contents.summary.rows for rule in _RULES if (alert := rule(row))]
    files = max((row["files_total"] or 0 for row in contents.summary.rows), default=0)
    found += _layout_alerts(contents.layout, files)
    found += _change_alerts(contents.changes)
    places = {row["column_name"]: place for place, row in enumerate(contents.summary.rows)}
    return sorted(found, key=lambda alert: places.get(alert.column, len(places)))


def _all_null(row: Mapping[str, Any]) -> Alert | None:
    if not row["count"] or row["null_count"] != row["count"]:
        return None
    return Alert(row["column_name"], "all null", "Every row is null.")


def _many_nulls(row: Mapping[str, Any]) -> Alert | None:
    share = _share(row["null_count"], row["count"])
    if share is None or not MANY_NULLS <= share < 1:
        return None
    return Alert(row["column_name"], "many nulls", f"{format_share(share)} of the rows are null.")


def _nan(row: Mapping[str, Any]) -> Alert | None:
    share = _share(row["nan_count"], row["count"])
    if not share:
        return None
    return Alert(row["column_name"], "NaN", f"{row['nan_count']:,} values are NaN, {format_share(share)} of the rows.")


def _infinite(row: Mapping[str, Any]) -> Alert | None:
    share = _share(row["inf_count"], row["count"])
    if not share:
        return None
    text = f"{row['inf_count']:,} values are infinite, {format_share(share)} of the rows: the mean is without."
    return Alert(row["column_name"], "infinite", text)


def _constant(row: Mapping[str, Any]) -> Alert | None:
    if row["approx_unique"] != 1 or (row["count"] or 0) < 2:
        return None
    nulls = " or null" if row["null_count"] else ""
    return Alert(row["column_name"], "constant", f"Every row has the same value{nulls}.")


def _key_like(row: Mapping[str, Any]) -> Alert | None:
    values = _values(row)
    if values is None or values < FEW_ROWS or not str(row["column_type"]).startswith(_KEYS):
        return None
    share, error = _share(row["approx_unique"], values), row["distinct_error"]
    if share is None or share < ALL_BUT_FEW:
        return None
    said = "All values are different" if share == 1 and error == 0 else "Nearly all values are different"
    return Alert(row["column_name"], "key-like", f"{said}: {row['approx_unique']:,} of {values:,}.")


def _skewed(row: Mapping[str, Any]) -> Alert | None:
    share = top_share(row)
    if share is None or share < MOST_ROWS or row["approx_unique"] == 1 or row["column_type"] == "boolean":
        return None
    return Alert(row["column_name"], "skewed", f"One value makes {format_share(share)} of all values.")


_RULES: Sequence[Callable[[Mapping[str, Any]], Alert | None]] = (
    *(_all_null, _many_nulls, _nan, _infinite),
    *(_constant, _key_like, _skewed),
)


def _layout_alerts(layout: Answer | None, files: int) -> Iterable[Alert]:
    for row in layout.rows if layout is not None and files >= MANY_FILES else ():
        read = row["files_per_lookup"]
        if row["advice"] and read is not None and read >= MOST_FILES * files:
            said = f"A look-up of one value reads {format_number(read)} of {files:,} data files."
            yield Alert(row["column_name"], "badly clustered", said)


def _change_alerts(changes: Answer | None) -> Iterable[Alert]:
    for row in changes.rows if changes is not None else ():
        name, change = row["column_name"], row["change"]
        if row["measure"] == "psi" and change is not None and change >= DRIFT:
            yield Alert(name, "drifted", f"Its values are distributed otherwise: psi is {change:.2f}.")
        elif row["measure"] == "column_type" and row["before"] is None:
            yield Alert(name, "new", "It was not there before.")
        elif row["measure"] == "column_type" and row["after"] is None:
            yield Alert(name, "gone", "It is no longer there.")
        elif row["measure"] == "column_type":
            said = make_visible(f"Its type was {row['before']} and is {row['after']}.")
            yield Alert(name, "other type", said)


def _values(row: Mapping[str, Any]) -> int | None:
    return None if row["count"] is None or row["null_count"] is None else row["count"] - row["null_count"]


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def format_share(share: float) -> str:
    """A share in percent: what is neither none nor all does not look like it."""
    percent = 100 * share
    if 0 < percent < 0.01:
        return "< 0.01 %"
    if 99.99 < percent < 100:
        return "> 99.99 %"
    number = f"{percent:.2f}".removesuffix(".00") if percent < 10 else f"{percent:.1f}".removesuffix(".0")
    return f"{number} %"
