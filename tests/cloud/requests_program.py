"""A Spark of its own on a table on S3: its last line has, as JSON, the requests of each step."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import metastore
from cloud.counting import SLOW_SECONDS, CountingProxy, Request, count_rounds
from cloud.program import label, start
from metastore import jvm_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

FILES = 8
ROWS = 8_000
FUNCTIONS = {
    "summary": "summary('{table}')",
    "frequencies": "frequencies('{table}', 'mode')",
    "histogram": "histogram('{table}', 'id')",
    "quantiles": "quantiles('{table}', 'id')",
    "layout": "layout('{table}')",
}
ROUND_SECONDS = 0.25
"""Seconds of a request: more than a busy machine needs to send those that belong to the same round trip."""
TIMEOUT = 1.0
"""Seconds that planning may take."""
SHORT_TIMEOUT = "200ms"
"""The same for commands, which wait fifteen times as long."""
FAULTS = ("errors", "slow", "silent")


def create(spark: SparkSession, table: str) -> None:
    """Create a table of 8 files of 16 columns; no format's own bounds tell in which file an id is."""
    columns = ["id", "id % 7 AS n1", "id % 100 AS n2", "concat('mode', id % 5) AS mode", "concat('text ', id) AS text"]
    ids = f"id % {ROWS // FILES} * {FILES} + CAST(id / {ROWS // FILES} AS INT) AS id"
    columns += ["CAST(id % 50 AS DECIMAL(9, 2)) AS price", "date_add(DATE'2020-01-01', CAST(id / 100 AS INT)) AS day"]
    columns += [f"hash(id, {number}) AS h{number}" for number in range(9)]
    rows = spark.range(0, ROWS, 1, FILES).selectExpr(ids).selectExpr(*columns)
    if "`" not in table:
        rows.writeTo(table).create()
        return
    table_format, path = table.rstrip("`").split(".`")
    rows.write.format(table_format).save(path)


class Driver:
    """A driver that runs what people do, and counts the requests to the store."""

    def __init__(self, spark: SparkSession, table: str, proxy: CountingProxy) -> None:
        self.spark = spark
        self.table = table
        self.proxy = proxy
        self.cache = jvm_session.find_shim_package(spark).statistics.cache.StatisticsCache

    def forget(self) -> None:
        """Make the driver one that has read no statistics yet."""
        self.cache.clear()

    def plan(self, condition: str) -> str:
        """Plan a query, and return the scan's remark."""
        return label(self.spark.sql(f"SELECT * FROM {self.table} WHERE {condition}"))

    def ask(self, function: str) -> None:
        """Ask a table function."""
        self.spark.sql(f"SELECT * FROM metastore.{FUNCTIONS[function].format(table=self.table)}").collect()

    def count_requests(self, functions: Iterable[str]) -> dict[str, list[Request]]:
        """Go through all steps, and return the requests of each."""
        record = self.proxy.record
        requests = {"analyze": record(partial(metastore.analyze, self.spark, self.table, progress=False))}
        requests["analyze again"] = record(partial(metastore.analyze, self.spark, self.table, progress=False))
        self.plan("id = 4000")
        self.proxy.delay = ROUND_SECONDS
        self.spark.conf.set("spark.metastore.refresh", "1min")
        for name, condition in (("by bounds", "id > 9000"), ("by values", "id = 5001")):
            self.forget()
            requests[f"plan {name}"] = record(partial(self.plan, condition))
            requests[f"plan {name} at once"] = record(partial(self.plan, condition))
        self.spark.conf.unset("spark.metastore.refresh")
        time.sleep(1.0)
        requests["plan later"] = record(partial(self.plan, "id = 6001"))
        for function in functions:
            self.forget()
            self.spark.conf.set("spark.metastore.refresh", "1min")  # its round trips take longer than the default
            requests[function] = record(partial(self.ask, function))
            self.spark.conf.unset("spark.metastore.refresh")
            time.sleep(1.0)
            requests[f"{function} later"] = record(partial(self.ask, function))
        self.proxy.delay = 0.0
        return requests

    def query(self) -> dict[str, Any]:
        """Run a query, and return its rows, the remark of its plan and its seconds."""
        begin = time.monotonic()
        remark = self.plan("id = 5001")
        seconds = time.monotonic() - begin
        rows = self.spark.sql(f"SELECT text FROM {self.table} WHERE id = 5001").collect()
        return {"rows": [row.text for row in rows], "label": remark, "seconds": seconds}

    def query_until_pruned(self) -> int:
        """Repeat a query until the store's answer serves it; return how often it was run, 0 if it never did."""
        for number in range(1, 40):
            if self.plan("id = 5001").startswith("8 -> 1 files"):
                return number
            time.sleep(0.5)
        return 0

    def try_fault(self, fault: str) -> dict[str, Any]:
        """Query while the store misbehaves: as a new driver, and as one that has read it before."""
        self.forget()
        self.proxy.begin_fault(fault)
        first = self.query()
        if fault == "silent":
            second = self.query()
            self.proxy.end_fault()
            return {"queries": [first, second], "served": self.query_until_pruned()}
        served = self.query_until_pruned()
        queries = [first, self.query()]
        time.sleep(SLOW_SECONDS)  # until the requests that were given up have ended
        self.proxy.end_fault()
        return {"queries": queries, "served": served}

    def query_from_memory(self) -> dict[str, Any]:
        """Query a store that answered before and now is silent."""
        self.query_until_pruned()
        time.sleep(1.0)
        self.proxy.begin_fault("silent")
        return {"queries": [self.query(), self.query()], "served": self.query_until_pruned()}

    def run_command(self, fault: str) -> dict[str, Any]:
        """Delete a row while the store misbehaves, in a driver that has not read it yet."""
        self.forget()
        key = FAULTS.index(fault)
        self.proxy.begin_fault(fault)
        begin = time.monotonic()
        self.spark.sql(f"DELETE FROM {self.table} WHERE id = {key} AND text = 'text {key}'")
        seconds = time.monotonic() - begin
        self.proxy.end_fault()
        counts = self.spark.sql(f"SELECT count(*), count_if(id = {key}) FROM {self.table}").first()
        return {"rows": counts[0], "with the key": counts[1], "seconds": seconds}


def describe(steps: dict[str, list[Request]]) -> dict[str, Any]:
    """Describe the requests of each step, and count their round trips."""
    return {
        step: {"requests": [asdict(request) for request in requests], "rounds": count_rounds(requests)}
        for step, requests in steps.items()
    }


def main() -> None:
    """Work on a table, and print the results."""
    settings, tables = map(json.loads, sys.argv[2:])
    with CountingProxy(sys.argv[1]) as proxy:
        addresses = ("spark.hadoop.fs.s3a.endpoint", "spark.sql.catalog.own.s3.endpoint")
        spark = start({**settings, **dict.fromkeys(addresses, proxy.address)})
        requests = {}
        for name, table in tables.items():
            create(spark, table)
            driver = Driver(spark, table, proxy)
            requests[name] = driver.count_requests(FUNCTIONS if name == "iceberg" else ["summary"])
        driver = Driver(spark, tables["iceberg"], proxy)
        spark.conf.set("spark.metastore.planning.timeout", f"{TIMEOUT}s".replace(".0", ""))
        faults = {fault: driver.try_fault(fault) for fault in FAULTS}
        faults["memory"] = driver.query_from_memory()
        spark.conf.set("spark.metastore.planning.timeout", SHORT_TIMEOUT)
        changed = {name: Driver(spark, tables[name], proxy) for name in ("iceberg", "delta")}
        commands = {
            name: {fault: changed_table.run_command(fault) for fault in FAULTS}
            for name, changed_table in changed.items()
        }
        begin = time.monotonic()
        spark.stop()
        results = {
            "requests": {name: describe(steps) for name, steps in requests.items()},
            "faults": faults,
            "commands": commands,
            "stop": time.monotonic() - begin,
            "exit": time.time(),
        }
        print(json.dumps(results), flush=True)


if __name__ == "__main__":
    main()
