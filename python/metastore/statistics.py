"""User-defined statistics: functions of a column's values, computed in the same pass as everything else.

docs/statistics.md explains them with an example. Only functions run that are installed (entry points of the group
`metastore.statistics`) or passed to `metastore.analyze`; a store cannot name others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import entry_points
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from metastore.contract import describe_function
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    Function = Callable[[pa.Array], Any]
    Merge = Callable[[list[Any]], Any]


GROUP = "metastore.statistics"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True)
class Statistic:
    """A user-defined statistic; calling it calls the function.

    Attributes:
        name: The name of its column in `summary`.
        version: Grows when the function's results change: everything is computed again then.
        function: From all values of one column of one data file to a scalar (a Python or an Arrow value).
        merge: From a list of such values, as Python values without nulls, to the value of all; None if it cannot be
            computed from parts.
        expression: The SQL of an expression over columns whose values the function gets; None for the values of each
            column.
    """

    name: str
    version: int
    function: Function
    merge: Merge | None = None
    expression: str | None = None

    def __call__(self, values: pa.Array) -> Any:
        """Compute the statistic of some values."""
        return self.function(values)


def statistic(
    name: str, version: int = 1, *, merge: Merge | None = None, expression: str | None = None
) -> Callable[[Function], Statistic]:
    """Make a user-defined statistic of a function.

    The function is handed an Arrow array of the column's type, nulls included, in no promised order. It returns a
    number, a text, a list or a dictionary of such, an Arrow scalar, or None where it has nothing to say.

    Args:
        name: Lower-case letters, digits and underscores.
        version: To be increased when the function's results change.
        merge: From the values of parts (rows of a large file, files of a table) to the value of the whole: `sum`,
            `max`, or a function of yours. Without it the statistic is kept for each data file, and for the table only
            where that is a single file.
        expression: A deterministic SQL expression over columns, whose values the function gets instead of those of each
            column. It has bounds and lists of values then, as one that `metastore.analyze(expressions=...)` names.

    Raises:
        InvalidArgument: The name cannot be one, `summary` has a column of that name, the version is no positive
            integer, or the expression is no text.

    Example:
        >>> import metastore, pyarrow as pa, pyarrow.compute as pc
        >>> @metastore.statistic("zeros", version=1, merge=sum)
        ... def zeros(values):
        ...     return pc.sum(pc.equal(values, 0)) if pa.types.is_integer(values.type) else None
        >>> zeros(pa.array([0, 1, 0])).as_py()
        2
    """
    if not _NAME.fullmatch(name):
        raise InvalidArgument("name", f"{name!r} is no name of a statistic", "Use a-z, 0-9 and _.")
    if name in _columns_of_summary():
        raise InvalidArgument("name", f"summary has a column {name!r} of its own")
    if type(version) is not int or version < 1:
        raise InvalidArgument("version", f"{version!r} is no positive integer")
    if expression is not None:
        _require_text(expression)
    return lambda function: Statistic(name, version, function, merge, expression)


def _require_text(expression: object) -> None:
    if not isinstance(expression, str) or not expression.strip():
        raise InvalidArgument("expression", f"{expression!r} is no expression", "Write SQL such as lower(name).")


def _columns_of_summary() -> set[str]:
    """Return the names of the view `summary`: of its texts, and of the stored fields that it shows."""
    from metastore.format.object_schemas import TABLE_SUMMARY  # noqa: PLC0415 - pyarrow is slow to import

    text_columns = {column.split()[0] for column in describe_function("summary")["columns"]}
    stored_fields = set(TABLE_SUMMARY.names) - {"column", "frequencies"}
    return text_columns | stored_fields


def collect_statistics(passed: Iterable[Statistic]) -> tuple[tuple[Statistic, ...], dict[str, str]]:
    """Collect the statistics to compute: those of the caller and those installed.

    Args:
        passed: The caller's statistics; each comes before an installed one of the same name.

    Returns:
        The statistics by name, and the installed ones that cannot be used: name to reason.

    Raises:
        InvalidArgument: Something else than a statistic was passed, or two have one name.
    """
    statistics: dict[str, Statistic] = {}
    for passed_statistic in passed:
        _require_statistic(passed_statistic)
        if passed_statistic.name in statistics:
            raise InvalidArgument("statistics", f"two are called {passed_statistic.name}")
        statistics[passed_statistic.name] = passed_statistic
    failures: dict[str, str] = {}
    for entry in entry_points(group=GROUP):
        try:
            installed = entry.load()
        except Exception as error:  # noqa: BLE001 - a broken plug-in must not keep ANALYZE from all else
            failures[entry.name] = f"{type(error).__name__}: {error}"
            continue
        if isinstance(installed, Statistic):
            statistics.setdefault(installed.name, installed)
        else:
            failures[entry.name] = f"{entry.value} is no statistic"
    by_name = sorted(statistics.values(), key=attrgetter("name"))
    return tuple(by_name), failures


def _require_statistic(passed: object) -> None:
    if not isinstance(passed, Statistic):
        reason = f"{passed!r} is no statistic"
        raise InvalidArgument("statistics", reason, "Decorate it with metastore.statistic.")
