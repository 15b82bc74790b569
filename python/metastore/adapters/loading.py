"""Loads the facts and the identity of a table of any format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore.adapters.catalog import look_up_table
from metastore.adapters.descriptors import describe_format
from metastore.adapters.shim_facts import ask_shim
from metastore.format.manifest import TableIdentity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.table_facts import TableFacts
    from metastore.format.name_mapping import NameMapping


def load_facts(spark: SparkSession, table: str, *, newest: bool = True) -> TableFacts:
    """Load the facts of the table of that name, at its newest snapshot or at the newest that the session knows."""
    return load_entry_facts(spark, look_up_table(spark, table), newest=newest)


def load_entry_facts(spark: SparkSession, entry: CatalogEntry, *, newest: bool = True) -> TableFacts:
    """Load the facts of a table that was looked up."""
    table_format = describe_format(entry.provider)
    answer = ask_shim(spark, entry, newest=newest)
    facts = table_format.complete(answer)
    if facts.snapshot is None or not answer.has_current_schema:
        return facts
    return table_format.pin_snapshot(facts, entry)


def identify_table(entry: CatalogEntry) -> tuple[TableIdentity, NameMapping | None]:
    """Return the identity and the name mapping of a table without listing its files."""
    identity = TableIdentity(entry.provider, entry.uuid, entry.location, entry.name)
    return identity, describe_format(entry.provider).find_name_mapping(entry)
