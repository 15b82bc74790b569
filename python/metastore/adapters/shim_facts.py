"""Gets the facts of tables from the shim by SQL: only the JVM can read the metadata of all formats."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metastore.adapters import refusals
from metastore.adapters.catalog import escape_literal
from metastore.adapters.shim_calls import translate_errors
from metastore.adapters.spark_versions import collect_local_arrow
from metastore.adapters.table_facts import Refusal, TableFacts
from metastore.format.data_files import DataFile
from metastore.format.table_column import CASTING, Column, decimal_type, encoding_of
from metastore.format.value_rendering import decimal_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry


@dataclass(frozen=True)
class ShimAnswer:
    """The shim's answer about a table.

    Attributes:
        facts: The table itself.
        unsettled: Data files that were written a moment ago, so that a file that replaces one may have the same time.
        required: Keys of the columns that some reader treats as never null, even in a file without them.
        has_current_schema: Whether a read of the snapshot by its id has the table's current schema.
    """

    facts: TableFacts
    unsettled: tuple[str, ...]
    required: frozenset[str]
    has_current_schema: bool


def ask_shim(spark: SparkSession, entry: CatalogEntry, *, newest: bool) -> ShimAnswer:
    """Ask the shim about a table by its name."""
    query = f"SELECT * FROM metastore_facts('{escape_literal(entry.identifier)}', newest => {newest})"
    with translate_errors(entry.name):
        rows = collect_local_arrow(spark.sql(query))
    (text,) = rows.column("facts").drop_null().to_pylist()
    answer = json.loads(text)
    columns, refused = _make_columns(answer["leaves"], entry.provider)
    columns_by_key = {column.key: column for column in columns}
    file_rows = rows.slice(1).drop_columns(["facts"]).to_pylist()
    files = tuple(_make_file(row, columns_by_key) for row in file_rows)
    facts = TableFacts(
        format=entry.provider,
        uuid=answer["uuid"],
        location=answer["location"],
        root=answer["location"],
        name=entry.name,
        identifier=entry.identifier,
        snapshot=answer["snapshot"],
        columns=columns,
        files=files,
        defaults=_parse_stored_values(answer["defaults"], columns_by_key),
        absent_is_null=False,
        local=answer["local"],
        snapshot_sql=entry.identifier,
        refused=refused,
        properties=answer["properties"],
        field_ids=answer["field_ids"],
        has_other_rows=answer["has_other_rows"],
    )
    return ShimAnswer(
        facts,
        tuple(answer["unsettled"]),
        frozenset(answer["required"]),
        answer["has_current_schema"],
    )


def _make_columns(
    leaves: Iterable[Mapping[str, Any]], table_format: str
) -> tuple[tuple[Column, ...], tuple[Refusal, ...]]:
    """Make the columns of a schema's leaves, and a refusal for each that has counts only."""
    columns = []
    refused = []
    casts = table_format in CASTING
    for leaf in leaves:
        spark_type = leaf["type"]
        reason = refusals.reason_for_counts_only(spark_type)
        column = Column(leaf["key"], tuple(leaf["path"]), spark_type, encoding_of(spark_type), casts=casts)
        if reason is not None:
            column = replace(column, encoding=None)
            refused.append(Refusal(column.name, reason))
        columns.append(column)
    return tuple(columns), tuple(refused)


def _make_file(row: Mapping[str, Any], columns: Mapping[str, Column]) -> DataFile:
    return DataFile(
        path=row["path"],
        size=row["size"],
        rows=row["rows"],
        format=row["format"],
        partition=dict(row["partition"]),
        constants=_parse_stored_values(dict(row["constants"]), columns),
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


def _parse_stored_values(texts: Mapping[str, str | None], columns: Mapping[str, Column]) -> dict[str, Any]:
    return {key: parse_stored_value(text, columns[key]) for key, text in texts.items()}


def parse_stored_value(text: str | None, column: Column) -> Any:
    """Parse the shim's text of a value into the value that statistics store."""
    if text is None:
        return None
    if column.encoding is None:  # a column with counts only: statistics say only whether a value is null
        return True
    if column.encoding == "double":
        return float(text) + 0.0
    if column.encoding == "long":
        return int(text)
    if decimal_type(column.type):
        return decimal_to_bytes(int(text))
    return bytes.fromhex(text)
