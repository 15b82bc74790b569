"""`render_value` shows values as Spark's CAST to string does, compared in one query a time zone.

Binary values are shown as literals, of what Spark's `hex` makes of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metastore.format.table_column import Column, encoding_of
from metastore.format.value_rendering import decimal_to_bytes, render_value

YEAR_MICROS = 31_556_952_000_000
UNITS = {"DAY": 86400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
ZONES = ("UTC", "America/New_York", "Asia/Kathmandu")


@dataclass
class Case:
    kind: str
    values: list[Any]  # as we store them
    data: pa.Array  # as Spark reads them
    expression: str = "{}"


def longs(seed, bits, limit=None):
    numbers = random.Random(seed)
    edges = [0, 1, -1, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1]
    unscaled = [numbers.getrandbits(numbers.randint(1, bits - 1)) * numbers.choice((1, -1)) for _ in range(200)]
    return [v for v in edges + unscaled if limit is None or abs(v) < limit]


def integers(kind, bits, expression="{}", limit=None, extra=()):
    values = longs(kind, bits, limit) + list(extra)
    return Case(kind, values, pa.array(values, pa.int32() if bits == 32 else pa.int64()), expression)


def doubles():
    numbers = random.Random(1)
    doubles = [0.0, -0.0, 1e-3, 9.999e-4, 1e7, 9999999.999, 123456.0, 1e10, 1e-5, 5e-324, 1.7976931348623157e308, 0.1]
    doubles += [float("nan"), float("inf"), float("-inf"), 2.0**-44, 100.0, 1.5e300, 3.0e-5]
    doubles += [round(numbers.uniform(-1e6, 1e6), numbers.randint(0, 6)) for _ in range(100)]
    return doubles + [numbers.randint(1, 99999) * 10.0 ** numbers.randint(-20, 20) for _ in range(100)]


def decimals(precision, scale):
    numbers = random.Random(precision)
    most = 10**precision - 1
    unscaled = [0, 1, -1, most, -most, *(numbers.randint(-most, most) for _ in range(100))]
    data = pa.array([Decimal(f"{u}E-{scale}") for u in unscaled], pa.decimal128(precision, scale))
    stored = unscaled if precision <= 18 else [decimal_to_bytes(u) for u in unscaled]
    return Case(f"decimal({precision},{scale})", stored, data)


def day_time(first, last):
    kind = f"INTERVAL {first}" + (f" TO {last}" if last != first else "")
    unit = UNITS[last] * 1_000_000
    values = [v * unit for v in longs(kind, 32) if abs(v * unit) < 10**17]
    values += [1, -1_500_000, 90_061_000_005] if last == "SECOND" else []
    expression = f"CAST(make_dt_interval(0, 0, 0, CAST({{}} / 1000000BD AS DECIMAL(18, 6))) AS {kind})"
    return Case(kind.lower(), values, pa.array(values, pa.int64()), expression)


def cases():
    texts = ["", "a", "ä€😀", "x" * 100, "\x00\n", "it's"]
    yield Case("string", [text.encode() for text in texts], pa.array(texts))
    blobs = [b"", b"ab", b"\x00\xff\x80"]
    yield Case("binary", blobs, pa.array(blobs), "concat('X', char(39), hex({}), char(39))")
    yield Case("boolean", [0, 1], pa.array([False, True]))
    yield Case("double", doubles(), pa.array(doubles()))
    with np.errstate(over="ignore"):
        singles = np.array(doubles(), np.float32)
    yield Case("float", singles.tolist(), pa.array(singles))
    yield integers("int", 32)
    yield integers("bigint", 64)
    yield integers("date", 32, "date_from_unix_date({})")
    yield integers("timestamp_ntz", 64, "CAST(timestamp_micros({}) AS TIMESTAMP_NTZ)", 290_000 * YEAR_MICROS)
    yield integers(
        "timestamp", 64, "timestamp_micros({})", 290_000 * YEAR_MICROS, [y * YEAR_MICROS for y in range(199)]
    )
    yield integers("interval year to month", 32, "make_ym_interval(0, {})")
    yield integers("interval month", 32, "CAST(make_ym_interval(0, {}) AS INTERVAL MONTH)")
    yield from (decimals(*size) for size in ((5, 0), (10, 2), (18, 18), (38, 0), (38, 10), (38, 38)))
    yield from (day_time(a, b) for i, a in enumerate(UNITS) for b in list(UNITS)[i:])


def same(kind, ours, theirs):
    if kind not in ("float", "double") or ours == theirs or theirs is None:
        return ours == theirs
    # Java before 19 does not always find the shortest digits
    number = np.float32 if kind == "float" else float
    return number(ours) == number(theirs) and len(ours) <= len(theirs)


@pytest.mark.spark
@pytest.mark.parametrize("zone", ZONES)
def test_as_spark_casts(spark, zone, tmp_path):
    chosen = [c for c in cases() if zone == "UTC" or c.kind == "timestamp"]
    chosen = [c for c in chosen if zone == "UTC" or c.kind != "timestamp_ntz"]  # made from an instant: UTC alone
    rows = max(len(c.values) for c in chosen)
    padded = [pa.concat_arrays([c.data, pa.nulls(rows - len(c.data), c.data.type)]) for c in chosen]
    pq.write_table(
        pa.table([*padded, pa.array(range(rows))], [*(f"c{i}" for i in range(len(chosen))), "n"]), tmp_path / "in"
    )
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        texts = [f"CAST({c.expression.format(f'c{i}')} AS STRING) AS c{i}" for i, c in enumerate(chosen)]
        frame = spark.read.parquet(str(tmp_path / "in")).selectExpr("n", *texts)
        frame.coalesce(1).write.parquet(str(tmp_path / "out"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    rendered = pq.read_table(tmp_path / "out").sort_by("n")
    for i, case in enumerate(chosen):
        column = Column(key="1", path=("c",), type=case.kind, encoding=encoding_of(case.kind))
        for value, theirs in zip(case.values, rendered[f"c{i}"].to_pylist(), strict=False):
            ours = render_value(value, column, zone=zone)
            assert same(case.kind, ours, theirs), (case.kind, value, ours, theirs)
