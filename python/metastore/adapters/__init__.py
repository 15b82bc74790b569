"""One module a table format: identity, snapshots, files, deletes, column keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from metastore.adapters import delta, hudi, iceberg, parquet
from metastore.adapters.catalog import look_up_table
from metastore.adapters.table_facts import DataFile, Refusal, TableFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.format.manifest import TableIdentity


__all__ = ["DataFile", "Refusal", "TableFacts", "identify_table", "load_entry_facts", "load_facts"]


class _Format(Protocol):
    """What a module of a table format has."""

    def load(self, spark: SparkSession, entry: CatalogEntry) -> TableFacts: ...

    def identify(self, spark: SparkSession, entry: CatalogEntry) -> TableIdentity: ...


_FORMATS: Mapping[str, _Format] = {"iceberg": iceberg, "delta": delta, "hudi": hudi, "parquet": parquet}


def load_facts(spark: SparkSession, table: str) -> TableFacts:
    """Learn what a name stands for, at its newest snapshot."""
    return load_entry_facts(spark, look_up_table(spark, table))


def load_entry_facts(spark: SparkSession, entry: CatalogEntry) -> TableFacts:
    """As `load`, of a table that was looked up."""
    return _FORMATS[entry.provider].load(spark, entry)


def identify_table(spark: SparkSession, table: str) -> TableIdentity:
    """Learn which table a name stands for, without looking at its files."""
    entry = look_up_table(spark, table)
    return _FORMATS[entry.provider].identify(spark, entry)
