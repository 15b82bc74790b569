"""Delta tables: what Delta's own log says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters.shim_facts import ask_shim
from metastore.adapters.shim_facts import identify_entry as identify
from metastore.adapters.spark_versions import delta_at_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.table_facts import TableFacts


__all__ = ["identify", "load"]


def load(spark: SparkSession, entry: CatalogEntry) -> TableFacts:
    """Read the facts of a Delta table at the version that its name stands for."""
    facts = ask_shim(spark, entry, absent_is_null=True).facts
    if facts.snapshot is None:
        return facts
    relation, options = delta_at_version(facts.snapshot_sql, facts.snapshot)
    return replace(facts, snapshot_sql=relation, snapshot_options=options)
