"""Tables whose aggregates the statistics answer, and queries over them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.plans import conf, files_read, physical

if TYPE_CHECKING:
    import random

COLUMNS = {
    "id": "BIGINT", "flag": "BOOLEAN", "i": "INT", "f": "FLOAT", "x": "DOUBLE", "nan": "DOUBLE", "zero": "DOUBLE",
    "n": "DECIMAL(12,2)", "w": "DECIMAL(30,4)", "m": "DECIMAL(7,3)", "s": "STRING", "long": "STRING",
    "d": "DATE", "t": "TIMESTAMP", "bytes": "BINARY", "nothing": "INT", "st": "STRUCT<a: INT, b: STRING>",
    "many": "ARRAY<INT>",
}  # fmt: skip
LEAVES = [*(name for name in COLUMNS if name not in ("st", "many")), "st.a", "st.b"]
ROW = (
    "id, id % 3 = 0 AS flag, CAST(if(id % 7 = 0, NULL, id * 31 % 1000 - 500) AS INT) AS i,"
    " CAST((id + 1) / 8 AS FLOAT) AS f, if(id % 5 = 0, NULL, id / 4 - 20.25) AS x,"
    " if(id >= 200 AND id % 9 = 0, double('NaN'), id + 1) AS nan,"
    " if(id = 150, -0.0D, if(id = 50, 0.0D, double(id % 100))) AS zero,"
    " CAST(id * 1.01 - 100 AS DECIMAL(12,2)) AS n, CAST(id * 10000000000000 AS DECIMAL(30,4)) AS w,"
    " CAST(id * 1.357 AS DECIMAL(7,3)) AS m,"
    " concat('s', lpad(CAST(id AS STRING), 5, '0')) AS s, concat(repeat('ab', 40), id) AS long,"
    " date_add(DATE '2024-01-01', CAST(id AS INT)) AS d, timestamp_micros(1700000000123456 + id * 86400000000) AS t,"
    " CAST(CAST(id AS STRING) AS BINARY) AS bytes, CAST(NULL AS INT) AS nothing,"
    " if(id % 11 = 0, NULL, named_struct('a', CAST(id AS INT), 'b', if(id < 100, NULL, 'y'))) AS st,"
    " if(id % 2 = 0, NULL, array(1)) AS many"
)
DECIDED = ["", "WHERE id >= 100", "WHERE ID < 200 AND s >= 's00100'", "WHERE id < 0"]
SUMMED = ["id", "i", "n", "w", "m"]
NUMBERS = itertools.count()


def new_name(kind) -> str:
    """A name that no table of the format has."""
    return kind.name.format(f"aggregates_{next(NUMBERS)}")


def fill(spark, kind, path, *, files: int = 4, columns: str = "", row: str = ROW) -> str:
    """A table of files of a hundred rows each; rows that are deleted stay in their files."""
    name = new_name(kind)
    if kind.format == "hudi" and files == 2:
        kind = replace(kind, properties=kind.properties.replace("cow", "mor"))
    kind.create(spark, name, path, columns or ", ".join(f"{column} {of}" for column, of in COLUMNS.items()))
    if kind.format == "iceberg":
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    for file in range(files):
        kind.append(spark, name, file * 100, file * 100 + 100, row=row)
    return name


def is_answered(df) -> bool:
    """Whether no scan is left: Delta answers some queries itself."""
    return not any(word in physical(df) for word in ("Scan parquet", "BatchScan", "FileScan"))


def is_merged(df) -> bool:
    """Whether what is read is added to what the statistics answer."""
    return "StatisticsAnswer" in physical(df) and not is_answered(df)


def rows_of(df, query: str) -> list[str]:
    """The rows of a query, in their order where it asks for one."""
    rows = [repr(row) for row in df.collect()]
    return rows if "ORDER BY" in query else sorted(rows)


def compare(spark, query: str, *, answered: bool | None = None, read: list[int] | None = None) -> Any:
    """A query gives the same rows and types as without us; where it is said, is answered or not, and reads so many."""
    df = spark.sql(query)
    answer = (rows_of(df, query), df.schema)
    with conf(spark, spark__metastore__enabled=False):
        plain = spark.sql(query)
        assert answer == (rows_of(plain, query), plain.schema), (query, physical(df))
    assert answered in (None, is_answered(df)), (query, physical(df))
    expected = [] if answered else read
    assert expected is None or files_read(df) == expected, (query, physical(df))
    return df


def condition(chance: random.Random, depth: int = 2) -> str:
    if depth and chance.random() < 0.5:
        left, right = condition(chance, depth - 1), condition(chance, depth - 1)
        return chance.choice([f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"])
    k, order = (
        chance.choice([-1, 0, 99, 100, 150, 200, 299, 300, 399, 400]),
        chance.choice(["<", "<=", ">", ">=", "<>"]),
    )
    return chance.choice([
        f"id {order} {k}", f"ID BETWEEN {k} AND {k + 199}", f"i {order} 0", "i IS NULL", "i IS NOT NULL",
        f"x {order} 40.5",
        f"nan {order} {k}", f"nan {order} double('NaN')", f"s {order} 's00{k:03}'", f"d {order} DATE '2024-04-10'",
        f"zero {order} 0", "nothing IS NULL", "st.b = 'y'", "st.b IS NULL", f"n {order} {k}", "flag", "true",
    ])  # fmt: skip
