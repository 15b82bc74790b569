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
from metastore.format.manifest import TableIdentity
from metastore.format.table_column import CASTING, Column, encoding_of
from metastore.format.value_encoding import to_stored_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.catalog import CatalogEntry


_NOT_READ = ("timestamp", "timestamp_ntz", "binary")
"""Types of partition values that are not read from the metadata's texts: writers differ in zones and encodings."""


@dataclass(frozen=True)
class ShimAnswer:
    """What the shim tells of a table.

    Attributes:
        facts: The table itself.
        unsettled: Data files that were left out, for they were written too lately to be told from later ones.
        required: Keys of the columns that some reader takes to be never null, even in a file without them.
    """

    facts: TableFacts
    unsettled: tuple[str, ...]
    required: frozenset[str] = frozenset()


def ask_shim(spark: SparkSession, entry: CatalogEntry, *, absent_is_null: bool) -> ShimAnswer:
    """Ask the shim about a table as its name stands for it."""
    with translate_errors(entry.name):
        rows = collect_arrow(spark.sql(f"SELECT * FROM metastore_facts('{escape_literal(entry.identifier)}')"))
    (text,) = (text for text in rows.column("facts").to_pylist() if text is not None)
    found = json.loads(text)
    columns, refused = _columns(found["leaves"], entry.provider)
    partitions = _Partitions(found["partition_columns"], columns)
    facts = TableFacts(
        format=entry.provider,
        uuid=found["uuid"],
        location=found["location"],
        root=found["location"],
        name=entry.name,
        identifier=entry.identifier,
        snapshot=found["snapshot"],
        columns=columns,
        files=tuple(_file(row, partitions) for row in rows.slice(1).drop_columns(["facts"]).to_pylist()),
        defaults={},
        absent_is_null=absent_is_null,
        local=found["location"].startswith("file:"),
        snapshot_sql=entry.identifier,
        refused=refused,
        properties=found["properties"],
        field_ids=found["field_ids"],
        has_other_rows=found["has_other_rows"],
    )
    return ShimAnswer(facts, tuple(found["unsettled"]), frozenset(found["required"]))


def identify_entry(spark: SparkSession, entry: CatalogEntry) -> TableIdentity:  # noqa: ARG001 - formats are asked alike
    """Learn which table a name stands for, without looking at its files."""
    return TableIdentity(entry.provider, entry.uuid, entry.location, entry.name)


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
            if not text:  # an empty text is read as null, by Delta and by Spark
                found[column.key] = None
            elif column.type in _NOT_READ:
                unknown.add(column.key)
            else:
                try:
                    found[column.key] = to_stored_value(text, column)
                except ValueError:
                    unknown.add(column.key)
        return found, frozenset(unknown)


def _file(row: Mapping[str, Any], partitions: _Partitions) -> DataFile:
    texts = dict(row["partition"])
    constants, unknown = partitions.constants(texts)
    return DataFile(
        path=row["path"],
        size=row["size"],
        rows=row["rows"],
        format="parquet",
        partition=texts,
        constants=constants,
        unknown=unknown,
        deletes=row["deletes"],
        deleted_rows=row["deleted_rows"],
        open_location=row["location"],
        modified=row["modified"],
    )
