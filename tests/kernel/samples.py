"""Tables with a column of every type, in several profiles, and how they are read."""

import datetime as dt
import decimal
from dataclasses import replace

import numpy as np
import pyarrow as pa

from metastore.format.table_column import Column, encoding_of
from metastore.format.value_encoding import ARROW_TYPES
from metastore.kernel.distinct_sketch import parse_sketches
from metastore.kernel.parquet_schema import FileColumn
from metastore.kernel.reducer import count_distinct, merge_column

ARROW = {
    **ARROW_TYPES,
    "decimal(7,2)": pa.decimal128(7, 2),
    "decimal(18,4)": pa.decimal128(18, 4),
    "decimal(38,6)": pa.decimal128(38, 6),
    "string": pa.string(),
}
PROFILES = ("few", "many", "nulls", "constant", "empty")


def column(spark_type, name="c", key="1"):
    path = (name,) if isinstance(name, str) else tuple(name)
    return Column(key=key, path=path, type=spark_type, encoding=encoding_of(spark_type))


def reduce_column(of, rows, thetas):
    reduced = merge_column(of, rows, parse_sketches(thetas))
    return replace(reduced, **count_distinct(of, rows, reduced.sketch))


def file_column(spark_type, name="c"):
    return FileColumn(column(spark_type, name))


def values(spark_type, profile, rows, seed=0):
    random = np.random.default_rng(seed)
    spread = {"few": 12, "many": 10**9, "nulls": 500, "constant": 1, "empty": 1}[profile]
    numbers = random.integers(-spread // 2, spread // 2 + 1, rows) if spread > 1 else np.full(rows, 7)
    sample = [_value(spark_type, int(n)) for n in numbers]
    if profile == "nulls":
        sample = [None if gone else value for gone, value in zip(random.random(rows) < 0.3, sample, strict=True)]
    if profile == "empty":
        sample = [None] * rows
    return pa.array(sample, ARROW[spark_type])


def table(rows, seed=0):
    arrays, names = [], []
    for number, spark_type in enumerate(ARROW):
        for profile in PROFILES:
            arrays.append(values(spark_type, profile, rows, seed + number))
            names.append(f"{spark_type} {profile}")
    return pa.table(arrays, names)


def columns():
    return [file_column(spark_type, f"{spark_type} {profile}") for spark_type in ARROW for profile in PROFILES]


def _value(spark_type, n):
    bits = {"tinyint": 8, "smallint": 16, "int": 32}.get(spark_type)
    if bits:
        return (n + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    if spark_type.startswith("decimal"):
        precision, scale = map(int, spark_type[8:-1].split(","))
        unscaled = n * 10**24 + n if precision == 38 else n % 10**7
        return decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=38))
    return {
        "boolean": lambda: n % 2 == 0,
        "bigint": lambda: n * 7_000_000_007,
        "float": lambda: float(np.float32(n / 7)),
        "double": lambda: n / 7,
        "date": lambda: dt.date(1970, 1, 1) + dt.timedelta(days=n % 40_000 - 20_000),
        "timestamp": lambda: dt.datetime(2000, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(microseconds=n * 1001),
        "timestamp_ntz": lambda: dt.datetime(2000, 1, 1) + dt.timedelta(microseconds=n * 1001),  # noqa: DTZ001 - local
        "string": lambda: f"wert-{'ä' * (n % 3)}-{n % 977}-{n}" + "z" * (n % 90 if n % 5 == 0 else 0),
        "binary": lambda: (n % (1 << 32)).to_bytes(4, "little") * (1 + n % 30 if n % 7 == 0 else 1),
    }[spark_type]()
