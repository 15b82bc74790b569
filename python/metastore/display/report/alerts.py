"""Alerts on a table's statistics, by rules with named thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.display.cells import count_values, top_share
from metastore.display.columns import read_column
from metastore.display.numbers import format_number
from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from metastore.answers import Answer
    from metastore.display.report.contents import Contents


MANY_NULLS, SKEWED, KEY_LIKE = 0.5, 0.9, 0.99
"""The least shares, for an alert, of nulls, of the most frequent value, and of distinct values."""
FEW_ROWS = 100
"""In a column with fewer values, it means nothing that all differ."""
MANY_FILES, MOST_FILES = 4, 0.5
"""A look-up that reads at least this share of at least this many data files shows bad clustering."""
DRIFT = 0.2
"""The least population stability index of a changed distribution; 0.1 to 0.2 is usually called a slight change."""
_PROBLEMS = ("all null", "NaN", "drifted", "gone", "other type")
_KEYS = ("tinyint", "smallint", "int", "bigint", "string", "decimal", "binary")


@dataclass(frozen=True)
class Alert:
    """A property of a column that deserves attention.

    Attributes:
        column: The column.
        kind: Its kind in one or two words; the page groups alerts by kind.
        text: A sentence with its numbers.
    """

    column: str
    kind: str
    text: str

    @property
    def name(self) -> str:
        """The column's name as the page shows it."""
        return make_visible(self.column)

    @property
    def is_problem(self) -> bool:
        """Whether it is probably a mistake in the data."""
        return self.kind in _PROBLEMS


def find_alerts(contents: Contents) -> list[Alert]:
    """The alerts of a table, in the order of its columns."""
    rows = contents.summary.rows
    files = max(filter(None, read_column(contents.summary, "files_total")), default=0)
    alerts = [
        *_column_alerts(rows),
        *_layout_alerts(contents.layout, files),
        *_change_alerts(contents.changes),
    ]
    positions = {row["column_name"]: position for position, row in enumerate(rows)}
    return sorted(alerts, key=lambda alert: positions.get(alert.column, len(positions)))


def _column_alerts(rows: Iterable[Mapping[str, Any]]) -> Iterable[Alert]:
    for row in rows:
        yield from filter(None, [rule(row) for rule in _RULES])


def _all_null(row: Mapping[str, Any]) -> Alert | None:
    if _share(row["null_count"], row["count"]) < 1:
        return None
    return Alert(
        column=row["column_name"],
        kind="all null",
        text="Every row is null.",
    )


def _many_nulls(row: Mapping[str, Any]) -> Alert | None:
    share = _share(row["null_count"], row["count"])
    if not MANY_NULLS <= share < 1:
        return None
    return Alert(
        column=row["column_name"],
        kind="many nulls",
        text=f"{format_share(share)} of the rows are null.",
    )


def _nan(row: Mapping[str, Any]) -> Alert | None:
    share = _share(row["nan_count"], row["count"])
    if not share:
        return None
    return Alert(
        column=row["column_name"],
        kind="NaN",
        text=f"{row['nan_count']:,} values are NaN, {format_share(share)} of the rows.",
    )


def _infinite(row: Mapping[str, Any]) -> Alert | None:
    share = _share(row["inf_count"], row["count"])
    if not share:
        return None
    return Alert(
        column=row["column_name"],
        kind="infinite",
        text=f"{row['inf_count']:,} values are infinite, {format_share(share)} of the rows: the mean is without.",
    )


def _constant(row: Mapping[str, Any]) -> Alert | None:
    if row["approx_unique"] != 1 or (row["count"] or 0) < 2:
        return None
    nulls = " or null" if row["null_count"] else ""
    return Alert(
        column=row["column_name"],
        kind="constant",
        text=f"Every row has the same value{nulls}.",
    )


def _key_like(row: Mapping[str, Any]) -> Alert | None:
    values = count_values(row)
    share = _share(row["approx_unique"], values)
    if values < FEW_ROWS or share < KEY_LIKE:
        return None
    if not str(row["column_type"]).startswith(_KEYS):
        return None
    subject = "Nearly all values"
    if share == 1 and row["distinct_error"] == 0:
        subject = "All values"
    return Alert(
        column=row["column_name"],
        kind="key-like",
        text=f"{subject} are different: {row['approx_unique']:,} of {values:,}.",
    )


def _skewed(row: Mapping[str, Any]) -> Alert | None:
    if row["approx_unique"] == 1 or row["column_type"] == "boolean":
        return None
    share = top_share(row) or 0.0
    if share < SKEWED:
        return None
    return Alert(
        column=row["column_name"],
        kind="skewed",
        text=f"One value makes {format_share(share)} of all values.",
    )


_RULES: Sequence[Callable[[Mapping[str, Any]], Alert | None]] = (
    _all_null,
    _many_nulls,
    _nan,
    _infinite,
    _constant,
    _key_like,
    _skewed,
)


def _layout_alerts(layout: Answer | None, files: int) -> Iterable[Alert]:
    if layout is None or files < MANY_FILES:
        return
    for row in layout.rows:
        if row["advice"]:
            yield from _clustering_alerts(row["column_name"], row["files_per_lookup"] or 0, files)


def _clustering_alerts(name: str, files_read: float, files: int) -> Iterable[Alert]:
    if files_read >= MOST_FILES * files:
        text = f"A look-up of one value reads {format_number(files_read)} of {files:,} data files."
        yield Alert(name, "badly clustered", text)


def _change_alerts(changes: Answer | None) -> Iterable[Alert]:
    if changes is None:
        return
    for row in changes.rows:
        if row["measure"] == "psi":
            yield from _drift_alerts(row["column_name"], row["change"])
        elif row["measure"] == "column_type":
            yield _type_alert(row["column_name"], row["before"], row["after"])


def _drift_alerts(name: str, psi: float | None) -> Iterable[Alert]:
    if psi is not None and psi >= DRIFT:
        yield Alert(name, "drifted", f"Its values are distributed otherwise: psi is {psi:.2f}.")


def _type_alert(name: str, before: str | None, after: str | None) -> Alert:
    if before is None:
        return Alert(name, "new", "It was not there before.")
    if after is None:
        return Alert(name, "gone", "It is no longer there.")
    return Alert(name, "other type", make_visible(f"Its type was {before} and is {after}."))


def _share(part: int | None, total: int | None) -> float:
    """The share of a part; 0 if it is unknown."""
    if not part or not total:
        return 0.0
    return part / total


def format_share(share: float) -> str:
    """A share in percent; only 0 and 1 read as 0 % and 100 %."""
    percent = 100 * share
    if 0 < percent < 0.01:
        return "< 0.01 %"
    if 99.99 < percent < 100:
        return "> 99.99 %"
    if percent < 10:
        return f"{percent:.2f}".removesuffix(".00") + " %"
    return f"{percent:.1f}".removesuffix(".0") + " %"
