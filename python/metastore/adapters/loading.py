"""The facts and the identity of a table, whatever its format."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from metastore.adapters.catalog import look_up_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.table_facts import TableFacts
    from metastore.format.manifest import TableIdentity


class TableAdapter(Protocol):
    """What the module of a table format has."""

    def load(self, spark: SparkSession, entry: CatalogEntry) -> TableFacts:
        """Read the facts of a table at the snapshot that its name stands for."""

    def identify(self, spark: SparkSession, entry: CatalogEntry) -> TableIdentity:
        """Learn which table a name stands for, without looking at its files."""


def load_facts(spark: SparkSession, table: str) -> TableFacts:
    """Learn what a name stands for, at its newest snapshot."""
    return load_entry_facts(spark, look_up_table(spark, table))


def load_entry_facts(spark: SparkSession, entry: CatalogEntry) -> TableFacts:
    """As `load_facts`, of a table that was looked up."""
    return _adapter(entry).load(spark, entry)


def identify_table(spark: SparkSession, table: str) -> TableIdentity:
    """Learn which table a name stands for, without looking at its files."""
    entry = look_up_table(spark, table)
    return _adapter(entry).identify(spark, entry)


def _adapter(entry: CatalogEntry) -> TableAdapter:
    return cast("TableAdapter", import_module(f"metastore.adapters.{entry.provider}"))
