"""Finds the statistics of a table by its name in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore import configuration
from metastore.adapters.loading import identify_table
from metastore.errors import UnsupportedTable
from metastore.reading.discovery import Discovery
from metastore.reading.table_answers import Statistics
from metastore.spark.analyze_statement import is_connect
from metastore.store import Store
from metastore.store.location import needs_hadoop, store_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_by_name(spark: SparkSession, table: str, zone: str) -> Statistics:
    """Opens the statistics of a table, whose snapshots are then named by the ids that Spark's answers give.

    A function asked through the session first tells whether its user may see the table.
    """
    return Statistics(discover_by_name(spark, table), zone, reads_lineage=False)


def discover_by_name(spark: SparkSession, table: str) -> Discovery:
    """Finds the statistics of a table where ANALYZE puts them, with the credentials of the session.

    Through Connect this process reads and writes the store itself, with what it finds in its environment.
    """
    identity, mapping = identify_table(spark, table)
    store = _open_store(spark, table, store_uri(identity, configuration.get("spark.metastore.store", spark)))
    manifest = store.read()
    if manifest is None and store.is_empty():
        return Discovery(table, None, None)
    is_own = manifest is not None and manifest.table.uuid == identity.uuid  # and not of a table that was dropped
    place = Discovery(table, store, manifest if is_own else None)
    return place if mapping is None else place.resolve_columns(mapping)


def _open_store(spark: SparkSession, table: str, uri: str) -> Store:
    if not is_connect(spark):
        from metastore.spark_jobs.hadoop_store import open_store_at  # noqa: PLC0415 - needs py4j, which Connect's clients lack

        return open_store_at(spark, uri, writable=False)[0]
    if needs_hadoop(uri):
        raise UnsupportedTable(table, f"a Connect session does not reach {uri}", "Run it where the server runs.")
    return Store.open(uri)
