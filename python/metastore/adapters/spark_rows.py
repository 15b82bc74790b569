"""Reads rows of data files by Spark, in the order of files, if Python cannot open these."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from metastore import configuration
from metastore.adapters.catalog import escape_literal
from metastore.adapters.descriptors import describe_format
from metastore.adapters.expressions import require_expressions, write_expression
from metastore.adapters.file_schemas import group_by_file_schema
from metastore.adapters.identifiers import LOCATION, escape_glob, quote_name
from metastore.adapters.shim_calls import require_columns, select_versions
from metastore.adapters.spark_versions import select_at_snapshot
from metastore.format.data_files import divide_by_log_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore.adapters.file_schemas import FilesOfOneSchema
    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.table_column import Column


_FILE = "_file"
_DELETED = "_deleted"


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
    merged_files, stored_files = divide_by_log_files(files)
    parts = []
    if merged_files:
        parts.append(read_merged_rows(spark, facts, columns, merged_files))
    if stored_files:
        parts.append(_read_data_files(spark, facts, columns, stored_files, live=live, groups=groups))
    return _order_by_file(spark, _unite(parts), files)


def opens_other_files(spark: SparkSession, facts: TableFacts) -> bool:
    """Return whether reads of some data files of a table by its name open all of them: nobody skips the others."""
    if describe_format(facts.format).deleted_sql is None:
        return False
    settings = ("spark.metastore.enabled", "spark.metastore.pruning.enabled")
    return not all(configuration.get(setting, spark) for setting in settings)


def read_merged_rows(
    spark: SparkSession, facts: TableFacts, columns: Sequence[Column], files: Sequence[DataFile]
) -> DataFrame:
    """Read the rows of data files with log files, as Spark merges them; columns as of `read_rows_by_spark`.

    A file that has other log files by now is not among the input files of the result.
    """
    table = require_columns(_read_relation(spark, facts, columns), facts.name)
    rows = select_versions(table, {file.location: str(file.modified) for file in files})
    return rows.selectExpr(*_select_with_file(facts, columns))


def count_by_file(rows: DataFrame) -> DataFrame:
    """Count rows of `read_merged_rows`: `location` and `rows` of each data file that has some."""
    return rows.groupBy(_FILE).count().toDF("location", "rows")


def _read_data_files(
    spark: SparkSession,
    facts: TableFacts,
    columns: Sequence[Column],
    files: Sequence[DataFile],
    *,
    live: bool,
    groups: Sequence[FilesOfOneSchema],
) -> DataFrame:
    marks_deleted_rows = describe_format(facts.format).deleted_sql is not None
    if marks_deleted_rows or (live and not facts.casts):
        rows = _read_relation(spark, facts, columns)
        require_columns(rows, facts.name)
        return _select_files(rows, facts, files)
    if facts.casts:
        parts = _read_groups(spark, facts.name, columns, groups or group_by_file_schema(spark, files))
        return _unite(parts)
    return _read_parquet(spark, facts.name, columns, files)


def _unite(parts: Iterable[DataFrame]) -> DataFrame:
    return reduce(lambda union, part: union.unionAll(part), parts)


def read_matching_rows(
    spark: SparkSession, facts: TableFacts, columns: Sequence[Column], condition: str, files: Sequence[DataFile]
) -> DataFrame:
    """Read the live rows of some data files that satisfy a condition; columns as of `read_rows_by_spark`."""
    if facts.has_other_rows:  # some rows are in none of the files
        file_sql = "''"
    else:
        file_sql = _location_sql(facts)
        paths = ", ".join(f"'{escape_literal(file.location)}'" for file in files)
        condition = f"({condition}) AND {file_sql} IN ({paths})"
    selected = [
        f"{file_sql} AS {_FILE}",
        f"false AS {_DELETED}",
        *_select_list(columns),
    ]
    return select_at_snapshot(spark, facts, selected, condition)


def read_expressions_by_spark(
    spark: SparkSession, facts: TableFacts, expressions: Sequence[Column], files: Sequence[DataFile]
) -> DataFrame:
    """Compute expressions over the rows of some data files; columns as of `read_rows_by_spark`.

    Raises:
        AnalyzeFailed: An expression has changed since it was resolved.
    """
    rows = _read_relation(spark, facts, expressions)
    require_expressions(rows, facts, expressions)
    rows = _select_files(rows, facts, files)
    return _order_by_file(spark, rows, files)


def find_read_columns(spark: SparkSession, facts: TableFacts, expressions: Sequence[Column]) -> list[frozenset[str]]:
    """Return the keys of the columns that each expression reads; raises as `read_expressions_by_spark`."""
    rows = _read_relation(spark, facts, expressions)
    return require_expressions(rows, facts, expressions)


def _order_by_file(spark: SparkSession, rows: DataFrame, files: Sequence[DataFile]) -> DataFrame:
    partitions = min(len(files), 4 * spark.sparkContext.defaultParallelism)
    return rows.repartition(partitions, _FILE).sortWithinPartitions(_FILE)


def _read_relation(spark: SparkSession, facts: TableFacts, columns: Sequence[Column]) -> DataFrame:
    """Read the table at its snapshot; deleted rows are marked if the format allows it, else left out."""
    return select_at_snapshot(spark, facts, _select_with_file(facts, columns))


def _select_with_file(facts: TableFacts, columns: Sequence[Column]) -> list[str]:
    """Write SQL of a row's data file, of whether it is deleted, and of its columns."""
    deleted_sql = describe_format(facts.format).deleted_sql or "false"
    return [
        f"{_location_sql(facts)} AS {_FILE}",
        f"{deleted_sql} AS {_DELETED}",
        *_select_list(columns),
    ]


def _location_sql(facts: TableFacts) -> str:
    table_format = describe_format(facts.format)
    return table_format.location_of(table_format.file_sql)


def _read_parquet(spark: SparkSession, table: str, columns: Sequence[Column], files: Sequence[DataFile]) -> DataFrame:
    """Read the files directly, so that no deletion vector hides rows."""
    fields = []
    selected = [f"{LOCATION} AS {_FILE}", f"false AS {_DELETED}"]
    for number, column in enumerate(columns):
        path = tuple(json.loads(column.key))
        if column.encoding:
            fields.append((path, column.type))
            selected.append(f"{quote_name(path)} AS c{number}")
        else:
            selected.append(f"CAST(NULL AS BOOLEAN) AS c{number}")
    schema = _struct_ddl(fields) or "`any` INT"
    paths = [escape_glob(file.location) for file in files]
    rows = spark.read.schema(schema).parquet(*paths).selectExpr(*selected)
    return require_columns(rows, table)


def _read_groups(
    spark: SparkSession, table: str, columns: Sequence[Column], groups: Iterable[FilesOfOneSchema]
) -> Iterator[DataFrame]:
    """Read each group of files with its own types, and cast columns as readers of the table do."""
    for group in groups:
        columns_of_files = [replace(column, type=group.type_of(column)) for column in columns]
        rows = _read_parquet(spark, table, columns_of_files, group.files)
        casts = []
        for number, column in enumerate(columns):
            name = f"c{number}"
            casts.append(f"{group.cast_sql(column, name)} AS {name}")
        yield rows.selectExpr(_FILE, _DELETED, *casts)


def _select_files(rows: DataFrame, facts: TableFacts, files: Sequence[DataFile]) -> DataFrame:
    if len(files) == len(facts.files) and not facts.has_other_rows:
        return rows
    locations = [file.location for file in files]
    return rows.where(rows[_FILE].isin(locations))


def _select_list(columns: Sequence[Column]) -> list[str]:
    return [f"{_column_sql(column)} AS c{number}" for number, column in enumerate(columns)]


def _column_sql(column: Column) -> str:
    if column.is_expression:
        return write_expression(column.path[0])
    name = quote_name(column.path)
    if column.encoding:
        return name
    return f"IF({name} IS NULL, NULL, true)"


def _struct_ddl(leaves: Sequence[tuple[tuple[str, ...], str]]) -> str:
    """Write the DDL of a schema with these leaves."""
    leaves_by_name = defaultdict(list)
    for path, leaf_type in leaves:
        leaves_by_name[path[0]].append((path[1:], leaf_type))
    fields = []
    for name, inner_leaves in leaves_by_name.items():
        inner_path, field_type = inner_leaves[0]
        if inner_path:
            field_type = f"STRUCT<{_struct_ddl(inner_leaves)}>"
        fields.append(f"{quote_name([name])} {field_type}")
    return ", ".join(fields)
