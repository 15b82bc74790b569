"""Tables whose columns do not tell which of their files a query by an expression needs."""

from __future__ import annotations

import metastore

COLUMNS = "f int, name string, ts timestamp, a int, b int, lon double, lat double"
# Of no column alone do the bounds of a file tell what its rows are.
VALUES = """{file} f, concat(IF({i} % 2 = 0, 'Ab', 'aB'), {file}, lpad({i}, 2, '0')) name,
    make_timestamp(2024, 1 + {file}, 1 + {i} % 28, {i} % 24, 0, 0) ts, {i} * 100 a,
    IF({file} = 3 AND {i} = 8, null, {file} * 10 - {i} * 100) b,
    {i} % 4 + 0.5D lon, ({i} + {file}) % 4 + 0.25D lat"""
ROWS = f"SELECT {VALUES.replace('{i}', 'i')} FROM (SELECT CAST(id AS int) i FROM range(40))"
CELL = "floor(lon) * 1000 + floor(lat)"
EXPRESSIONS = ["lower(name)", "date_format(ts, 'MM yyyy')", "a + b", CELL, "a > b", "lon + lat"]


def open_table(warehouse, table):
    return metastore.open(f"{warehouse}/{table.removeprefix('ice.').replace('.', '/')}")


def four_files() -> list[str]:
    return [ROWS.format(file=file) for file in range(4)]
