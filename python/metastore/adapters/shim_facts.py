"""Gets the facts of tables from the shim by SQL: only the JVM can read the metadata of all formats."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

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

    import pyarrow as pa
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
    files = _make_files(rows.slice(1), columns_by_key)
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
        column = Column(
            key=leaf["key"], path=tuple(leaf["path"]), type=spark_type, encoding=encoding_of(spark_type), casts=casts
        )
        if reason is not None:
            column = replace(column, encoding=None)
            refused.append(Refusal(column.name, reason))
        columns.append(column)
    return tuple(columns), tuple(refused)


def _make_files(rows: pa.Table, columns: Mapping[str, Column]) -> tuple[DataFile, ...]:
    """Make the data files, column by column; equal partitions and constants of files are one object."""
    parse_constants = cache(lambda texts: _parse_stored_values(dict(texts), columns))
    deletes = rows.column("deletes")
    values = {
        "path": rows.column("path").to_pylist(),
        "size": rows.column("size").to_pylist(),
        "rows": rows.column("rows").to_pylist(),
        "format": rows.column("format").to_pylist(),
        "partition": map(cache(dict), _read_tuples(rows, "partition")),
        "constants": map(parse_constants, _read_tuples(rows, "constants")),
        "unknown": map(cache(frozenset), _read_tuples(rows, "unknown")),
        "encrypted": rows.column("encrypted").to_pylist(),
        "deletes": deletes.to_pylist(),
        "deleted_rows": rows.column("deleted_rows").to_pylist(),
        "delete_files": pc.if_else(pc.is_null(rows.column("deleted_rows")), deletes, None).to_pylist(),
        "has_equality_deletes": rows.column("equality_deletes").to_pylist(),
        "open_location": rows.column("location").fill_null("").to_pylist(),
        "modified": rows.column("modified").to_pylist(),
        "names": map(cache(dict), _read_tuples(rows, "names")),
    }
    files = zip(*values.values(), strict=True)
    return tuple(DataFile(**dict(zip(values, file, strict=True))) for file in files)


def _read_tuples(rows: pa.Table, name: str) -> list[tuple[Any, ...]]:
    """Read a column of lists, or of maps as lists of pairs."""
    column = rows.column(name)
    if not any(len(chunk.values) for chunk in column.chunks):  # mostly all are empty
        return [()] * len(column)
    return list(map(tuple, column.to_pylist()))


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
