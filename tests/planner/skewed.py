"""A table of skewed columns of many types, and conditions on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import metastore
from planner.plans import conf

if TYPE_CHECKING:
    from collections.abc import Iterator


ROWS = 6_000
FILES = 4
COLUMNS = {
    "id": "id",
    "skewed": "if(id % 10 < 9, 1, cast(pmod(hash(id), 40) as int))",
    "word": "if(id % 7 = 0, null, concat('w', cast(pmod(hash(id, 1), 30) as string)))",
    "price": "cast(pmod(hash(id, 2), 2000) / 100 as decimal(10,2))",
    "ratio": "if(id < 50, double('NaN'), if(id % 9 = 0, null, pmod(hash(id, 3), 100) / 4.0))",
    "day": "date_add(date'2024-01-01', cast(id div 200 as int))",
    "stamp": "timestamp_seconds(1704067200 + id * 600)",
    "local": "cast(timestamp_seconds(1704067200 + id * 600) as timestamp_ntz)",
    "flag": "pmod(hash(id, 4), 5) = 0",
    "st": "named_struct('a', cast(pmod(hash(id, 5), 25) as int), 'b', cast(id as string))",
    "bytes": "cast(concat('b', cast(pmod(hash(id, 6), 9) as string)) as binary)",
}
COUNTED = [
    "skewed = 1", "skewed = 7", "skewed = -1", "skewed <> 1", "skewed IN (1, 3, 99)", "skewed NOT IN (1, 2)",
    "skewed % 3 = 2", "skewed < 5 OR skewed > 30", "skewed BETWEEN 3 AND 17", "word IS NULL", "word = 'w3'",
    "word LIKE '%1%'", "word LIKE 'w2%'", "upper(word) = 'W11'", "length(word) = 3", "word > 'w2' AND word <= 'w27'",
    "isnan(ratio)", "ratio > 20", "ratio <= 3.25 OR ratio IS NULL", "NOT isnan(ratio) AND ratio >= 24.75",
    "day = date'2024-01-20'", "dayofweek(day) = 2", "year(day) = 2024", "flag", "NOT flag", "st.a = 4",
    "st.a < 10 AND st.a > 2", "bytes = X'6233'", "startswith('w11', word)", "word <> 'w3' AND word >= 'w1'",
    "skewed >= 30 OR skewed <=> NULL", "NOT startswith(word, 'w1')", "ratio < 3.0 OR ratio = double('NaN')",
    "flag <> true", "id % 100 = 7", "id >= 5990", "price = 10.01",
]  # fmt: skip
"""Of columns whose every value is counted."""


BINNED_COLUMNS = {
    **{name: COLUMNS[name] for name in ("id", "stamp", "local", "st")},
    "price": "cast(pmod(hash(id, 2), 20000) / 1000 as decimal(10,3))",
}
BINNED_ROWS = 10_000
BINNED = [
    "id < 1234", "id >= 5990", "price < 5.55", "price = 10.01", "price BETWEEN 2.00 AND 3.00",
    "stamp < timestamp'2024-01-15 00:00:00'", "local >= timestamp_ntz'2024-02-01 00:00:00'", "st.b < '3'",
]  # fmt: skip
"""Of columns with too many values for that, in files of half of the rows."""


@pytest.fixture(scope="module")
def skewed(spark) -> Iterator[str]:
    table = "ice.db.planner_skewed"
    spark.sql(
        f"CREATE TABLE {table} ("
        "id bigint, skewed int, word string, price decimal(10,2), ratio double, day date, stamp timestamp, "
        "local timestamp_ntz, flag boolean, st struct<a: int, b: string>, bytes binary) USING iceberg"
    )
    for low in range(0, ROWS, ROWS // FILES):
        columns = [f"{expression} AS {name}" for name, expression in COLUMNS.items()]
        spark.range(low, low + ROWS // FILES).selectExpr(*columns).coalesce(1).writeTo(table).append()
    metastore.analyze(spark, table, progress=False)
    with conf(spark, spark__metastore__planning__timeout="60s"):
        yield table
    spark.sql(f"DROP TABLE {table}")


@pytest.fixture(scope="module")
def binned(spark) -> Iterator[str]:
    table = "ice.db.planner_binned"
    columns = [f"{expression} AS {name}" for name, expression in BINNED_COLUMNS.items()]
    spark.range(0, BINNED_ROWS, 1, 2).selectExpr(*columns).writeTo(table).using("iceberg").create()
    metastore.analyze(spark, table, progress=False)
    yield table
    spark.sql(f"DROP TABLE {table}")


def counted(spark, text: str) -> int:
    return spark.sql(f"SELECT count(*) FROM {text}").head()[0]
