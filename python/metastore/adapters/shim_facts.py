"""Tables of which the shim tells, asked through SQL: only the JVM reads their metadata, or lists them as Spark does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.adapters import refusals
from metastore.adapters.catalog import escape_literal
from metastore.adapters.shim_calls import translate_errors
from metastore.adapters.spark_versions import collect_arrow
from metastore.adapters.table_facts import DataFile, Refusal, TableFacts
from metastore.format.table_column import CASTING, Column, decimal_type, encoding_of
from metastore.format.value_rendering import decimal_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry


@dataclass(frozen=True)
class ShimAnswer:
    """What the shim tells of a table.

    Attributes:
        facts: The table itself.
        unsettled: Data files that were written a moment ago: those that replace them may have the same time.
        required: Keys of the columns that some reader takes to be never null, even in a file without them.
        has_current_schema: Whether who reads the snapshot by its id sees the table's schema.
    """

    facts: TableFacts
    unsettled: tuple[str, ...]
    required: frozenset[str]
    has_current_schema: bool


def ask_shim(spark: SparkSession, entry: CatalogEntry) -> ShimAnswer:
    """Ask the shim about a table as its name stands for it."""
    with translate_errors(entry.name):
        rows = collect_arrow(spark.sql(f"SELECT * FROM metastore_facts('{escape_literal(entry.identifier)}')"))
    (text,) = (text for text in rows.column("facts").to_pylist() if text is not None)
    found = json.loads(text)
    columns, refused = _columns(found["leaves"], entry.provider)
    by_key = {column.key: column for column in columns}
    facts = TableFacts(
        format=entry.provider,
        uuid=found["uuid"],
        location=found["location"],
        root=found["location"],
        name=entry.name,
        identifier=entry.identifier,
        snapshot=found["snapshot"],
        columns=columns,
        files=tuple(_file(row, by_key) for row in rows.slice(1).drop_columns(["facts"]).to_pylist()),
        defaults=_stored_values(found["defaults"], by_key),
        absent_is_null=False,
        local=found["local"],
        snapshot_sql=entry.identifier,
        refused=refused,
        properties=found["properties"],
        field_ids=found["field_ids"],
        has_other_rows=found["has_other_rows"],
    )
    return ShimAnswer(
        facts,
        tuple(found["unsettled"]),
        frozenset(found["required"]),
        found["has_current_schema"],
    )


def _columns(leaves: Iterable[Mapping[str, Any]], table_format: str) -> tuple[tuple[Column, ...], tuple[Refusal, ...]]:
    found, refused = [], []
    for leaf in leaves:
        kind, reason = leaf["type"], refusals.reason_for_counts_only(leaf["type"])
        encoding = None if reason else encoding_of(kind)
        column = Column(leaf["key"], tuple(leaf["path"]), kind, encoding, casts=table_format in CASTING)
        found.append(column)
        if reason is not None:
            refused.append(Refusal(column.name, reason))
    return tuple(found), tuple(refused)


def _file(row: Mapping[str, Any], columns: Mapping[str, Column]) -> DataFile:
    return DataFile(
        path=row["path"],
        size=row["size"],
        rows=row["rows"],
        format=row["format"],
        partition=dict(row["partition"]),
        constants=_stored_values(dict(row["constants"]), columns),
        unknown=frozenset(row["unknown"]),
        encrypted=row["encrypted"],
        deletes=row["deletes"],
        deleted_rows=row["deleted_rows"],
        open_location=row["location"],
        modified=row["modified"],
        names=dict(row["names"]),
        delete_files=row["deletes"] if row["deleted_rows"] is None else None,
        has_equality_deletes=row["equality_deletes"],
    )


def _stored_values(texts: Mapping[str, str | None], columns: Mapping[str, Column]) -> dict[str, Any]:
    return {key: parse_stored_value(text, columns[key]) for key, text in texts.items()}


def parse_stored_value(text: str | None, column: Column) -> Any:
    """Read a value as statistics hold it from the text that the shim tells it by."""
    if text is None:
        return None
    if column.encoding is None:  # of a column with counts only, that it is not null is all that statistics say
        return True
    if column.encoding == "double":
        return float(text) + 0.0
    if column.encoding == "long":
        return int(text)
    return decimal_to_bytes(int(text)) if decimal_type(column.type) else bytes.fromhex(text)
