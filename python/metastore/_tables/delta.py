"""Delta tables: what Delta's own log says, asked of the shim through SQL, for only Delta reads every kind of log."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from metastore._format.columns import Column, encoding_of
from metastore._format.manifest import TableIdentity
from metastore._format.stored import stored_value
from metastore._tables import refusals
from metastore._tables.arrow import arrow_table
from metastore._tables.model import DataFile, Refusal, TableFacts
from metastore._tables.spelling import LOCATION, literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore._tables.catalog import Entry

_FACTS = "SELECT * FROM metastore_facts('{}')"
_NOT_READ = ("timestamp", "timestamp_ntz", "binary")
"""Types of partition values that are not read from the log's texts: writers differ in zones and encodings."""


def load(spark: SparkSession, entry: Entry) -> TableFacts:
    """Read the facts of a Delta table at the version that its name stands for.

    Args:
        spark: The session.
        entry: The catalog's entry.

    Returns:
        The facts; a table that was never written has no snapshot and no files.

    Raises:
        MetastoreError: What the shim says: the user may not read the table, a row filter hides rows of it.

    Example:
        >>> load(spark, describe(spark, "db.sales")).snapshot  # doctest: +SKIP
        '12'
    """
    rows = arrow_table(spark.sql(_FACTS.format(_literal(entry.identifier))))
    described = [text for text in rows.column("facts").to_pylist() if text is not None]
    facts = json.loads(described[0])
    columns, refused = _columns(facts["leaves"])
    partitions = _Partitions(facts["partition_columns"], columns)
    listed = rows.slice(1).drop_columns(["facts"]).to_pylist()
    files = tuple(_file(row, partitions) for row in listed)
    return TableFacts(
        format="delta",
        uuid=facts["uuid"],
        location=facts["location"],
        root=facts["location"],
        name=entry.name,
        identifier=entry.identifier,
        snapshot=facts["snapshot"],
        columns=columns,
        files=_with_rows(spark, files),
        defaults={},
        absent_is_null=True,
        local=facts["location"].startswith("file:"),
        pinned=entry.identifier + (f" VERSION AS OF {facts['snapshot']}" if facts["snapshot"] else ""),
        refused=refused,
        properties=facts["properties"],
        field_ids=facts["field_ids"],
    )


def identify(spark: SparkSession, entry: Entry) -> TableIdentity:
    """Learn which Delta table a name stands for, without looking at its files.

    Args:
        spark: The session.
        entry: The catalog's entry.

    Example:
        >>> identify(spark, describe(spark, "db.sales")).uuid  # doctest: +SKIP
        '4e0d…'
    """
    (row,) = spark.sql(f"DESCRIBE DETAIL {entry.identifier}").select("id", "location").collect()
    return TableIdentity("delta", row.id, row.location, entry.name)


def _literal(identifier: str) -> str:
    return identifier.replace("\\", "\\\\").replace("'", "\\'")


def _columns(leaves: Iterable[Mapping[str, Any]]) -> tuple[tuple[Column, ...], tuple[Refusal, ...]]:
    found, refused = [], []
    for leaf in leaves:
        kind, reason = leaf["type"], refusals.only_counts(leaf["type"])
        column = Column(leaf["key"], tuple(leaf["path"]), kind, None if reason else encoding_of(kind))
        found.append(column)
        if reason is not None:
            refused.append(Refusal(column.name, reason))
    return tuple(found), tuple(refused)


class _Partitions:
    """The columns that partition a table, and what the log's texts of their values mean."""

    def __init__(self, names: Sequence[str], columns: Sequence[Column]) -> None:
        top_level = {column.path[0]: column for column in columns if len(column.path) == 1}
        self._columns = [top_level[name] for name in names if name in top_level]

    def constants(self, texts: Mapping[str, str | None]) -> tuple[dict[str, Any], frozenset[str]]:
        """The stored values of a file's partition columns by key, and the keys of those that are not known."""
        found: dict[str, Any] = {}
        unknown: set[str] = set()
        for column in self._columns:
            text = texts.get(column.path[0])
            if not text:  # Delta reads an empty text as null
                found[column.key] = None
            elif column.type in _NOT_READ:
                unknown.add(column.key)
            else:
                try:
                    found[column.key] = stored_value(text, column)
                except ValueError:
                    unknown.add(column.key)
        return found, frozenset(unknown)


def _file(row: Mapping[str, Any], partitions: _Partitions) -> DataFile:
    texts = dict(row["partition"])
    constants, unknown = partitions.constants(texts)
    return DataFile(
        path=row["path"],
        size=row["size"],
        rows=-1 if row["rows"] is None else row["rows"],
        format="parquet",
        partition=texts,
        constants=constants,
        unknown=unknown,
        deletes=row["deletes"],
        deleted_rows=row["deleted_rows"],
        opened=row["location"],
    )


def _with_rows(spark: SparkSession, files: tuple[DataFile, ...]) -> tuple[DataFile, ...]:
    """Count the rows of the files that were written without statistics."""
    uncounted = [literal(file.location) for file in files if file.rows < 0]
    if not uncounted:
        return files
    rows = spark.read.parquet(*uncounted).selectExpr(f"{LOCATION} AS path").groupBy("path").count()
    counted = {row.path: row["count"] for row in rows.collect()}
    return tuple(file if file.rows >= 0 else replace(file, rows=counted.get(file.location, 0)) for file in files)
