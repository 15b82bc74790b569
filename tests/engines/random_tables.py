"""Random tables of small Parquet files, what their statistics say, and random filters with the rows that they keep.

Statistics are true, but as poor as a writer may leave them: bounds missing, cut or not exact, counts unknown, lists and
filters of some columns alone. Filters are written twice: as Spark's SQL, which `prune` reads, and as DuckDB's, which
counts rows.
"""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from planner.written import Values, Written, describe_parquet_folder, stored

if TYPE_CHECKING:
    import random
    from pathlib import Path

DAY = dt.date(2024, 2, 27)
UTC = dt.timezone.utc
TYPES = {
    "i": pa.int32(),
    "k": pa.int64(),
    "d": pa.float64(),
    "f": pa.float32(),
    "s": pa.string(),
    "x": pa.binary(),
    "p": pa.bool_(),
    "day": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
    "c": pa.decimal128(9, 2),
    "w": pa.decimal128(30, 3),
}
DOUBLES = [0.0, -0.0, 1.5, 2.0, -3.25, 0.1, 1e300, float("inf"), float("-inf"), float("nan"), 7.0, 0.30000000000000004]
TEXTS = [
    "",
    " A ",
    "aB",
    "a",
    "ab",
    "abc",
    "b",
    "a\0",
    "a\0b",
    "zz",
    "é",
    "😀",
    "ab%",
    "a_c",
    "it's",
    "a" * 70 + "x",
    "a" * 70 + "y",
    "\uffee",
]


def value_of(rng: random.Random, name: str, near: int) -> Any:
    """A value of a column; those of one file are near to each other."""
    number = near + rng.randrange(6)
    return {
        "i": lambda: number,
        "k": lambda: rng.choice([number, number * (1 << 40), (1 << 63) - 1, -(1 << 63)]),
        "d": lambda: rng.choice([rng.choice(DOUBLES), float(number), number + 0.5]),
        "f": lambda: rng.choice([rng.choice(DOUBLES[:6] + DOUBLES[7:11]), float(number)]),
        "s": lambda: rng.choice([rng.choice(TEXTS), f"n{number:03d}"]),
        "x": lambda: rng.choice([b"", b"\xff", b"\xff\xff", b"\0", bytes([number % 256]), b"a\0"]),
        "p": lambda: rng.random() < (0.02 if near % 2 else 0.98),
        "day": lambda: DAY + dt.timedelta(days=number),
        "t": lambda: dt.datetime(2024, 2, 27, tzinfo=UTC) + dt.timedelta(hours=number, microseconds=number % 3),
        "n": lambda: dt.datetime(2024, 2, 27) + dt.timedelta(hours=number, microseconds=number % 3),  # noqa: DTZ001 - a wall clock
        "c": lambda: Decimal(number * 25) / 100,
        "w": lambda: Decimal(rng.choice([number, number * 10**20])) / 1000,
    }[name]()


def table_of(rng: random.Random, rows: int) -> pa.Table:
    """The rows of one file."""
    columns = {}
    for name, kind in TYPES.items():
        near, missing = rng.randrange(40), rng.choice([0.0, 0.0, 0.2, 1.0 if rng.random() < 0.2 else 0.1])
        values = [None if rng.random() < missing else value_of(rng, name, near) for _ in range(rows)]
        columns[name] = pa.array(values, kind)
    nested = [None if rng.random() < 0.1 else {"y": rng.randrange(9), "z": f"z{rng.randrange(9)}"} for _ in range(rows)]
    return pa.table({**columns, "st": pa.array(nested, pa.struct([("y", pa.int32()), ("z", pa.string())]))})


def write_table(rng: random.Random, root: Path, files: int) -> dict[str, pa.Table]:
    """Data files below a folder, by their paths, and statistics beside them."""
    root.mkdir(parents=True)
    tables = {}
    for number in range(files):
        path = root / f"{number:03d}.parquet"
        tables[str(path)] = table_of(rng, rng.choice([1, 2, 5, 12]))
        pq.write_table(tables[str(path)], path)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    worsened(rng, describe_parquet_folder(root), tables).write("1")
    return tables


def worsened(rng: random.Random, written: Written, tables: dict[str, pa.Table]) -> Written:
    """The same with less in it, and with lists and filters of some columns."""
    root = written.folder.parent
    files = []
    for file in written.files:
        table = tables[str(root / file.path)]
        columns, values = {}, {}
        for column, row in file.columns.items():
            columns[column] = _less(rng, dict(row))
            if len(column.path) == 1 and rng.random() < 0.5:
                values_of_column = [stored(value) for value in table[column.path[0]].drop_null()]
                values_of_column = [value for value in values_of_column if value == value]  # noqa: PLR0124 - NaN
                single = sorted(set(values_of_column))
                is_listed = rng.random() < 0.5
                listed = [(value, values_of_column.count(value)) for value in single] if is_listed else []
                values[column] = Values("complete" if is_listed else "none", listed, single or None)
                columns[column]["distinct"] = len(single)
        files.append(replace(file, columns=columns, values=values))
    return replace(written, files=files)


def _less(rng: random.Random, row: dict[str, Any]) -> dict[str, Any]:
    for name in ("nulls", "nans"):
        if rng.random() < 0.1:
            row[name] = None
    for side in ("lo", "hi"):
        if rng.random() < 0.1:
            row.update({key: None for key in row if key.startswith(f"{side}_")})
        elif rng.random() < 0.1 and f"{side}_exact" in row:
            row[f"{side}_exact"] = False
            bound = row.get(f"{side}_long")
            if bound is not None and abs(bound) < 1 << 40:
                row[f"{side}_long"] = bound + (-1 if side == "lo" else 1)
            if side == "hi" and row.get("hi_binary") is not None and rng.random() < 0.5 and "avg_len" in row:
                row["hi_binary"] = row["hi_binary"][:60] + b"\xff"
    return row


@dataclass(frozen=True)
class Filter:
    """A filter in Spark's SQL and in DuckDB's; `readings` are further ones: rows of each have to be found."""

    spark: str
    duck: str
    readings: tuple[str, ...] = field(default=())


def literal(value: Any, name: str) -> tuple[str, str]:
    """A literal of a column's own type, in Spark's SQL and in DuckDB's."""
    if name in ("d", "f"):
        cast = {"d": "double", "f": "float"}[name]
        text = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))
        return f"{cast}('{text}')", f"CAST('{text}' AS {cast})"
    if name == "s":
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
        return f"'{escaped}'", "chr(0)||".join(_quoted(part) + "||" for part in value.split("\0")).removesuffix("||")
    if name == "x":
        return f"X'{value.hex()}'", "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    if name == "day":
        return f"DATE '{value}'", f"DATE '{value}'"
    if name == "t":
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return f"TIMESTAMP '{text}'", f"TIMESTAMPTZ '{text}+00'"
    if name == "n":
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return f"TIMESTAMP_NTZ '{text}'", f"TIMESTAMP '{text}'"
    if name == "k":
        return (f"{value}L" if value >= 0 else f"-{-value}L"), f"({value}::HUGEINT)::BIGINT"
    return str(value).lower() if name == "p" else f"{value}", str(value)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def leaf(rng: random.Random) -> Filter:
    """A condition without AND, OR and NOT."""
    name = rng.choice([*TYPES, *TYPES, "st"])
    if name == "st":
        number = rng.randrange(-1, 11)
        return rng.choice(
            [Filter(f"st.y {op} {number}", f"st.y {op} {number}") for op in ("=", "<", ">=", "<>")]
            + [Filter("st.z IS NULL", "st.z IS NULL"), Filter(f"st.z LIKE 'z{number}%'", f"st.z LIKE 'z{number}%'")]
        )
    return _function(rng, name) if name in FUNCTIONS and rng.random() < 0.25 else _plain(rng, name)


def _plain(rng: random.Random, name: str) -> Filter:
    kind = rng.random()
    if kind < 0.1:
        negation = rng.choice(["", "NOT "])
        return Filter(f"{name} IS {negation}NULL", f"{name} IS {negation}NULL")
    if name == "p" and kind < 0.5:
        return Filter("p", "p")
    if name in ("d", "f") and kind < 0.2:
        return Filter(f"isnan({name})", f"coalesce(isnan({name}), false)")
    if name == "s" and kind < 0.4:
        return _like(rng)
    if name in ("i", "c", "d", "f") and kind < 0.35:
        return _against_number(rng, name)
    if name in ("i", "k", "day") and kind < 0.42:
        other = {"i": "k", "k": "i", "day": "day"}[name]
        op = rng.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        return Filter(f"{name} {op} {other}", f"{name} {_duck(op)} {other}")
    if kind < 0.6:
        values = [literal(value_of(rng, name, rng.randrange(40)), name) for _ in range(rng.randrange(1, 4))]
        word = rng.choice(["IN", "NOT IN"])
        lists = [", ".join(value[side] for value in values) for side in (0, 1)]
        more = ", NULL" if rng.random() < 0.1 else ""
        return Filter(f"{name} {word} ({lists[0]}{more})", f"{name} {word} ({lists[1]}{more})")
    if kind < 0.7:
        low, high = (literal(value_of(rng, name, rng.randrange(40)), name) for _ in range(2))
        word = rng.choice(["BETWEEN", "NOT BETWEEN"])
        return Filter(f"{name} {word} {low[0]} AND {high[0]}", f"{name} {word} {low[1]} AND {high[1]}")
    op = rng.choice(["=", "=", "<", "<=", ">", ">=", "<>", "<=>"])
    spark, duck = literal(value_of(rng, name, rng.randrange(40)), name)
    return Filter(f"{name} {op} {spark}", f"{name} {_duck(op)} {duck}")


FUNCTIONS = {
    "i": {
        "i + 7": "i",
        "10 - i": "i",
        "-i": "i",
        "i * 3": "i",
        "i % 5": "i",
        "CAST(i AS BIGINT)": "k",
        "(i - 2) * -2": "i",
    },
    "k": {"CAST(k AS DOUBLE)": "d"},
    "f": {"CAST(f AS DOUBLE)": "d"},
    "day": {
        "year(day)": "i",
        "month(day)": "i",
        "date_add(day, 10)": "day",
        "day - 3": "day",
        "CAST(day AS TIMESTAMP_NTZ)": "n",
        "trunc(day, 'MM')": "day",
        "trunc(day, 'week')": "day",
        "quarter(day)": "i",
    },
    "t": {"CAST(t AS DATE)": "day", "date_trunc('DAY', t)": "t", "date_trunc('HOUR', t)": "t", "year(t)": "i"},
    "n": {"CAST(n AS DATE)": "day", "month(n)": "i"},
    "c": {"CAST(c AS DECIMAL(12,3))": "c"},
    "s": {
        "lower(s)": "s",
        "upper(s)": "s",
        "trim(s)": "s",
        "length(s)": "i",
        "left(s, 2)": "s",
        "right(s, 1)": "s",
        "substring(s, 1, 3)": "s",
        "substring(s, 2, 2)": "s",
        "lower(trim(s))": "s",
    },
}
"""Functions of a column, and the column that their results are like."""
_DUCK_SPELLS = {
    "date_add(day, 10)": "day + 10",
    "CAST(day AS TIMESTAMP_NTZ)": "CAST(day AS TIMESTAMP)",
    "trunc(day, 'MM')": "CAST(date_trunc('month', day) AS DATE)",
    "trunc(day, 'week')": "CAST(date_trunc('week', day) AS DATE)",
}


def _function(rng: random.Random, name: str) -> Filter:
    """A function of a column against a value like its results, mostly that of a value like the column's."""
    call, like = rng.choice(list(FUNCTIONS[name].items()))
    op = rng.choice(["=", "=", "<", "<=", ">", ">=", "<>", "<=>"])
    if call.startswith(("year", "month", "quarter", "length")):
        value: Any = rng.choice([0, 1, 2, 3, 4, 2023, 2024, 2025])
    else:
        value = value_of(rng, like, rng.randrange(40))
    spark, duck = literal(value, like)
    return Filter(f"{call} {op} {spark}", f"{_DUCK_SPELLS.get(call, call)} {_duck(op)} {duck}")


def _duck(op: str) -> str:
    return "IS NOT DISTINCT FROM" if op == "<=>" else op


def _against_number(rng: random.Random, name: str) -> Filter:
    """A column against a number of another type."""
    op = rng.choice(["=", "<", "<=", ">", ">=", "<>"])
    number = rng.randrange(-2, 60)
    text = rng.choice([f"{number}", f"{number}.5", f"{number / 100}", "0.1", f"{number}.0"])
    if name in ("i", "d") and rng.random() < 0.3:
        return Filter(
            f"{name} {op} {text}e0" if "." in text else f"{name} {op} {text}D", f"{name} {op} CAST({text} AS DOUBLE)"
        )
    duck = f"{name} {op} {text}"
    if name == "f":  # Spark compares doubles
        return Filter(duck, duck, (f"CAST(f AS DOUBLE) {op} CAST({text} AS DOUBLE)",))
    return Filter(duck, duck)


def _like(rng: random.Random) -> Filter:
    pattern = rng.choice(["a%", "ab%", "%b", "%b%", "n0_5%", "_", "a\\\\_c", "n01%", "", "%", "é%", "a%c", "zz", "n%5"])
    word = rng.choice(["LIKE", "NOT LIKE"])
    plain = pattern.replace("\\\\", "\\")
    if rng.random() < 0.3:
        part = rng.choice(["a", "n0", "", "b"])
        call = rng.choice(["startswith", "endswith", "contains"])
        of_duck = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}[call]
        return Filter(f"{call}(s, '{part}')", f"{of_duck}(s, '{part}')")
    return Filter(f"s {word} '{pattern}'", f"s {word} '{plain}' ESCAPE '\\'")


def make_filter(rng: random.Random, depth: int = 2) -> Filter:
    """A tree of conditions."""
    kind = rng.random() if depth else 0.0
    if kind < 0.4:
        return leaf(rng)
    if kind < 0.55:
        inner = make_filter(rng, depth - 1)
        return Filter(
            f"NOT ({inner.spark})", f"NOT ({inner.duck})", tuple(f"NOT ({reading})" for reading in inner.readings)
        )
    word = "AND" if kind < 0.8 else "OR"
    parts = [make_filter(rng, depth - 1) for _ in range(2)]
    readings = [
        f"({first}) {word} ({second})"
        for first in (parts[0].duck, *parts[0].readings)
        for second in (parts[1].duck, *parts[1].readings)
    ]
    return Filter(f"({parts[0].spark}) {word} ({parts[1].spark})", readings[0], tuple(readings[1:]))


def matching_files(tables: dict[str, pa.Table], filters: list[Filter]) -> list[set[str]]:
    """For each filter the files that hold a row of which any reading of it is true."""
    all_rows = pa.concat_tables(
        [table.append_column("file_", pa.array([path] * table.num_rows)) for path, table in tables.items()]
    )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("whole_", all_rows)
        connection.execute("CREATE TABLE all_ AS SELECT * FROM whole_")
        files = []
        for filter_ in filters:
            either = " OR ".join(f"coalesce(({reading}), false)" for reading in (filter_.duck, *filter_.readings))
            files.append(
                {path for (path,) in connection.execute(f"SELECT DISTINCT file_ FROM all_ WHERE {either}").fetchall()}
            )
    return files
