"""Public functions that keep a store in order: by table name with Spark, by location without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.errors import InvalidArgument
from metastore.reading import discovery, maintenance
from metastore.spark import store_discovery
from metastore.spark.session import check_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.answers import Answer
    from metastore.reading.discovery import Discovery


def verify(where: SparkSession | str, table: str | None = None) -> Answer:
    """Reads all statistics of a table and checks them: one row per object, what is wrong first.

    An object is `missing`, `damaged` (its bytes are not those that were written) or `contradictory` (it says what
    cannot be true of any data file): `metastore analyze TABLE --repair`, or `metastore.analyze(spark, table,
    repair=True)`, mends all of that. What readers pass over is `unknown`, and `problem` says why: objects of a later
    version, names that a store does not give, what is no plain file, a newest manifest that is not whole, objects that
    only a damaged list of data files can name. What no manifest needs any more is not read: that is for `gc`.
    Whatever is wrong, queries keep their answers: such statistics are not used.

    Args:
        where: A session; or a table's location, its store, or the root of many stores, without Spark.
        table: Its name in the session's catalogs; or which table, where the location is a root of several.

    Raises:
        TableNotFound: There is no such table, or nothing at the location.
        NoStatistics: There are none.
        StoreNotReadable: The store does not answer.

    Example:
        >>> {row["state"] for row in metastore.verify(spark, "db.sales")}  # doctest: +SKIP
        {'ok'}
    """
    return maintenance.report_verification(_place(where, table))


def gc(where: SparkSession | str, table: str | None = None, *, delete: bool = False, grace_days: float = 7) -> Answer:
    """Finds what nobody needs in a store, and deletes it if asked to: one row per stored file.

    What the newest manifests name is needed, and whatever a manifest names that was replaced within the grace period.

    Args:
        where: A session; or a table's location, its store, or the root of many stores, without Spark.
        table: Its name in the session's catalogs; or which table, where the location is a root of several.
        delete: Whether to delete; otherwise nothing is changed, but for a mark that is written and removed to read the
            store's clock. Who may not write is told ages by the clock of this machine.
        grace_days: How long something must have been out of use: longer than any ANALYZE or query takes.

    Raises:
        TableNotFound: There is no such table, or nothing at the location.
        NoStatistics: There is no store.
        CollectionRefused: A manifest cannot be read, so that it is not certain what is needed; nothing is deleted.
        StoreNotWritable: The store refuses.

    Example:
        >>> len(metastore.gc(spark, "db.sales"))  # doctest: +SKIP
        12
    """
    return maintenance.report_garbage(_place(where, table), delete=delete, grace_days=grace_days)


def compact(where: SparkSession | str, table: str | None = None) -> dict[str, Any]:
    """Merges the statistics of a table into as few objects as possible, without data files that left the table.

    Args:
        where: A session; or a table's location, its store, or the root of many stores, without Spark.
        table: Its name in the session's catalogs; or which table, where the location is a root of several.

    Returns:
        Blocks, data files and bytes before and after, and whether something was committed.

    Raises:
        TableNotFound: There is no such table, or nothing at the location.
        NoStatistics: There are none.
        StoreNotWritable: The store refuses.

    Example:
        >>> metastore.compact("/warehouse/db/sales")["blocks_after"]  # doctest: +SKIP
        1
    """
    return maintenance.report_compaction(_place(where, table))


def _place(where: SparkSession | str, table: str | None) -> Discovery:
    if isinstance(where, str):
        return discovery.discover(where, table)
    check_session(where)
    if table is None:
        raise InvalidArgument("table", "no table is named", 'Say metastore.verify(spark, "db.t").')
    return store_discovery.discover_by_name(where, table)
