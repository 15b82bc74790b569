"""One module a table format: identity, snapshots, files, deletes, column keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from metastore._tables import iceberg
from metastore._tables.catalog import describe
from metastore._tables.model import DataFile, Refusal, TableFacts
from metastore.errors import UnsupportedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DataFile", "Refusal", "TableFacts", "load"]

_FORMATS = {"iceberg": iceberg.load}


def load(spark: SparkSession, table: str) -> TableFacts:
    """Learn what a name stands for, at its newest snapshot.

    Args:
        spark: The session whose catalogs are asked.
        table: A name as in SQL.

    Returns:
        Identity, columns and files of the table.

    Raises:
        TableNotFound: With names that look like it.
        UnsupportedTable: A view, or a format that is not handled.

    Example:
        >>> load(spark, "cat.db.sales").format  # doctest: +SKIP
        'iceberg'
    """
    entry = describe(spark, table)
    loader = _FORMATS.get(entry.provider)
    if loader is None:
        known = ", ".join(sorted(_FORMATS))
        raise UnsupportedTable(table, f"its format is {entry.provider or 'not known'}", hint=f"Formats: {known}.")
    return loader(spark, entry)
