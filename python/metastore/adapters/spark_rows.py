"""Rows of data files as Spark reads them, file by file, for what Python does not open itself."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from metastore.adapters.catalog import escape_literal
from metastore.adapters.descriptors import describe_format
from metastore.adapters.expressions import require_expressions, write_expression
from metastore.adapters.file_schemas import group_by_file_schema
from metastore.adapters.identifiers import LOCATION, escape_glob, quote_name
from metastore.adapters.shim_calls import require_columns
from metastore.adapters.spark_versions import select_at_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore.adapters.file_schemas import FilesOfOneSchema
    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.table_column import Column


_FILE, _DELETED = "_file", "_deleted"


def read_rows_by_spark(
    spark: SparkSession,
    facts: TableFacts,
    columns: Sequence[Column],
    files: Sequence[DataFile],
    *,
    live: bool = False,
    groups: Sequence[FilesOfOneSchema] = (),
) -> DataFrame:
    """Read the rows of some data files as Spark sees them."""
    deleted = describe_format(facts.format).deleted_sql
    if deleted is not None or (live and not facts.casts):
        rows = _of_relation(spark, facts, columns, files, deleted or "false")
    elif facts.casts:
        rows = reduce(
            lambda some, more: some.unionAll(more),
            _casts(spark, facts.name, columns, groups or group_by_file_schema(spark, files)),
        )
    else:
        rows = _of_parquet(spark, facts.name, columns, files)
    return _in_order(spark, rows, files)


def read_matching_rows(
    spark: SparkSession, facts: TableFacts, columns: Sequence[Column], condition: str, files: Sequence[DataFile]
) -> DataFrame:
    """Read the live rows of some data files that satisfy a condition; columns as of `read_rows_by_spark`."""
    table_format = describe_format(facts.format)
    file = "''" if facts.has_other_rows else table_format.location_of(table_format.file_sql)
    if not facts.has_other_rows:  # which are in none of the files
        paths = ", ".join(f"'{escape_literal(one.location)}'" for one in files)
        condition = f"({condition}) AND {file} IN ({paths})"
    return select_at_snapshot(
        spark, facts, [f"{file} AS {_FILE}", f"false AS {_DELETED}", *_chosen(columns)], condition
    )


def read_expressions_by_spark(
    spark: SparkSession, facts: TableFacts, expressions: Sequence[Column], files: Sequence[DataFile]
) -> DataFrame:
    """The values of expressions over the rows of some data files; columns as of `read_rows_by_spark`.

    Raises:
        AnalyzeFailed: An expression is not the one that it was when it was looked up.
    """
    rows = _select_expressions(spark, facts, expressions)
    require_expressions(rows, facts, expressions)
    return _in_order(spark, _only(rows, facts, files), files)


def find_read_columns(spark: SparkSession, facts: TableFacts, expressions: Sequence[Column]) -> list[frozenset[str]]:
    """The keys of the columns that each expression reads; raises as `read_expressions_by_spark`."""
    return require_expressions(_select_expressions(spark, facts, expressions), facts, expressions)


def _select_expressions(spark: SparkSession, facts: TableFacts, expressions: Sequence[Column]) -> DataFrame:
    return _select(spark, facts, expressions, describe_format(facts.format).deleted_sql or "false")


def _in_order(spark: SparkSession, rows: DataFrame, files: Sequence[DataFile]) -> DataFrame:
    """Rows of one file after the other."""
    partitions = min(len(files), 4 * spark.sparkContext.defaultParallelism)
    return rows.repartition(partitions, _FILE).sortWithinPartitions(_FILE)


def _of_relation(
    spark: SparkSession, facts: TableFacts, columns: Sequence[Column], files: Sequence[DataFile], deleted: str
) -> DataFrame:
    return _only(require_columns(_select(spark, facts, columns, deleted), facts.name), facts, files)


def _select(spark: SparkSession, facts: TableFacts, columns: Sequence[Column], deleted: str) -> DataFrame:
    # Where it is asked which rows are deleted, those are returned too, marked, instead of being left out.
    table_format = describe_format(facts.format)
    file = table_format.location_of(table_format.file_sql)
    return select_at_snapshot(spark, facts, [f"{file} AS {_FILE}", f"{deleted} AS {_DELETED}", *_chosen(columns)])


def _of_parquet(spark: SparkSession, table: str, columns: Sequence[Column], files: Sequence[DataFile]) -> DataFrame:
    """The files by themselves: no deletion vector stands between them and their rows."""
    physical = [tuple(json.loads(column.key)) for column in columns]
    schema = _struct([(path, column.type) for path, column in zip(physical, columns, strict=True) if column.encoding])
    places = [escape_glob(file.location) for file in files]
    rows = spark.read.schema(schema or "`any` INT").parquet(*places)
    chosen = [
        f"{quote_name(path) if column.encoding else 'CAST(NULL AS BOOLEAN)'} AS c{place}"
        for place, (path, column) in enumerate(zip(physical, columns, strict=True))
    ]
    return require_columns(rows.selectExpr(f"{LOCATION} AS {_FILE}", f"false AS {_DELETED}", *chosen), table)


def _casts(
    spark: SparkSession, table: str, columns: Sequence[Column], groups: Iterable[FilesOfOneSchema]
) -> Iterator[DataFrame]:
    for group in groups:
        found = [replace(column, type=group.type_of(column)) for column in columns]
        rows = _of_parquet(spark, table, found, group.files)
        shown = (f"{group.shown(column, f'c{place}')} AS c{place}" for place, column in enumerate(columns))
        yield rows.selectExpr(_FILE, _DELETED, *shown)


def _only(rows: DataFrame, facts: TableFacts, files: Sequence[DataFile]) -> DataFrame:
    if len(files) == len(facts.files) and not facts.has_other_rows:
        return rows
    return rows.where(rows[_FILE].isin([file.location for file in files]))


def _chosen(columns: Sequence[Column]) -> list[str]:
    return [f"{_expression(column)} AS c{place}" for place, column in enumerate(columns)]


def _expression(column: Column) -> str:
    if column.is_expression:
        return write_expression(column.path[0])
    name = quote_name(column.path)
    return name if column.encoding else f"IF({name} IS NULL, NULL, true)"


def _struct(leaves: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """The DDL of a schema with these leaves."""
    names = list(dict.fromkeys(path[0] for path, _ in leaves))
    fields = []
    for name in names:
        below = [(path[1:], kind) for path, kind in leaves if path[0] == name]
        kind = below[0][1] if below[0][0] == () else f"STRUCT<{_struct(below)}>"
        fields.append(f"{quote_name([name])} {kind}")
    return ", ".join(fields)
