"""Tables of the session's catalogs, looked up by name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metastore.adapters.identifiers import quote_name, split_name
from metastore.adapters.shim_calls import translate_errors
from metastore.errors import CatalogFailed, TableNotFound, UnsupportedTable
from metastore.visible_text import first_line

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """A table that the session's user may read in full.

    Attributes:
        name: Full name, a label.
        identifier: The name as quoted SQL, as the user wrote it.
        provider: The table format, lower case.
        location: Root of the table.
        uuid: Its uuid, as in the manifest.
        name_mapping: The table property with Iceberg's name mapping.
    """

    name: str
    identifier: str
    provider: str
    location: str
    uuid: str
    name_mapping: str | None = None

    @property
    def is_path(self) -> bool:
        """Whether the user named it by its path."""
        return self.name == self.identifier


def look_up_table(spark: SparkSession, table: str, *, newest: bool = False) -> CatalogEntry:
    """Look up a table by name, and require that the user may read all of it.

    Args:
        spark: The session.
        table: Its name.
        newest: Whether the session's later reads are to see its newest snapshot.
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # noqa: PLC0415 - no types
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - not needed to import this module

    parts = split_name(table)
    identifier = quote_name(parts)
    query = f"SELECT facts FROM metastore_facts('{escape_literal(identifier)}', files => false, newest => {newest})"
    try:
        with translate_errors(table, spark):
            (row,) = spark.sql(query).collect()
    except AnalysisException as failure:
        if _not_found(failure):
            raise TableNotFound(table) from None
        raise UnsupportedTable(table, first_line(failure)) from failure
    except Py4JJavaError as failure:  # errors of a catalog are not Spark's
        message = failure.java_exception.getMessage() or failure
        raise CatalogFailed(table, first_line(message)) from None
    facts = json.loads(row.facts)
    return CatalogEntry(
        name=facts["name"] or identifier,
        identifier=identifier,
        provider=facts["format"],
        location=facts["location"],
        uuid=facts["uuid"],
        name_mapping=facts["name_mapping"],
    )


def escape_literal(identifier: str) -> str:
    r"""Escape a text for a string literal of SQL."""
    return identifier.replace("\\", "\\\\").replace("'", "\\'")


def _not_found(failure: AnalysisException) -> bool:
    condition = failure.getCondition() if hasattr(failure, "getCondition") else failure.getErrorClass()
    return condition in {
        "TABLE_OR_VIEW_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "CATALOG_NOT_FOUND",
        "_LEGACY_ERROR_TEMP_1331",
        "REQUIRES_SINGLE_PART_NAMESPACE",
    }
