"""The public function that writes statistics where others look for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from metastore.adapters.shim_calls import export_to_session_catalog
from metastore.errors import InvalidArgument
from metastore.path_names import is_location
from metastore.spark import session
from metastore.spark.analyze_statement import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@session.require_session
def export(spark: SparkSession, table: str, *, to: str = "hive") -> dict[str, Any]:
    """Writes what is known of a table's current snapshot into Spark's session catalog, which may be a Hive metastore.

    There are the rows, the size and the columns then as Spark's own `ANALYZE TABLE .. FOR ALL COLUMNS` would leave
    them, for engines and sessions that read them from there: what the catalog said before is replaced. Later commits of
    the table do not change it: export again after each ANALYZE.

    Args:
        spark: A classic session.
        table: Its name in the session catalog.
        to: "hive", the session catalog.

    Returns:
        The snapshot, its rows and bytes, and the columns that were written. Left out are those without statistics, of
        types of which the catalog has none, with NaN, and those whose minimum, maximum or null count is not certain:
        all of a table with deleted rows.

    Raises:
        TableNotFound: There is no such table.
        UnsupportedTable: It is no table of the session catalog, or nobody knows how many rows it has.
        NoStatistics: The current snapshot has none, or some data file has none of a column that others have.
        InvalidArgument: `to` is something else, `table` is a location, or the session is one of Spark Connect.

    Example:
        >>> metastore.export(spark, "db.sales")["columns"]  # doctest: +SKIP
        ['day', 'price']
    """
    if to != "hive":
        raise InvalidArgument("to", f"{to!r} is not hive, which stands for Spark's session catalog")
    refuse_location(table)
    session.check_session(spark)
    if is_connect(spark):
        hint = "Run `metastore export TABLE --to hive`, which starts a Spark of its own."
        raise InvalidArgument("spark", "a Connect session does not reach the session catalog's statistics", hint)
    return {"subject": table, **json.loads(export_to_session_catalog(spark, table))}


def refuse_location(table: str) -> None:
    """Refuses what no catalog knows by that name.

    Raises:
        InvalidArgument: It is a location.
    """
    if is_location(table):
        raise InvalidArgument(
            "table", f"{table} is a location", "Name a table of Spark's session catalog, as db.t: its entry is written."
        )
