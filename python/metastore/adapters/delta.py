"""The table format Delta."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters.delta_log import read_properties
from metastore.adapters.descriptors import TableFormat
from metastore.adapters.spark_versions import installed_spark_line

if TYPE_CHECKING:
    from metastore.adapters.catalog import CatalogEntry
    from metastore.adapters.shim_facts import ShimAnswer
    from metastore.adapters.table_facts import TableFacts


def complete(answer: ShimAnswer) -> TableFacts:
    """Complete the facts of a Delta table at the version that its name stands for."""
    return replace(answer.facts, absent_is_null=True)


def pin_snapshot(facts: TableFacts, entry: CatalogEntry) -> TableFacts:  # noqa: ARG001 - other formats need it
    """Pin reads of a Delta table to its version."""
    if installed_spark_line() >= (4, 0):
        snapshot_sql = f"{facts.snapshot_sql} VERSION AS OF {facts.snapshot}"
        return replace(facts, snapshot_sql=snapshot_sql)
    # Before Spark 4, the parser of Hudi's extension handles VERSION AS OF of all tables.
    return replace(facts, snapshot_options={"versionAsOf": str(facts.snapshot)})


FORMAT = TableFormat(
    name="delta",
    complete=complete,
    pin_snapshot=pin_snapshot,
    may_hide_positions=True,
    read_properties=read_properties,
    keys_in="hadoop",
)
"""Without deletion vectors and row tracking no positions are shown: SPARK-47731."""
