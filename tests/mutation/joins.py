"""Joins in a session: the rows that come out, and how many data files are read for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mutation import suites as of
from planner import plans, written

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

FILES, ROWS = 8, 25
QUERIES = (
    "SELECT k, v FROM {fact} f JOIN {dim} d ON f.k = d.id WHERE d.small = 105",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.nullable WHERE d.small < 8",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.nullable WHERE d.small = 7",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.id WHERE d.small = 105 AND f.v > 3",
    "SELECT a FROM (SELECT k AS a, v w FROM {fact} WHERE v >= 0) f JOIN {dim} d ON f.a = d.id WHERE d.small = 55",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.id AND f.v = d.small % 10 WHERE d.small IN (30, 190)",
    "SELECT k FROM {fact} f JOIN {dim} d ON f.k = d.id WHERE d.small >= 0",
    "SELECT p, k FROM {parts} f JOIN {dim} d ON f.p = d.id WHERE d.small = 3",
    "SELECT p, k FROM {parts} f JOIN {dim} d ON f.p = d.id AND f.k = d.nullable WHERE d.small = 3",
    "SELECT f.k FROM {fact} f JOIN {dim} d ON f.k = d.id JOIN {fact} g ON g.k = f.k WHERE d.small = 105",
)


def suites(spark: SparkSession, folder: Path) -> Iterator[of.Suite]:
    """Yields the joins, with plans that change while they run and with those that do not."""
    names = {name: f"parquet.`{folder}/{name}`" for name in ("fact", "parts", "dim")}
    for file in range(FILES):
        low = file * ROWS
        of_file = spark.range(low, low + ROWS, numPartitions=1).selectExpr(
            f"if(id = {low}, null, id) k", "cast(id % 10 as int) v", f"{file}L p", "repeat(sha2(string(id), 512), 4) s"
        )
        of_file.drop("p").write.mode("append").parquet(str(folder / "fact"))
        of_file.write.partitionBy("p").mode("append").parquet(str(folder / "parts"))
    dim = spark.range(0, 200, numPartitions=1)
    dim.selectExpr("id", "cast(id as int) small", "if(id = 7, null, id) nullable").write.parquet(str(folder / "dim"))
    for name in ("fact", "parts"):
        written.of_parquet(folder / name).write("1")
    queries = [query.format(**names) for query in QUERIES]
    rows = [plans.plain(spark, query) for query in queries]
    for adaptive in ("true", "false"):

        def ask() -> str:
            return "\n".join(_answer(spark, query) for query in queries)

        def wrong(i: int, answer: str) -> bool:
            return answer.startswith("error") or json.loads(answer)[0] != str(rows[i])

        conf = (("spark.sql.adaptive.enabled", adaptive),)
        yield of.Suite(f"joins, adaptive {adaptive}", ask, wrong, conf, queries, "JoinKeyFilter.scala")


def _answer(spark: SparkSession, query: str) -> str:
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - Spark is there by now

    try:
        frame = spark.sql(query)
        return json.dumps([str(plans.rows(frame)), plans.files_read(frame)])
    except Py4JJavaError as error:
        return f"error {type(error).__name__}"
