"""Tables of every format, made alike; docs/gaps.json lists the behaviours of each."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from gaps import TARGETS
from hudi.schema_changes import DROPPING, ON_READ, alter
from lakes import SPARK
from planner.plans import conf

FORMATS = [target.format for target in TARGETS if target.spark == SPARK]
"""Those that the Spark under test reads and writes."""

COLUMNS = "id BIGINT, v INT, s STRING, x DOUBLE, st STRUCT<a: INT, b: STRING>, day DATE"
ROW = (
    "id, CAST(id % 7 AS INT) AS v, concat('s', lpad(CAST(id AS STRING), 5, '0')) AS s, id / 4 AS x,"
    " named_struct('a', CAST(id AS INT), 'b', CAST(id AS STRING)) AS st,"
    " date_add(DATE '2024-01-01', CAST(id DIV 100 AS INT)) AS day"
)


@dataclass(frozen=True)
class Kind:
    """How a table format is spoken to.

    Attributes:
        format: As in the manifest.
        name: A table's name, with a place for what is its own.
        properties: Of every table: the format itself is to skip nothing.
        column_prefix: The first letters of columns that the format adds.
        reads_paths: Whether a query can name a path.
    """

    format: str
    name: str
    properties: str = ""
    column_prefix: str = "-"
    reads_paths: bool = True

    def create(self, spark, table: str, path: Path, columns: str = COLUMNS, by: str = "") -> None:
        """Create an empty table, partitioned by a column."""
        partitioned = f"PARTITIONED BY ({by})" if by else ""
        where = f"LOCATION '{path.as_uri()}'" if self.format == "parquet" else ""
        spark.sql(f"CREATE TABLE {table} ({columns}) USING {self.format} {partitioned} {where} {self.properties}")

    def append(self, spark, table: str, start: int, end: int, *, row: str = ROW) -> None:
        """Write one data file a partition."""
        spark.sql(f"INSERT INTO {table} SELECT {row} FROM range({start}, {end}, 1, 1)")
        self.settle(spark, table)

    def append_wider(self, spark, table: str, start: int, end: int, row: str) -> None:
        """Write values of a widened type: what is inserted by name Spark casts to the older type of Hudi's table."""
        if self.format != "hudi":
            self.append(spark, table, start, end, row=row)
            return
        options = {"hoodie.table.name": table, "hoodie.datasource.write.operation": "insert"}
        rows = spark.sql(f"SELECT {row} FROM range({start}, {end}, 1, 1)")
        rows.write.format("hudi").options(**options).mode("append").save(self.location(spark, table))
        spark.sql(f"REFRESH TABLE {table}")

    def settle(self, spark, table: str) -> None:
        """Date files back that were just written, where ANALYZE would wait for them."""
        if self.format != "parquet":
            return
        for file in Path(self.location(spark, table).removeprefix("file:")).rglob("*.parquet"):
            if time.time() - file.stat().st_mtime < 60:
                os.utime(file, (time.time() - 3600,) * 2)
        spark.sql(f"REFRESH TABLE {table}")

    def widen(self, spark, table: str, column: str, wider: str) -> None:
        """Give a column a wider type; Hudi does so with the next write."""
        if self.format != "hudi":
            spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {wider}")
            return
        types, catalog = spark._jvm.org.apache.spark.sql, spark._jsparkSession.sessionState().catalog()
        name = types.catalyst.TableIdentifier(table)
        schema = json.loads(catalog.getTableMetadata(name).dataSchema().json())
        (field,) = (field for field in schema["fields"] if field["name"] == column)
        field["type"] = spark.sql(f"SELECT CAST(NULL AS {wider}) AS wider").schema["wider"].dataType.jsonValue()
        catalog.alterTableDataSchema(name, types.types.DataType.fromJson(json.dumps(schema)))
        spark.sql(f"REFRESH TABLE {table}")

    def alter(self, spark, table: str, kind: str, *words: str) -> None:
        """Rename, drop or add a column; Hudi does so in sessions that look for columns by ids, `evolving` ones."""
        if self.format == "hudi":
            alter(spark, table, (kind, *words))
        else:
            sql = {"rename": "RENAME COLUMN {} TO {}", "drop": "DROP COLUMN {}", "add": "ADD COLUMN {} {}"}[kind]
            spark.sql(f"ALTER TABLE {table} {sql.format(*words)}")

    def evolving(self, spark):
        """The settings with which columns are renamed, dropped and added, for a while."""
        return conf(spark, **({**ON_READ, **DROPPING} if self.format == "hudi" else {}))

    def location(self, spark, table: str) -> str:
        """The table's location."""
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
        return next(row.data_type for row in reversed(rows) if row.col_name == "Location")

    def drop(self, spark, table: str) -> None:
        """Drop the table and its files."""
        spark.sql(f"DROP TABLE IF EXISTS {table}" + (" PURGE" if self.format == "iceberg" else ""))


ICEBERG = Kind(
    "iceberg", "ice.db.alike_{}", "TBLPROPERTIES ('write.metadata.metrics.default' = 'none')", reads_paths=False
)
DELTA = Kind(
    "delta",
    "alike_delta_{}",
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.dataSkippingNumIndexedCols' = '0',"
    " 'delta.enableDeletionVectors' = 'true', 'delta.enableTypeWidening' = 'true')",
)
PARQUET = Kind("parquet", "alike_parquet_{}")
HUDI = Kind(
    "hudi",
    "alike_hudi_{}",
    "TBLPROPERTIES ('type' = 'cow', 'primaryKey' = 'id')",
    column_prefix="_hoodie_",
    reads_paths=False,
)
KINDS = {kind.format: kind for kind in (ICEBERG, DELTA, PARQUET, HUDI)}


def each_format(*formats: str, but: str = "") -> list:
    """Formats as parameters, all if none is named: of Delta and Parquet, which Spark plans alike, in slow tests alone.

    Delta takes five times as long for a query as Iceberg.
    """
    chosen = [format_ for format_ in formats or FORMATS if format_ != but]
    return [
        pytest.param(format_, marks=pytest.mark.slow) if format_ in ("delta", "parquet") else format_
        for format_ in chosen
    ]
