"""What data files hold where Spark reads them by themselves: types of columns, and how readers that cast show them."""

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
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType

    from metastore.adapters.table_facts import DataFile


_TEXTS = ("string", "binary")


@dataclass(frozen=True)
class FilesOfOneSchema:
    """Data files that hold columns in the same types.

    Attributes:
        files: The files.
        schema: All their columns; not every file need have each.
    """

    files: tuple[DataFile, ...]
    schema: StructType

    def type_of(self, column: Column) -> str:
        """In which type they hold a column; the table's where none of them has it."""
        kind: DataType = self.schema
        for name in column.path:
            if not isinstance(kind, StructType) or name not in kind.names:
                return column.type
            kind = kind[name].dataType
        return kind.simpleString()

    def is_clear(self, column: Column) -> bool:
        """Whether what readers show follows from what the files hold, on every Java."""
        held, wanted = self.type_of(column), column.type
        if column.encoding is None or held == wanted or {held, wanted} == {*_TEXTS}:
            return True
        if held in INTEGERS and wanted in INTEGERS:
            return INTEGERS.index(held) < INTEGERS.index(wanted)
        return is_exact_cast(held, wanted)

    def shown(self, column: Column, name: str) -> str:
        """What readers that cast show of a column."""
        held, wanted = self.type_of(column), column.type
        if column.encoding is None or held == wanted:
            return name
        if (held, wanted) == ("float", "double"):
            name = f"CAST({name} AS STRING)"
        return f"{'CAST' if self.is_clear(column) else 'TRY_CAST'}({name} AS {wanted})"


def group_by_file_schema(spark: SparkSession, files: Sequence[DataFile]) -> list[FilesOfOneSchema]:
    """Group data files by the types in which they hold columns, for which their footers are read."""
    return list(_groups(spark, sorted(files, key=lambda file: file.path.rpartition("_")[2])))


def _groups(spark: SparkSession, files: Sequence[DataFile]) -> Iterator[FilesOfOneSchema]:
    try:
        schema = (
            spark.read.option("mergeSchema", "true").parquet(*(escape_glob(file.location) for file in files)).schema
        )
    except SPARK_JOB_ERRORS:
        if len(files) == 1:
            raise
        half = len(files) // 2
        yield from _groups(spark, files[:half])
        yield from _groups(spark, files[half:])
    else:
        yield FilesOfOneSchema(tuple(files), schema)


def mark_unknown_columns(
    groups: Iterable[FilesOfOneSchema], columns: Sequence[Column]
) -> tuple[tuple[DataFile, ...], tuple[Refusal, ...]]:
    """The files with the columns that do not follow from what they hold as unknown, and what is said of those."""
    files: list[DataFile] = []
    held: dict[tuple[Column, str], list[str]] = defaultdict(list)
    for group in groups:
        unknown = [column for column in columns if not group.is_clear(column)]
        keys = frozenset(column.key for column in unknown)
        # Columns that a file gives another name are not looked for in schemas of many files.
        files += [replace(file, unknown=file.unknown | keys | file.names.keys()) for file in group.files]
        for column in unknown:
            held[column, group.type_of(column)] += [file.path for file in group.files]
    refused = (
        Refusal(column.name, refusals.describe_other_type(kind, column.type, paths))
        for (column, kind), paths in held.items()
    )
    return tuple(files), tuple(refused)
