"""What ANALYZE asks of its own queries: what a policy shows to one user never becomes everybody's statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore import _jvm_session
from metastore._tables.failures import translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def require_columns(rows: DataFrame, table: str) -> DataFrame:
    """Rows that are columns of one table as they are stored.

    Raises:
        UnsupportedTable: The session's analyzer makes something else of them: a policy hides rows or values.

    Example:
        >>> require_columns(spark.table("db.t").selectExpr("id AS c0"), "db.t").columns  # doctest: +SKIP
        ['c0']
    """
    with translated(table):
        _checks(rows).requireColumns(table, _jvm_session.rows_in_jvm(rows))
    return rows


def require_unchanged(rows: DataFrame, table: str) -> DataFrame:
    """A query that runs as it was written: no rule that others gave to the session acts on it.

    Raises:
        UnsupportedTable: A rule hides rows or values.
        AccessDenied: A rule refuses.

    Example:
        >>> require_unchanged(spark.range(3), "db.t").count()  # doctest: +SKIP
        3
    """
    with translated(table):
        _checks(rows).requireUnchanged(table, _jvm_session.rows_in_jvm(rows))
    return rows


def _checks(rows: DataFrame) -> Any:
    return _jvm_session.shim_class(rows.sparkSession, "RowPermission")
