"""Delta tables: what Delta's own log says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore._tables.lines import delta_at_version
from metastore._tables.listed import ask_shim
from metastore._tables.listed import identify_entry as identify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore._tables.catalog import CatalogEntry
    from metastore._tables.model import TableFacts

__all__ = ["identify", "load"]


def load(spark: SparkSession, entry: CatalogEntry) -> TableFacts:
    """Read the facts of a Delta table at the version that its name stands for."""
    facts = ask_shim(spark, entry, absent_is_null=True).facts
    if facts.snapshot is None:
        return facts
    pinned, by = delta_at_version(facts.pinned, facts.snapshot)
    return replace(facts, pinned=pinned, pinned_by=by)
