"""What the session's catalogs say about a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore import _jvm_session
from metastore._tables.names import quote, split_name
from metastore._texts import near
from metastore.errors import TableNotFound, UnsupportedTable

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql import SparkSession

_DETAILS = "# Detailed Table Information"
_READ_BY_PATH = ("hudi", "parquet")
"""Formats of which a path is a name that no catalog knows."""


@dataclass(frozen=True)
class Entry:
    """A table as the catalog describes it.

    Attributes:
        name: Full name, a label.
        identifier: The name as quoted SQL, as the user wrote it.
        provider: The table format, lower case; empty when the catalog does not say.
        location: Root of the table, or empty.
    """

    name: str
    identifier: str
    provider: str
    location: str


def describe(spark: SparkSession, table: str) -> Entry:
    """Look a table up by name.

    Args:
        spark: The session whose catalogs are asked.
        table: A name as in SQL, or a path such as ``parquet.`/path` ``.

    Returns:
        The catalog's entry; of a path that no catalog knows, what the name itself says.

    Raises:
        TableNotFound: With names that look like it.
        UnsupportedTable: The name is a view's.

    Example:
        >>> describe(spark, "cat.db.sales").provider  # doctest: +SKIP
        'iceberg'
    """
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # noqa: PLC0415 - no types
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - not needed to import this module

    parts = split_name(table)
    identifier = quote(parts)
    if len(parts) == 2 and parts[0].lower() in _READ_BY_PATH and "/" in parts[1]:
        return Entry(identifier, identifier, parts[0].lower(), parts[1])
    try:
        # Asked first, for PySpark logs the stack trace of every statement that fails.
        if not spark.catalog.tableExists(identifier):
            raise TableNotFound(table, near=_near_tables(spark, parts))
        loaded = _loaded(spark, table, identifier)
        if loaded is not None:
            return loaded
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {identifier}").collect()
    except AnalysisException as failure:
        if _not_found(failure):
            raise TableNotFound(table) from None
        raise UnsupportedTable(table, _first_line(failure)) from failure
    except Py4JJavaError as failure:  # what a catalog raises is no error of Spark's
        told = failure.java_exception.getMessage()
        raise UnsupportedTable(table, f"it cannot be loaded: {_first_line(told or failure)}") from None
    names = [row.col_name for row in rows]
    if _DETAILS not in names:
        raise UnsupportedTable(table, "it is a temporary view")
    # The last one: a column may have that name too.
    start = len(names) - names[::-1].index(_DETAILS)
    details = {row.col_name.lower(): row.data_type for row in rows[start:]}
    if details.get("type") == "VIEW":
        raise UnsupportedTable(table, "it is a view")
    return Entry(
        name=details.get("name") or ".".join(parts),
        identifier=identifier,
        provider=(details.get("provider") or "").lower(),
        location=details.get("location") or "",
    )


def _loaded(spark: SparkSession, asked: str, identifier: str) -> Entry | None:
    """The same of an Iceberg table by what the driver's JVM has loaded: DESCRIBE plans all its data files first.

    None where there is no such JVM, or the name does not stand for such a table alone.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - as above

    try:
        plan = _jvm_session.analyzed(spark, identifier)
        relation = plan.child()
        kinds = [one.getClass().getSimpleName() for one in (plan, relation)]
        if kinds != ["SubqueryAlias", "DataSourceV2Relation"]:  # a view has another plan between the two
            return None
        table = relation.table()
        provider, location = (table.properties().get(name) for name in ("provider", "location"))
        if provider != "iceberg" or not location:
            return None
        if _is_metadata_table(table.table()):
            raise UnsupportedTable(asked, "it is a metadata table")
        return Entry(table.name(), identifier, provider, location)
    except (Py4JError, AttributeError, TypeError):
        return None


def _is_metadata_table(table: Any) -> bool:
    kind = table.getClass()
    while kind is not None and kind.getName() != "org.apache.iceberg.BaseMetadataTable":
        kind = kind.getSuperclass()
    return kind is not None


def _not_found(failure: AnalysisException) -> bool:
    condition = failure.getCondition() if hasattr(failure, "getCondition") else failure.getErrorClass()
    return condition in {
        "TABLE_OR_VIEW_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "CATALOG_NOT_FOUND",
        "_LEGACY_ERROR_TEMP_1331",
        "REQUIRES_SINGLE_PART_NAMESPACE",
        "DELTA_MISSING_DELTA_TABLE",
    }


def _first_line(failure: object) -> str:
    return str(failure).strip().split("\n", 1)[0].rstrip(".")


def _near_tables(spark: SparkSession, parts: tuple[str, ...]) -> tuple[str, ...]:
    namespace = quote(parts[:-1])
    if namespace and not spark.catalog.databaseExists(namespace):
        return ()
    rows = spark.sql(f"SHOW TABLES IN {namespace}" if namespace else "SHOW TABLES").collect()
    found = near(parts[-1], [row.tableName for row in rows])
    return tuple(".".join((*parts[:-1], name)) for name in found)
