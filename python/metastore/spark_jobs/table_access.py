"""Keys of the object stores where tables lie: the table's own, then the session's, then the environment's."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from metastore import jvm_session
from metastore.adapters.descriptors import describe_format
from metastore.adapters.spark_errors import SPARK_JOB_ERRORS, find_cause, raise_as_ours
from metastore.errors import UnsupportedTable
from metastore.store.credentials import Credentials, find_credentials
from metastore.store.data_file_access import DataFileAccess, find_bucket, name_prefix
from metastore.store.location import local_path
from metastore.store.table_credentials import find_file_io_credentials
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.manifest import TableIdentity
    from metastore.spark_jobs.task_store import TaskStore

_LOG = get_logger(__name__)
_PAUSE = 5.0
"""Seconds between two questions for keys, whatever the answer is."""
_SOON = 600.0
"""Seconds: new keys are asked for in the place of keys from a cache that end earlier."""
_OTHER_KEYS = "Set fs.s3a.access.key and fs.s3a.secret.key, or spark.metastore.store to another place."


class _RenewedKeys:
    """The keys of a location, renewed by one thread at a time.

    If nobody answers, the last keys stay until they end.
    """

    def __init__(self, first: Credentials, find: Callable[[], Credentials]) -> None:
        self._find = find
        self._lock = Lock()
        self._last_asked = -math.inf
        # The first keys may come from a cache, and be old: they count as aging if they end soon.
        obtained = min(first.obtained, first.expires - 2 * _SOON)
        self.current = replace(first, renew=self.renew, obtained=obtained)

    def renew(self) -> Credentials:
        with self._lock:
            is_due = time.monotonic() - self._last_asked > _PAUSE
            if is_due and self.current.is_aging:
                self._last_asked = time.monotonic()
                self._ask()
            return self.current

    def _ask(self) -> None:
        try:
            self.current = replace(self._find(), renew=self.renew)
        except Exception as error:  # noqa: BLE001 - of whatever the catalog or Hadoop is made of
            _LOG.warning("Keys that end soon could not be renewed: %s", type(error).__name__)


def find_table_credentials(spark: SparkSession, table: TableIdentity, identifier: str, uri: str) -> Credentials:
    """Find the credentials of a location of a table.

    Args:
        spark: The session.
        table: The table.
        identifier: The table as quoted SQL.
        uri: The location.

    Raises:
        UnsupportedTable: Only the JVM has credentials.
    """
    keys_in = describe_format(table.format).keys_in
    if keys_in == "session" or local_path(uri) is not None:
        return find_session_credentials(spark, uri)
    properties = _read_storage_properties(spark, table, identifier, uri)
    if keys_in == "hadoop":
        return _find_hadoop_credentials(spark, uri, properties)
    table_credentials = find_file_io_credentials(uri, properties)
    if table_credentials.has_keys:
        return _RenewedKeys(table_credentials, partial(_find_new_credentials, spark, table, identifier, uri)).current
    session_credentials = find_session_credentials(spark, uri)
    if session_credentials.names_source or not properties:
        return session_credentials
    return table_credentials


def _find_new_credentials(spark: SparkSession, table: TableIdentity, identifier: str, uri: str) -> Credentials:
    """Find the credentials of a location of a table that the catalog gives now."""
    return find_file_io_credentials(uri, _read_storage_properties(spark, table, identifier, uri, uncached=True))


def _read_storage_properties(
    spark: SparkSession, table: TableIdentity, identifier: str, uri: str, *, uncached: bool = False
) -> dict[str, str]:
    with raise_as_ours(table.name):
        return jvm_session.read_storage_properties(spark, identifier, table.uuid, uri, uncached=uncached)


def find_session_credentials(spark: SparkSession, uri: str) -> Credentials:
    """Find the credentials of a location in the settings of the session.

    Raises:
        UnsupportedTable: Only Hadoop has credentials, and does not tell them.
    """
    return _find_hadoop_credentials(spark, uri, {})


def _find_hadoop_credentials(spark: SparkSession, uri: str, settings: dict[str, str]) -> Credentials:
    lookup = _make_hadoop_lookup(spark, settings)
    find = partial(find_credentials, uri, lookup, partial(_ask_hadoop, spark, uri, settings))
    return _RenewedKeys(find(), find).current


def _ask_hadoop(spark: SparkSession, uri: str, settings: dict[str, str]) -> Credentials:
    try:
        keys = jvm_session.ask_hadoop_for_keys(spark, uri, settings)
    except SPARK_JOB_ERRORS as error:
        reason = f"Hadoop does not tell the keys of its credential classes: {find_cause(error)}"
        raise UnsupportedTable(uri, reason, _OTHER_KEYS) from error
    return find_file_io_credentials(uri, keys)


def _make_hadoop_lookup(spark: SparkSession, settings: dict[str, str]) -> Callable[[str], str | None]:
    """Return a function that looks up settings of Hadoop, the table's first, also secrets in a credential provider."""
    conf = jvm_session.get_hadoop_configuration(spark, settings)

    def lookup(key: str) -> str | None:
        characters = conf.getPassword(key)
        return None if characters is None else jvm_session.to_text(spark, characters)

    return lookup


def find_data_file_access(spark: SparkSession, facts: TableFacts, store: TaskStore) -> DataFileAccess:
    """Find how tasks open a table's data files.

    Python opens those for whose prefix the table or the session has keys, and those in the bucket of a store that the
    environment's keys open.
    """
    prefixes = {}
    for location in _list_locations(spark, facts):
        with suppress(UnsupportedTable):  # only the JVM opens these
            credentials = find_table_credentials(spark, facts.identity, facts.identifier, location)
            if credentials.has_keys or _is_in_bucket_of_environment(location, store):
                prefixes[name_prefix(location)] = credentials
    return DataFileAccess(has_local_paths=facts.local, prefixes=prefixes)


def _list_locations(spark: SparkSession, facts: TableFacts) -> list[str]:
    """List the buckets and containers of data files, and the prefixes for which the table has keys apart."""
    roots = {"/".join(file.location.split("/", 3)[:3]) for file in facts.files}
    buckets = sorted(filter(find_bucket, roots))
    if describe_format(facts.identity.format).keys_in != "file-io":
        return buckets
    with raise_as_ours(facts.identity.name):
        return buckets + jvm_session.list_storage_prefixes(spark, facts.identifier, facts.identity.uuid)


def _is_in_bucket_of_environment(location: str, store: TaskStore) -> bool:
    return not store.access.has_keys and find_bucket(store.uri) == find_bucket(location)
