"""What ANALYZE asks of its own queries: what a policy shows to one user never becomes everybody's statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore import _jvm_session
from metastore._tables.failures import translate_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def require_columns(rows: DataFrame, table: str) -> DataFrame:
    """Rows that are columns of one table as they are stored."""
    with translate_errors(table):
        _checks(rows).requireColumns(table, _jvm_session.to_jvm_rows(rows))
    return rows


def require_unchanged(rows: DataFrame, table: str) -> DataFrame:
    """A query that runs as it was written: no rule that others gave to the session acts on it."""
    with translate_errors(table):
        _checks(rows).requireUnchanged(table, _jvm_session.to_jvm_rows(rows))
    return rows


def _checks(rows: DataFrame) -> Any:
    return _jvm_session.load_shim_class(rows.sparkSession, "PlainRows")
