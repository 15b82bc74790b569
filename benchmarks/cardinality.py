"""How near the optimizer's row counts are: filters and joins on skewed data, with our numbers and with others'.

    uv run python benchmarks/cardinality.py --scale 1

One million events in 16 Iceberg data files: keys that follow Zipf's law, a value that nine rows of ten have, pairs of
columns that go together, near-unique texts, NULLs, NaN in one file, decimals, dates in the order of the files. Three
smaller tables are joined with them. For each query the q-error max(estimate / true, true / estimate) of the plan's row
count is taken, with our statistics, with none, with Spark's own ANALYZE and its histograms (on Parquet copies), and
with the distinct counts that Iceberg itself computes. The true numbers are DuckDB's, of the same rows.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import report, spark_session
from py4j.protocol import Py4JJavaError

import metastore
from metastore.jvm_session import find_shim_package

if TYPE_CHECKING:
    from collections.abc import Iterator

EVENTS, FILES = 1_000_000, 16
WARM_UP = 20
TABLES = ("events", "visits", "users", "places")
WAYS = ("metastore", "off", "nothing", "spark", "iceberg")

FILTERS = {
    "one column": [
        *(f"zipf = {value}" for value in (1, 2, 10, 100, 1_000, 15_000)),
        "zipf <= 2",
        "zipf <= 100",
        "zipf > 1000",
        "zipf BETWEEN 20 AND 40",
        "zipf IN (1, 3, 500)",
        "zipf <> 1",
        "zipf NOT IN (1, 2, 3)",
        "zipf < 3 OR zipf > 10000",
        "zipf % 7 = 3",
        "zipf = -5",
        *(f"tag = '{value}'" for value in ("common", "rare", "absent")),
        "tag LIKE '%mm%'",
        "tag LIKE 'r%'",
        "tag <> 'common'",
        "upper(tag) = 'SOME'",
        "length(tag) = 4",
        "status = 'ok'",
        "status <> 'ok'",
        "status IS NULL",
        "status IS NOT NULL",
        "status IN ('failed', 'late')",
        "name = 'user-0000123456'",
        "name LIKE 'user-00001%'",
        "name < 'user-0000250000'",
        "name LIKE '%999'",
        "price < 20",
        "price > 1000",
        "price BETWEEN 50 AND 60",
        "price >= 10 AND price < 12",
        "isnan(price)",
        "price = 20.0",
        "amount < 10.00",
        "amount BETWEEN 100.00 AND 200.00",
        "amount = 55.55",
        "amount > 9999.00",
        "day = DATE'2024-03-01'",
        "day < DATE'2024-02-01'",
        "year(day) = 2024 AND month(day) = 5",
        "day BETWEEN DATE'2024-06-01' AND DATE'2024-06-07'",
        "dayofweek(day) = 1",
        "stamp < TIMESTAMP'2024-02-15 12:00:00'",
        "date_trunc('MONTH', stamp) = TIMESTAMP'2024-04-01 00:00:00'",
        "local < TIMESTAMP_NTZ'2024-02-15 12:00:00'",
        "flag",
        "NOT flag",
        "id < 1000",
        "id < 1000 OR id > 999000",
    ],
    "independent columns": [
        "zipf = 1 AND qty = 7",
        "zipf <= 3 AND qty < 10",
        "status = 'failed' AND qty > 40",
        "flag AND zipf = 2",
        "price > 100 AND qty = 3",
        "amount < 50.00 AND flag",
        "qty = 1 OR flag",
        "qty IN (1, 2) AND price < 10",
        "status = 'ok' AND NOT flag",
        "zipf > 100 AND qty BETWEEN 10 AND 12",
    ],
    "columns that go together": [
        "zipf = 1 AND tag = 'common'",
        "day < DATE'2024-02-01' AND id < 50000",
        "day = DATE'2024-03-01' AND id > 900000",
        "city = 'city-3' AND country = 'country-3'",
        "stamp < TIMESTAMP'2024-02-15 12:00:00' AND day < DATE'2024-02-01'",
        "zipf < qty",
    ],
}

PAIRS = {
    "e.zipf = v.zipf": "visits v",
    "e.zipf = u.user": "users u",
    "e.place = p.place": "places p",
    "e.place = v.place": "visits v",
    "e.zipf = f.zipf": "events f",
}
LEFT = (
    "true",
    "e.zipf <= 50",
    "e.zipf > 20",
    "e.qty < 10",
    "e.status = 'failed'",
    "e.day < DATE'2024-02-01'",
    "e.flag",
    "e.price > 500",
)
RIGHT = {
    "v": "v.kind = 3",
    "u": "u.age < 30",
    "p": "p.region = 'region-2'",
    "f": "f.id < 20000",
}
SEMI_JOINS = [
    "events WHERE zipf IN (SELECT user FROM users WHERE age < 30)",
    "events WHERE zipf NOT IN (SELECT user FROM users WHERE age < 30)",
    "users WHERE user IN (SELECT zipf FROM events WHERE qty = 3)",
    "users WHERE user NOT IN (SELECT zipf FROM visits WHERE zipf IS NOT NULL)",
    "visits v WHERE EXISTS (SELECT 1 FROM events e WHERE e.zipf = v.zipf AND e.flag)",
    "visits v WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.zipf = v.zipf AND e.zipf > 3)",
    "events WHERE place IN (SELECT place FROM places WHERE region = 'region-2') AND qty < 10",
    "events WHERE city IN (SELECT city FROM events WHERE city = 'city-3')",
]
LARGER = [
    "events e JOIN users u ON e.zipf = u.user JOIN places p ON e.place = p.place",
    "visits v JOIN users u ON v.zipf = u.user JOIN places p ON v.place = p.place",
    "events e JOIN visits v ON e.zipf = v.zipf JOIN places p ON v.place = p.place",
    "events e JOIN visits v ON e.zipf = v.zipf JOIN users u ON v.zipf = u.user JOIN places p ON e.place = p.place",
]
LARGER_FILTERS = [
    ("e.zipf > 20", "v.kind = 3", "e.zipf > 100 AND v.kind = 1", "e.zipf BETWEEN 30 AND 300"),
    (
        "e.qty < 5 AND u.age < 30",
        "v.kind < 2 AND u.age > 60",
        "e.zipf > 50 AND p.region = 'region-1'",
        "e.zipf > 40 AND p.region = 'region-2'",
    ),
    (
        "e.zipf <= 3 AND p.region = 'region-0'",
        "u.age BETWEEN 20 AND 25",
        "e.qty = 3 AND e.zipf > 30",
        "e.qty = 3 AND e.zipf > 10 AND u.age < 40",
    ),
]


@dataclass(frozen=True)
class Query:
    """A query of a kind, by what stands behind FROM."""

    kind: str
    text: str


def queries() -> Iterator[Query]:
    """All queries."""
    for kind, filters in FILTERS.items():
        yield from (Query(kind, f"events WHERE {where}") for where in filters)
    for (on, right), left_side in itertools.product(PAIRS.items(), LEFT):
        also = RIGHT[right[-1]] if LEFT.index(left_side) % 2 else "true"
        where = "e.id < 20000" if right[-1] == "f" and left_side == "true" else left_side
        yield Query("two tables", f"events e JOIN {right} ON {on} WHERE {where} AND {also}")
    yield from (Query("semi and anti joins", text) for text in SEMI_JOINS)
    for filters in LARGER_FILTERS:
        yield from (
            Query("three and four tables", f"{text} WHERE {where}") for text, where in zip(LARGER, filters, strict=True)
        )


def zipf(random: np.random.Generator, rows: int, most: int) -> np.ndarray:
    """Numbers from 1 to `most`, of which the k-th is 1/k^1.2 as frequent as the first."""
    weights = 1 / np.arange(1, most + 1) ** 1.2
    return np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(rows)) + 1


def tables(scale: float) -> dict[str, pa.Table]:
    """The rows."""
    random = np.random.default_rng(16)
    n = max(int(EVENTS * scale), FILES * 100)
    keys = zipf(random, n, 20_000)
    seconds = 1_704_067_200 + np.sort(random.integers(0, 366 * 86_400, n))
    price = random.lognormal(3, 1.5, n)
    price[: n // FILES][random.random(n // FILES) < 0.01] = np.nan  # in the first file alone
    tags = np.where(
        keys <= 3, "common", np.where(random.random(n) < 0.001, "rare", np.where(keys % 2 == 0, "some", "other"))
    )
    status = np.where(random.random(n) < 0.9, "ok", random.choice(["failed", "late", "lost"], n, p=[0.7, 0.25, 0.05]))
    cities = random.integers(0, 30, n)
    stamps = pa.array(seconds * 1_000_000)
    events = {
        "id": pa.array(np.arange(n)),
        "zipf": pa.array(keys),
        "qty": pa.array(random.integers(1, 51, n).astype(np.int32)),
        "tag": pa.array(tags),
        "status": pa.array(status, mask=random.random(n) < 0.2),
        "name": pa.array([f"user-{number:010d}" for number in random.permutation(n)]),
        "price": pa.array(price),
        "amount": pa.array(np.round(random.gamma(1.5, 200, n), 2)).cast(pa.decimal128(12, 2), safe=False),
        "day": pa.array((seconds // 86_400).astype(np.int32), pa.date32()),
        "stamp": stamps.cast(pa.timestamp("us", tz="UTC")),
        "local": stamps.cast(pa.timestamp("us")),
        "flag": pa.array(random.random(n) < 0.1),
        "city": pa.array([f"city-{c}" for c in cities]),
        "country": pa.array([f"country-{c % 5}" for c in cities]),
        "place": pa.array(zipf(random, n, 300)),
    }
    m = n // 5
    visits = {
        "visit": pa.array(np.arange(m)),
        "zipf": pa.array(zipf(random, m, 20_000)),
        "place": pa.array(random.integers(1, 301, m)),
        "kind": pa.array(zipf(random, m, 6).astype(np.int32)),
    }
    users = {"user": pa.array(np.arange(1, 20_001)), "age": pa.array(random.integers(18, 90, 20_000).astype(np.int32))}
    places = {"place": pa.array(np.arange(1, 301)), "region": pa.array([f"region-{p % 4}" for p in range(300)])}
    return {name: pa.table(columns) for name, columns in zip(TABLES, (events, visits, users, places), strict=True)}


def count_rows(rows: dict[str, pa.Table], asked_queries: list[Query]) -> list[int]:
    """The true numbers of rows."""
    with duckdb.connect() as engine:
        for name, table in rows.items():
            engine.register(name, table)
        engine.sql("SET TimeZone = 'UTC'")
        return [
            int(engine.sql(f"SELECT count(*) FROM {dialect(query.text)}").fetchall()[0][0]) for query in asked_queries
        ]


def dialect(text: str) -> str:
    """A query in DuckDB's words."""
    for ours, theirs in (
        ("TIMESTAMP_NTZ'", "TIMESTAMP'"),
        ("dayofweek(day) = 1", "dayofweek(day) = 0"),
        ("TIMESTAMP'", "TIMESTAMPTZ'"),
    ):
        text = text.replace(ours, theirs)
    return text.replace("local < TIMESTAMPTZ'", "local < TIMESTAMP'")


def load(spark: Any, rows: dict[str, pa.Table], folder: Path, ways: list[str]) -> None:
    """Makes an Iceberg table of each, and the copies that the other ways need, and analyzes them."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    for name, table in rows.items():
        files = folder / name
        files.mkdir()
        size = -(-table.num_rows // (FILES if name == "events" else 2))
        for number, start in enumerate(range(0, table.num_rows, size)):
            pq.write_table(table.slice(start, size), files / f"{number:02d}.parquet")
        frame = spark.read.parquet(str(files))
        frame.limit(0).writeTo(f"ice.db.{name}").using("iceberg").create()
        for file in sorted(files.iterdir()):
            spark.read.parquet(str(file)).coalesce(1).writeTo(f"ice.db.{name}").append()
        metastore.analyze(spark, f"ice.db.{name}", progress=False)
        if "nothing" in ways:
            frame.write.saveAsTable(f"nothing_{name}")
        if "spark" in ways:
            frame.write.saveAsTable(f"spark_{name}")
            analyze_by_spark(spark, f"spark_{name}", frame.columns)
        if "iceberg" in ways:
            spark.sql(f"CREATE TABLE ice.db.iceberg_{name} USING iceberg AS SELECT * FROM ice.db.{name}")
            spark.sql(f"CALL ice.system.compute_table_stats('db.iceberg_{name}')").collect()


def analyze_by_spark(spark: Any, table: str, columns: list[str]) -> None:
    """Spark's ANALYZE with histograms, but of columns that its own planning then fails on: NaN and TIMESTAMP_NTZ."""
    spark.conf.set("spark.sql.statistics.histogram.enabled", "true")
    named = ", ".join(column for column in columns if column not in ("price", "local"))
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS {named}")


@dataclass(frozen=True)
class Estimates:
    """The optimizer's estimate of a query's rows, and its time, cold and cached."""

    rows: float | None
    milliseconds: tuple[float, ...]


def estimates(spark: Any, way: str, asked_queries: list[Query]) -> list[Estimates]:
    """Estimate the rows of each query by the optimizer."""
    session = spark.newSession()
    prefix = {
        "metastore": "ice.db.",
        "off": "ice.db.",
        "nothing": "nothing_",
        "spark": "spark_",
        "iceberg": "ice.db.iceberg_",
    }[way]
    session.conf.set("spark.sql.cbo.enabled", "true")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.metastore.enabled", str(way == "metastore").lower())
    if way == "iceberg":
        session.conf.set("spark.sql.iceberg.report-column-stats", "true")
    texts = [
        reduce(lambda text, name: text.replace(f"{name} ", f"{prefix}{name} "), TABLES, query.text)
        for query in asked_queries
    ]
    for text in texts[:WARM_UP]:
        optimized(session, text, cold=False)
    cold, cached = ([optimized(session, text, cold=cold) for text in texts] for cold in (True, False))
    return [Estimates(rows, (once, again)) for (rows, once), (_, again) in zip(cold, cached, strict=True)]


def optimized(session: Any, text: str, *, cold: bool) -> tuple[float | None, float]:
    """The plan's rows, by its size where it has no number, None where Spark fails on it; and milliseconds."""
    if cold:
        find_shim_package(session).statistics.cache.StatisticsCache.clear()
    execution = session.sql(f"SELECT * FROM {text}")._jdf.queryExecution()  # noqa: SLF001
    begin = time.perf_counter()
    try:
        plan = execution.optimizedPlan()
        stats = plan.stats()
    except Py4JJavaError:  # Spark fails on distinct counts of TIMESTAMP_NTZ, and on NaN
        return None, math.nan
    took = (time.perf_counter() - begin) * 1000
    rows = stats.rowCount()
    width = 16 * plan.output().size()
    return float(str(rows.get())) if rows.isDefined() else float(str(stats.sizeInBytes())) / width, took


def q_error(estimate: float | None, true: int) -> float | None:
    """How many times an estimate is off, either way."""
    if estimate is None:
        return None
    return max(max(estimate, 1) / max(true, 1), max(true, 1) / max(estimate, 1))


def summary(kind: str, way: str, estimated: list[Estimates], true: list[int]) -> dict[str, Any]:
    """The errors of some queries; of those that Spark could plan."""
    errors = [q_error(estimate.rows, rows) for estimate, rows in zip(estimated, true, strict=True)]
    finite_errors = [error for error in errors if error is not None]
    cold, cached = (
        float(np.nanmedian(times)) for times in zip(*(estimate.milliseconds for estimate in estimated), strict=True)
    )
    return {
        "kind": kind,
        "way": way,
        "queries": len(errors),
        "failed": len(errors) - len(finite_errors),
        "median": float(np.median(finite_errors)),
        "p90": float(np.quantile(finite_errors, 0.9)),
        "largest": max(finite_errors),
        "mean": math.exp(float(np.mean(np.log(finite_errors)))),
        "cold ms": round(cold, 1),
        "ms": round(cached, 1),
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the million events")
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS)
    parser.add_argument(
        "--verbose", action="store_true", help="show every query of which we are more than 1.5 times off"
    )
    options = parser.parse_args()
    asked_queries, rows = list(queries()), tables(options.scale)
    true = count_rows(rows, asked_queries)
    with tempfile.TemporaryDirectory() as work, spark_session(Path(work)) as spark:
        (Path(work) / "files").mkdir()
        load(spark, rows, Path(work) / "files", options.ways)
        estimated = {way: estimates(spark, way, asked_queries) for way in options.ways}
    kinds = {
        kind: [position for position, query in enumerate(asked_queries) if query.kind == kind]
        for kind in [q.kind for q in asked_queries]
    }
    results = [
        summary(
            kind, way, [estimated[way][position] for position in positions], [true[position] for position in positions]
        )
        for kind, positions in kinds.items()
        for way in options.ways
    ]
    if options.verbose:
        for query, estimate, t in zip(asked_queries, estimated["metastore"], true, strict=True):
            error = q_error(estimate.rows, t)
            if error is None or error > 1.5:
                print(error, estimate.rows, t, query.text)
    report("cardinality", results, scale=options.scale)


if __name__ == "__main__":
    main()
