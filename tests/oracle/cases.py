"""Cases as data: tables that some engine once lost rows of, replayed on the rules and on real tables.

A case is an object of `tests/cases/tables/*.json`:

- `columns`: DDL. A first column `file_no` is added: the number of the file.
- `steps`: a list of rows (SQL values) is one data file; a text is a statement, `{table}` stands for the name;
  `ANALYZE` computes the statistics before what follows. At the end they are computed unless that was said already.
- `analyze`: the only columns that have statistics. `properties` of the table, `conf` of the session.
- `queries`: `sql` over `{table}` and the `rows` that it returns, in any order.
- `predicates`: `where`, the files with a matching row (`read`: exactly these), and those that may not be read (`skip`).
  `only_spark`: Python's `prune` reads some of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakes import FORMATS
from oracle import without_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parent.parent / "cases/tables"


@dataclass(frozen=True)
class Case:
    """One case, as its file tells it."""

    name: str
    columns: str
    steps: Sequence[Any]
    predicates: Sequence[dict[str, Any]]
    queries: Sequence[dict[str, Any]] = ()
    seen: Sequence[str] = ()
    analyze: Sequence[str] | None = None
    properties: dict[str, str] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def fits(self, tables: CaseTables) -> bool:
        """Whether tables of a format can be changed as the case says."""
        changes = [step for step in self.steps if isinstance(step, str) and step != "ANALYZE"]
        if self.properties and tables.format != "iceberg":
            return False
        return all(change.startswith(tables.changes) for change in changes)

    @property
    def plain(self) -> bool:
        """Whether the case is nothing but rows, so that the rules answer without a table."""
        return all(isinstance(step, list) for step in self.steps)


@dataclass(frozen=True)
class CaseTables:
    """The tables of one format that cases are made of.

    Attributes:
        format: As SQL names it.
        name: Of a case's table, by the case's number.
        file: The expression that names the file of a row.
        changes: How the statements begin that change its tables.
        properties: Of each table.
        conf: Of the session: without them the format's own reader judges rows.
    """

    format: str
    name: str
    file: str
    changes: tuple[str, ...]
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    conf: dict[str, str] = field(default_factory=dict, hash=False)


ICEBERG = CaseTables(
    format="iceberg",
    name="ice.db.case_{}",
    file="_file",
    changes=("",),
    properties={"format-version": "2", **without_metrics.PROPERTIES},
)
DELTA = CaseTables(
    format="delta",
    name="case_{}",
    file="_metadata.file_path",
    changes=("DELETE", *(f"ALTER TABLE {{table}} {verb} COLUMN" for verb in ("ADD", "DROP", "RENAME"))),
    properties={
        "delta.columnMapping.mode": "name",
        "delta.dataSkippingNumIndexedCols": "0",
        "delta.enableDeletionVectors": "true",
        "delta.feature.timestampNtz": "supported",
    },
    conf={"spark.sql.parquet.filterPushdown": "false"},
)
PARQUET = CaseTables(
    format="parquet",
    name="case_{}",
    file="input_file_name()",
    changes=(),
    conf={"spark.sql.parquet.filterPushdown": "false"},
)


def tables_of_session() -> CaseTables:
    """The tables of the first format that this session has: Iceberg, Delta, directories of Parquet files."""
    if "iceberg" in FORMATS:
        return ICEBERG
    return DELTA if "delta" in FORMATS else PARQUET


def load() -> Iterator[Case]:
    """Yields all cases that fit the tables of this session."""
    tables = tables_of_session()
    for file in sorted(FOLDER.glob("*.json")):
        for case in json.loads(file.read_text()):
            read = Case(**case)
            if read.fits(tables):
                yield read


def create(spark: SparkSession, case: Case, table: str, analyze: Callable[[Sequence[str] | None], None]) -> None:
    """Makes the table of a case; runs of files go in by one append, one task a file."""
    tables = tables_of_session()
    chosen = {**tables.properties, **case.properties}
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in chosen.items())
    listed = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {table} (file_no INT, {case.columns}) USING {tables.format} {listed}")
    pending: list[list[str]] = []
    number, analyzed = 0, False
    for step in [*case.steps, None]:
        if isinstance(step, list):
            pending.append(step)
            continue
        if pending:
            _append(spark, table, number, pending)
            number, pending = number + len(pending), []
        if step == "ANALYZE":
            analyze(case.analyze)
            analyzed = True
        elif step is not None:
            spark.sql(step.format(table=table))
    if not analyzed:
        analyze(case.analyze)


def _append(spark: SparkSession, table: str, first: int, files: list[list[str]]) -> None:
    if tables_of_session() is ICEBERG:
        without_metrics.leave_out_metrics(spark, table)
    schema = spark.table(table).schema
    refusal = None
    for number, rows in enumerate(files, first):
        values = ", ".join(f"({number}, {row})" for row in rows)
        columns = ", ".join(
            f"CAST(col{i + 1} AS {_ddl(f.dataType)}) AS `{_escaped(f.name)}`" for i, f in enumerate(schema.fields)
        )
        part = spark.sql(f"SELECT {columns} FROM VALUES {values}").coalesce(1)
        refusal = part if refusal is None else refusal.unionAll(part)
    assert refusal is not None
    spark.conf.set("spark.sql.unionOutputPartitioning", "false")  # or Spark makes one task of them
    try:
        if tables_of_session() is PARQUET:
            refusal.write.insertInto(table)
        else:
            refusal.writeTo(table).append()
    finally:
        spark.conf.unset("spark.sql.unionOutputPartitioning")


def _escaped(name: str) -> str:
    return name.replace("`", "``")


def _ddl(kind: Any) -> str:
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415 - Spark is there by now

    if isinstance(kind, StructType):
        return "STRUCT<" + ", ".join(f"`{_escaped(f.name)}`: {_ddl(f.dataType)}" for f in kind.fields) + ">"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{_ddl(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return str(kind.simpleString())
