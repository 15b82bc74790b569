"""Hudi tables: the base files of the file slices of one instant, for only Hudi reads every kind of timeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters.shim_facts import ask_shim
from metastore.adapters.shim_facts import identify_entry as identify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.table_facts import TableFacts


__all__ = ["identify", "load"]


def load(spark: SparkSession, entry: CatalogEntry) -> TableFacts:
    """Read the facts of a Hudi table at the instant that its name stands for.

    A slice's log files count as deletes: its base file is described by itself. A column that a base file lacks is null
    there, if no column has its name in other case, which Spark may find, and if readers let it be null: of others they
    show what the memory holds.
    """
    read = ask_shim(spark, entry, absent_is_null=False)
    keys = frozenset(column.key for column in read.facts.columns)
    facts = replace(read.facts, nameless_is_null=keys - read.required)
    if facts.snapshot is None or entry.name == entry.identifier:  # Spark takes no instant behind a path
        return facts
    return replace(facts, snapshot_sql=f"{facts.snapshot_sql} TIMESTAMP AS OF '{facts.snapshot}'")
