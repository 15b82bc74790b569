"""Keys of the object stores where tables lie: the table's own, then the session's, then the environment's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from metastore import jvm_session
from metastore.adapters.descriptors import describe_format
from metastore.errors import UnsupportedTable
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials, find_credentials
from metastore.store.data_file_access import DataFileAccess, find_bucket
from metastore.store.table_credentials import find_file_io_credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.spark_jobs.task_store import TaskStore


def find_table_credentials(spark: SparkSession, table_format: str, table: str, uri: str) -> Credentials:
    """Find the credentials of a location of a table.

    Args:
        spark: The session.
        table_format: Name of the table's format.
        table: The table as quoted SQL.
        uri: The location.

    Raises:
        UnsupportedTable: Only the JVM has credentials.
    """
    if not describe_format(table_format).has_own_storage:
        return find_session_credentials(spark, uri)
    properties = jvm_session.read_storage_properties(spark, table, uri)
    table_credentials = find_file_io_credentials(uri, properties)
    if table_credentials.has_keys:
        return replace(table_credentials, renew=partial(_find_new_credentials, spark, table_format, table, uri))
    session_credentials = find_session_credentials(spark, uri)
    if session_credentials.has_keys or not properties:
        return session_credentials
    return table_credentials


def _find_new_credentials(spark: SparkSession, table_format: str, table: str, uri: str) -> Credentials:
    """Find the credentials of a location of a table that the catalog gives now."""
    spark.sql(f"REFRESH TABLE {table}")  # the session may have cached the table with its keys
    return find_table_credentials(spark, table_format, table, uri)


def find_session_credentials(spark: SparkSession, uri: str) -> Credentials:
    """Find the credentials of a location in the settings of the session.

    Raises:
        UnsupportedTable: Only Hadoop has credentials.
    """
    return find_credentials(uri, _make_hadoop_lookup(spark))


def _make_hadoop_lookup(spark: SparkSession) -> Callable[[str], str | None]:
    """Return a function that looks up Hadoop's settings, also secrets in a credential provider."""
    conf = jvm_session.get_hadoop_configuration(spark)

    def lookup(key: str) -> str | None:
        characters = conf.getPassword(key)
        return None if characters is None else "".join(characters)

    return lookup


def find_data_file_access(spark: SparkSession, facts: TableFacts, store: TaskStore) -> DataFileAccess:
    """Find how tasks open a table's data files.

    Python opens those for whose bucket the table or the session has keys, and those in the bucket of the store.
    """
    store_bucket = find_bucket(store.uri)
    buckets = {}
    for bucket, location in _find_buckets(facts.files).items():
        credentials = _find_keys(spark, facts, location)
        if credentials.has_keys:
            buckets[bucket] = credentials
        elif bucket == store_bucket:
            buckets[bucket] = store.access
    return DataFileAccess(has_local_paths=facts.local, buckets=buckets)


def _find_buckets(files: Sequence[DataFile]) -> dict[str, str]:
    """Find the buckets of data files, each with the location of one of its files."""
    locations = {"/".join(file.location.split("/", 3)[:3]): file.location for file in files}
    buckets = {}
    for root, location in locations.items():  # most files have the same root, so that few are read closely
        bucket = find_bucket(root)
        if bucket is not None:
            buckets[bucket] = location
    return buckets


def _find_keys(spark: SparkSession, facts: TableFacts, location: str) -> Credentials:
    """The credentials of a data file; without keys if only the JVM has them."""
    try:
        return find_table_credentials(spark, facts.format, facts.identifier, location)
    except UnsupportedTable:
        return FROM_ENVIRONMENT
