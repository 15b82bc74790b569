"""Search for the statistics of a table by its name in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore import configuration
from metastore.adapters.catalog import look_up_table
from metastore.adapters.loading import identify_table
from metastore.errors import UnsupportedTable
from metastore.reading.discovery import Discovery, FoundStatistics
from metastore.reading.table_answers import Statistics
from metastore.spark.analyze_statement import is_connect
from metastore.store import Store
from metastore.store.location import needs_hadoop, store_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.format.manifest import TableIdentity


def open_by_name(spark: SparkSession, table: str, zone: str) -> Statistics:
    """Open the statistics of a table; its snapshots have the ids of Spark's answers.

    Call a function through the session first: it checks whether the user may see the table.
    """
    return Statistics(discover_by_name(spark, table), zone, reads_lineage=False)


def discover_by_name(spark: SparkSession, table: str) -> Discovery:
    """Find the statistics of a table where ANALYZE writes them, with the table's keys, else the session's.

    Through Connect this process reads and writes the store itself, with the credentials of its environment.
    """
    entry = look_up_table(spark, table)
    identity, mapping = identify_table(entry)
    store = _open_store(spark, table, entry, identity)
    manifest = store.read()
    if manifest is None:
        return Discovery(table, None if store.is_empty() else store, None)
    if manifest.table.uuid != identity.uuid:  # it is of a table of the same name that was dropped
        return Discovery(table, store, None)
    discovery = FoundStatistics(table, store, manifest)
    return discovery if mapping is None else discovery.resolve_columns(mapping)


def _open_store(spark: SparkSession, table: str, entry: CatalogEntry, identity: TableIdentity) -> Store:
    uri = store_uri(identity, configuration.get("spark.metastore.store", spark))
    if not is_connect(spark):
        from metastore.spark_jobs.hadoop_store import open_table_store  # noqa: PLC0415 - needs py4j, which Connect's clients lack

        return open_table_store(spark, identity, entry.identifier, writable=False)[0]
    if needs_hadoop(uri):
        raise UnsupportedTable(table, f"a Connect session does not reach {uri}", "Run it where the server runs.")
    return Store.open(uri)
