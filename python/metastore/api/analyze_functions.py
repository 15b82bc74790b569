"""Public functions that prepare sessions and compute statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.errors import InvalidArgument
from metastore.spark import analyze_statement, session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.answers import Answer
    from metastore.pipeline.report import AnalyzeReport
    from metastore.spark_jobs.progress import Progress
    from metastore.statistics import Statistic


_DEPTHS = ("full", "footer", "files")
_CONNECT_HINTS = {
    "ranks": "Name the columns in spark.metastore.ranks.columns or the table property metastore.ranks.columns.",
    "distribution": "Name the columns in spark.metastore.distribution.columns, or metastore.distribution.columns.",
    "expressions": "Name them in spark.metastore.expressions or the table property metastore.expressions.",
    "frequencies": "Set spark.metastore.frequencies.algorithm on the server.",
    "repair": "Run `metastore analyze TABLE --repair`, which starts a Spark of its own.",
    "statistics": "Install them on the server as an entry point.",
}
"""What to do over Spark Connect in place of an argument."""

configure = session.configure


@session.require_session
def analyze(  # noqa: PLR0913 - the parts of a statement
    spark: SparkSession,
    table: str,
    columns: Sequence[str] | None = None,
    partition: Mapping[str, Any] | None = None,
    progress: bool | Progress = True,  # noqa: FBT001, FBT002 - part of the public interface
    depth: str = "full",
    *,
    statistics: Sequence[Statistic] = (),
    ranks: bool | Sequence[str] = False,
    distribution: bool | Sequence[str] = False,
    frequencies: str | None = None,
    repair: bool = False,
    expressions: Sequence[str] = (),
) -> AnalyzeReport:
    """Computes the statistics of a table, of what changed since the last time.

    Args:
        spark: A session, classic or Connect.
        table: A name as in SQL.
        columns: Names of columns or structs; all if None.
        partition: Partition column to value, to analyze only the data files there.
        progress: Whether to show progress on stderr.
        depth: "full" reads data; "footer" takes counts and bounds from Parquet footers; "files" lists files.
        statistics: User-defined statistics (`metastore.statistic`) to compute besides those that are installed.
        frequencies: How the table's frequencies are made: "auto", or "exact" (reads columns again of which a file does
            not keep all values). As the setting says if None.
        ranks: True for the exact ranks of all columns, or names of columns: their quantiles are exact then.
        distribution: True for where each value of all columns lives, or names of columns: `locate` then names the data
            files that hold a value and no others. Columns of which a file does not keep all values are read again.
        repair: True to read all stored statistics first, and to compute again what is missing or damaged, as deep as it
            was and of the columns that it had. With `depth="files"` nothing else is computed. Damaged statistics of
            earlier snapshots are left out.
        expressions: Deterministic SQL expressions over the columns that get statistics of each data file, too: a query
            that filters by one of them reads the files that its values leave open. Those that the setting
            `spark.metastore.expressions` and the table property `metastore.expressions` name are computed as well.

    Returns:
        What was done, and what was left out and why.

    Raises:
        TableNotFound: There is no such table.
        ColumnNotFound: The table has no such column; nothing was written.
        InvalidArgument: `columns` is empty, or an argument is not what it can be.
        UnsupportedTable: A table of a kind that is not handled.
        StoreNotWritable: The place of the statistics cannot be written.
        AnalyzeFailed: The Spark job failed; the statistics that were there are untouched.

    Example:
        >>> metastore.analyze(spark, "db.sales", columns=["price"]).files_read  # doctest: +SKIP
        12
    """
    extras: dict[str, Any] = {
        "ranks": ranks,
        "distribution": distribution,
        "frequencies": frequencies,
        "expressions": expressions,
    }
    _check_depth(depth, columns)
    _check_names({"columns": columns, "ranks": ranks, "distribution": distribution, "expressions": expressions})
    _check_needed_values(depth, {"statistics": statistics, **extras})
    session.check_session(spark)
    if analyze_statement.is_connect(spark):
        _refuse_on_connect({**extras, "statistics": statistics, "repair": repair})
        return analyze_statement.run_analyze_statement(
            spark, table, columns, partition=partition, depth=depth, progress=progress
        )
    from metastore.pipeline.request import AnalyzeStatement  # noqa: PLC0415 - Connect clients do without the pipeline
    from metastore.pipeline.rounds import run_statement  # noqa: PLC0415 - see above

    statement = AnalyzeStatement(
        table=table,
        columns=None if columns is None else tuple(columns),
        partition=dict(partition or {}),
        depth=depth,
        frequencies=frequencies,
        statistics=tuple(statistics),
        ranks=ranks if isinstance(ranks, bool) else tuple(ranks),
        distribution=distribution if isinstance(distribution, bool) else tuple(distribution),
        repair=repair,
        expressions=tuple(expressions),
    )
    return run_statement(spark, statement, progress)


def _check_depth(depth: str, columns: Sequence[str] | None) -> None:
    if depth not in _DEPTHS:
        raise InvalidArgument("depth", f"{depth!r} is none of {', '.join(_DEPTHS)}")
    if columns is not None and depth != "full":
        raise InvalidArgument("columns", f"depth {depth!r} does not look at single columns")


def _check_names(lists: Mapping[str, Any]) -> None:
    """Refuse a text in place of a list of names, and an empty list of columns."""
    for name, names in lists.items():
        if isinstance(names, str):
            raise InvalidArgument(name, "a list of names is expected", f"Say {name}=[{names!r}].")
    columns = lists["columns"]
    if columns is not None and not columns:
        raise InvalidArgument("columns", "the list of names is empty", "Leave it out for all columns.")


def _check_needed_values(depth: str, extras: Mapping[str, Any]) -> None:
    """Refuse extras that are made of values if these are not read."""
    if depth == "full":
        return
    for name, extra in extras.items():
        if extra:
            raise InvalidArgument(name, f"depth {depth!r} does not read the values that they are made of")


def _refuse_on_connect(arguments: Mapping[str, Any]) -> None:
    for name, value in arguments.items():
        if value:
            subject = "functions" if name == "statistics" else "it"
            reason = f"an ANALYZE statement, which a Connect server runs, does not take {subject}"
            raise InvalidArgument(name, reason, _CONNECT_HINTS[name])


def settings(spark: SparkSession | None = None) -> Answer:
    """Every setting: the value in force, where it comes from, and what is wrong with what is set.

    Args:
        spark: A session, classic or Connect, whose conf counts; without one, environment and files alone do.

    Returns:
        A row for each setting, and one for each name that is near to a setting and is none. `problem` says what is
        wrong; the default is in force then.

    Example:
        >>> import metastore
        >>> metastore.settings()[0]["name"]
        'spark.metastore.enabled'
    """
    return session.list_settings(spark)
