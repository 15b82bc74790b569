"""Types of columns in data files, and the casts of readers to the table's types."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from metastore.adapters import refusals
from metastore.adapters.identifiers import escape_glob
from metastore.adapters.spark_errors import SPARK_JOB_ERRORS
from metastore.adapters.table_facts import Refusal
from metastore.format.table_column import INTEGERS, Column, is_exact_cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType

    from metastore.format.data_files import DataFile


_TEXTS = {"string", "binary"}


@dataclass(frozen=True)
class FilesOfOneSchema:
    """Data files that have columns in the same types.

    Attributes:
        files: The files.
        schema: All columns of these files; a file may lack some.
    """

    files: tuple[DataFile, ...]
    schema: StructType

    def type_of(self, column: Column) -> str:
        """Return the column's type in these files, else the table's type."""
        data_type: DataType = self.schema
        for name in column.path:
            if not isinstance(data_type, StructType) or name not in data_type.names:
                return column.type
            data_type = data_type[name].dataType
        return data_type.simpleString()

    def is_clear(self, column: Column) -> bool:
        """Return whether all readers show the same values for a column of these files, on every Java."""
        if column.encoding is None:
            return True
        file_type = self.type_of(column)
        types = {file_type, column.type}
        if len(types) == 1 or types == _TEXTS:
            return True
        if types <= set(INTEGERS):
            return INTEGERS.index(file_type) < INTEGERS.index(column.type)
        return is_exact_cast(file_type, column.type)

    def cast_sql(self, column: Column, name: str) -> str:
        """Write SQL that casts a column as readers do."""
        file_type = self.type_of(column)
        if column.encoding is None or file_type == column.type:
            return name
        if (file_type, column.type) == ("float", "double"):
            name = f"CAST({name} AS STRING)"
        cast = "CAST" if self.is_clear(column) else "TRY_CAST"
        return f"{cast}({name} AS {column.type})"


def group_by_file_schema(spark: SparkSession, files: Sequence[DataFile]) -> list[FilesOfOneSchema]:
    """Group data files by the types of their columns; this reads footers."""
    ordered = sorted(files, key=lambda file: file.path.rpartition("_")[2])
    return list(_list_groups(spark, ordered))


def _list_groups(spark: SparkSession, files: Sequence[DataFile]) -> Iterator[FilesOfOneSchema]:
    """Read the files' common schema, or halve the files if they have none."""
    paths = [escape_glob(file.location) for file in files]
    try:
        schema = spark.read.option("mergeSchema", "true").parquet(*paths).schema
    except SPARK_JOB_ERRORS:
        if len(files) == 1:
            raise
        half = len(files) // 2
        yield from _list_groups(spark, files[:half])
        yield from _list_groups(spark, files[half:])
    else:
        yield FilesOfOneSchema(tuple(files), schema)


def mark_unknown_columns(
    groups: Iterable[FilesOfOneSchema], columns: Sequence[Column]
) -> tuple[tuple[DataFile, ...], tuple[Refusal, ...]]:
    """Mark the columns of each file whose values differ between readers, and make refusals for them."""
    files: list[DataFile] = []
    paths_by_type: dict[tuple[Column, str], list[str]] = defaultdict(list)
    for group in groups:
        paths = [file.path for file in group.files]
        unknown = [column for column in columns if not group.is_clear(column)]
        files += _mark_files(group.files, unknown)
        for column in unknown:
            paths_by_type[column, group.type_of(column)] += paths
    return tuple(files), tuple(_refuse_types(paths_by_type))


def _refuse_types(paths_by_type: Mapping[tuple[Column, str], Sequence[str]]) -> Iterator[Refusal]:
    for (column, file_type), paths in paths_by_type.items():
        reason = refusals.describe_other_type(file_type, column.type, paths)
        yield Refusal(column.name, reason)


def _mark_files(files: Sequence[DataFile], unknown: Sequence[Column]) -> list[DataFile]:
    keys = frozenset(column.key for column in unknown)
    marked = []
    for file in files:
        # Columns that a file gives another name are not looked for in schemas of many files.
        unknown_keys = file.unknown | keys | file.names.keys()
        marked.append(replace(file, unknown=unknown_keys))
    return marked
