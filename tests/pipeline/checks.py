"""Compares stored statistics with Spark's own aggregates over the physical rows of every data file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import metastore
from metastore.adapters.identifiers import quote_name
from metastore.adapters.spark_versions import collect_arrow
from metastore.format.name_mapping import resolve_as_analyzed
from metastore.format.value_rendering import CUT_BYTES, to_python_value
from metastore.store import Store
from metastore.store.location import default_store_uri

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from metastore.format.manifest import Manifest, Snapshot
    from metastore.format.table_column import Column


def location(spark: SparkSession, table: str) -> str:
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return next(row.data_type for row in rows if row.col_name == "Location")


def both(spark: SparkSession, warehouse: Path, table: str, **arguments: Any) -> dict[str, dict[str, Any]]:
    """The rows of `summary` by column, asserted to be the same from SQL and from the location.

    Which data files are left after some commits a location does not tell.
    """
    by_sql = metastore.summary(spark, table, **arguments)
    by_location = metastore.open(f"{warehouse}/{table.removeprefix('ice.').replace('.', '/')}").summary(**arguments)
    assert len(by_sql) == len(by_location)
    for here, there in zip(by_sql, by_location, strict=True):
        assert here == (there if there["files"] is not None else {**there, "files": here["files"]})
    return {row["column_name"]: row for row in by_sql}


@dataclass(frozen=True)
class Stored:
    """Everything that a store says of a table, read object by object."""

    store: Store
    manifest: Manifest

    @classmethod
    def of(cls, spark: SparkSession, table: str) -> Stored:
        store = Store.open(default_store_uri(location(spark, table)))
        manifest = store.read()
        assert manifest is not None
        return cls(store, resolve_as_analyzed(manifest))

    @property
    def snapshot(self) -> Snapshot:
        return self.manifest.snapshots[-1]

    def files(self, computed: str = "full") -> dict[str, dict[str, dict[str, Any]]]:
        """Summary rows by data file and present column name, of all blocks computed so."""
        now = {(column.key, column.type): column for column in self.snapshot.columns}
        values: dict[str, dict[str, dict[str, Any]]] = {}
        for block in self.manifest.blocks:
            if block.computed != computed:
                continue
            paths = {row["file"]: row["path"] for row in self.store.get(block.files).to_pylist()}
            for path in paths.values():
                values.setdefault(path, {})
            for ref in block.summary:
                for row in self.store.get(ref.object).to_pylist():
                    column = now.get((block.columns[row["column"]].key, block.columns[row["column"]].type))
                    if column is not None:
                        values[paths[row["file"]]][column.name] = with_values(row, column)
        return values

    def table(self) -> dict[str, dict[str, Any]]:
        """Rows of the table level by column name."""
        if self.snapshot.summary is None:
            return {}
        rows = self.store.get(self.snapshot.summary).to_pylist()
        columns = self.snapshot.columns
        return {columns[row["column"]].name: with_values(row, columns[row["column"]]) for row in rows}

    def table_files(self) -> dict[str, dict[str, Any]]:
        return {row["path"]: row for row in self.store.get(self.snapshot.table_files).to_pylist()}


def with_values(row: dict[str, Any], column: Column) -> dict[str, Any]:
    for name in ("lo", "hi"):
        stored = None if column.encoding is None else row[f"{name}_{column.encoding}"]
        row[name] = stored if row[f"{name}_exact"] is False else to_python_value(stored, column)
    return {**row, "column": column}


def physical(spark: SparkSession, table: str, columns: tuple[Column, ...], *, by_file: bool = True) -> dict[Any, Any]:
    """Spark's aggregates over all rows, deleted ones included, by data file and column name."""
    parts = ["count(*) AS rows", "count_if(_deleted) AS deleted"]
    for number, column in enumerate(columns):
        parts += [f"{sql} AS {name}_{number}" for name, sql in _aggregates(column).items()]
    key = "_file" if by_file else "'all'"
    result = collect_arrow(spark.sql(f"SELECT {key} AS key, {', '.join(parts)} FROM {table} GROUP BY 1"))
    return {
        row["key"]: {
            "rows": row["rows"],
            "deleted": row["deleted"],
            "columns": {
                column.name: {name: row[f"{name}_{number}"] for name in _aggregates(column)}
                for number, column in enumerate(columns)
            },
        }
        for row in result.to_pylist()
    }


def _aggregates(column: Column) -> dict[str, str]:
    x = quote_name(column.path)
    if column.encoding is None:
        return {"nulls": f"count_if({x} IS NULL)"}
    value = f"IF(isnan({x}), NULL, {x})" if column.encoding == "double" else x
    statistics = {
        "nulls": f"count_if({x} IS NULL)",
        "lo": f"min({value})",
        "hi": f"max({value})",
        "distinct": f"count(DISTINCT {x})",
    }
    if column.encoding == "double":
        statistics["nans"] = f"count_if(isnan({x}))"
    if column.type == "boolean":
        statistics["trues"] = f"count_if({x})"
    if column.type in ("int", "bigint"):
        statistics["mean"] = f"CAST(avg(CAST({x} AS DECIMAL(38, 10))) AS DOUBLE)"
    if column.encoding == "double":
        finite = f"abs({x}) < CAST('Infinity' AS DOUBLE)"
        statistics["mean"] = f"avg(IF({finite}, CAST({x} AS DOUBLE), NULL))"
    if column.type in ("string", "binary"):
        statistics["max_len"] = f"max(octet_length({x}))"
    return statistics


def check(stored: dict[str, Any], truth: dict[str, Any], rows: int) -> None:
    """Compares one summary row with Spark's aggregates."""
    assert stored["rows"] == rows
    for name, expected in truth.items():
        if name in ("lo", "hi"):
            _check_bound(stored, name, expected)
        elif name == "distinct":
            assert stored["distinct_error"] == 0
            assert stored["distinct"] == expected
        elif name == "mean":
            assert (stored["mean"] is None) == (expected is None)
            assert expected is None or math.isclose(stored["mean"], expected, rel_tol=1e-9, abs_tol=1e-12)
        else:
            assert stored[name] == expected, (stored["column"].name, name)


def _check_bound(stored: dict[str, Any], name: str, expected: Any) -> None:
    bound, exact = stored[name], stored[f"{name}_exact"]
    cut = isinstance(expected, (str, bytes)) and len(expected) > CUT_BYTES
    if exact is not False and not (cut and bound is None):
        assert bound == expected, (stored["column"].name, name)
        return
    raw = expected.encode() if isinstance(expected, str) else bytes(expected)
    assert bound <= raw if name == "lo" else bound is None or bound >= raw


def check_table(spark: SparkSession, table: str) -> Stored:
    """Compares everything stored of a table's live files with Spark's aggregates."""
    stored = Stored.of(spark, table)
    columns = stored.snapshot.columns
    truth = physical(spark, table, columns)
    files = stored.files()
    for path, expected in truth.items():
        for column in columns:
            check(files[path][column.name], expected["columns"][column.name], expected["rows"])
    expected_table = physical(spark, table, columns, by_file=False).get("all")
    if expected_table is not None:
        for name, row in stored.table().items():
            check(
                {**row, "distinct_error": 0},
                _without_distinct(row, expected_table["columns"][name]),
                expected_table["rows"],
            )
        assert set(stored.table()) == {column.name for column in columns}
        assert stored.snapshot.rows == expected_table["rows"] - expected_table["deleted"]
        assert stored.snapshot.physical_rows == expected_table["rows"]
    listed = stored.table_files()
    assert set(listed) == set(truth)
    for path, expected in truth.items():
        assert listed[path]["deleted_rows"] == expected["deleted"]
        assert (listed[path]["deletes"] is not None) == (expected["deleted"] > 0)
    return stored


def _without_distinct(row: dict[str, Any], truth: dict[str, Any]) -> dict[str, Any]:
    if row["distinct_error"] in (0, None):
        return truth
    assert abs(row["distinct"] - truth["distinct"]) <= 5 * row["distinct_error"] * truth["distinct"] + 1
    return {name: value for name, value in truth.items() if name != "distinct"}
