"""Public functions about queries: what they would read, would give, and have read.

They send a SQL function and wrap its rows: they work wherever SQL does, Connect included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.answers import Answer, Summary
from metastore.spark import session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


@session.require_session
def filtered_summary(spark: SparkSession, query: str) -> Summary:
    """As `summary`, of the rows that a query of one table keeps.

    Args:
        spark: A session, classic or Connect.
        query: `SELECT .. FROM` a table, or a view of one, with `WHERE` or without.

    Returns:
        One row per column of the table. Data files of which every row matches are not read: their statistics are taken,
        and only files that statistics leave open are read. `rows_read` rows lie in these, deleted ones included;
        `rows_total` are the table's live rows.

    Raises:
        NoStatistics: The table was not analyzed.
        InvalidArgument: Another query, such as a join, an aggregate or a LIMIT.
        JarNotFound: The Spark of this session does not have the Metastore's jar.

    Example:
        >>> query = "SELECT * FROM db.sales WHERE day >= '2026-01-01'"
        >>> metastore.filtered_summary(spark, query).column("price")["max"]  # doctest: +SKIP
        Decimal('99.95')
    """
    return session.call_function(spark, "filtered_summary", query, {}, Summary)


@session.require_session
def explain(spark: SparkSession, query: str) -> Answer:
    """One row per scan and data file of a query: whether it is read, and by which statistic it is not.

    Example:
        >>> plan = metastore.explain(spark, "SELECT * FROM db.sales WHERE id = 7")  # doctest: +SKIP
        >>> sum(row["kept"] for row in plan)  # doctest: +SKIP
        1
    """
    return session.call_function(spark, "explain", query, {}, Answer)


@session.require_session
def whatif(
    spark: SparkSession,
    query: str,
    *,
    sorted_by: str | Sequence[str] | None = None,
    statistics: str | Sequence[str] | None = None,
) -> Answer:
    """One row per scan of a query: the data files that it reads, and those that it would read.

    Args:
        spark: The session.
        query: The query, which is planned, not run.
        sorted_by: Columns by which the tables are imagined to be sorted, each partition by itself, in as many files of
            equally many rows: one text as SQL has it (`"a, b"`), or a list. Of conditions on other columns only those
            count of which no row of a partition can be true.
        statistics: In its place columns that are imagined to have statistics: a scan would read at most so many files.

    Returns:
        `files_total`, `files_read_now` and `files_read_then` of each scan; `method`, by what the last of them is known,
        and `exact`, whether it is certain: where the values of the sorted column are all counted, and no condition is
        on another column. Files are counted as `explain` counts them.

    Raises:
        NoStatistics: The values of the first column are not known of any table of the query.
        ColumnNotFound: No table of the query has such a column.
        InvalidArgument: Both of the two are given, or none.

    Example:
        >>> found = metastore.whatif(spark, query, sorted_by="customer")  # doctest: +SKIP
        >>> found[0]["files_read_now"], found[0]["files_read_then"]  # doctest: +SKIP
        (48, 1)
    """
    names = {"sorted_by": _join_names(sorted_by), "statistics": _join_names(statistics)}
    return session.call_function(spark, "whatif", query, names, Answer)


def _join_names(names: str | Sequence[str] | None) -> str | None:
    return names if names is None or isinstance(names, str) else ", ".join(names)


@session.require_session
def estimates(spark: SparkSession, query: str, *, analyze: bool = False) -> Answer:
    """One row per operator of a query's optimized plan: the rows that the optimizer expects, and from which statistics.

    Args:
        spark: The session.
        query: The query.
        analyze: Whether it is run too, to count what comes (`rows`) and how far each estimate is off (`q_error`).

    Example:
        >>> plan = metastore.estimates(spark, "SELECT * FROM db.sales WHERE id = 7", analyze=True)  # doctest: +SKIP
        >>> plan[0]["q_error"]  # doctest: +SKIP
        1.0
    """
    return session.call_function(spark, "estimates", query, {"analyze": analyze or None}, Answer)


@session.require_session
def history(spark: SparkSession, table: str | None = None) -> Answer:
    """One row per query and scan of this session: the data files and bytes that pruning left unread, and by what.

    Args:
        spark: The session, in which `spark.metastore.history.enabled` is true since some query.
        table: Name of a table as plans show it, or the end of it; not given: all tables.

    Example:
        >>> spark.conf.set("spark.metastore.history.enabled", "true")  # doctest: +SKIP
        >>> spark.sql("SELECT * FROM db.sales WHERE id = 7").collect()  # doctest: +SKIP
        >>> metastore.history(spark, "db.sales")[0]["reasons"]  # doctest: +SKIP
        {'id = 7': 15}
    """
    return session.call_function(spark, "history", table, {}, Answer)
