"""Plans of Spark and the files that they really read, taken from executed plans."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from metastore.demo.executed_plan import count_files_read as files_read
from metastore.demo.executed_plan import find_scan_nodes as scans
from metastore.demo.executed_plan import read_scan_metrics as metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "check",
    "check_first",
    "conf",
    "files_read",
    "labels",
    "metrics",
    "physical",
    "plain",
    "query_number",
    "rows",
    "scans",
]


def physical(df) -> str:
    """The text of EXPLAIN before a query runs."""
    return df._jdf.queryExecution().simpleString()


def labels(df) -> list[str]:
    """The label of each scan in EXPLAIN."""
    return re.findall(r"\[Metastore: (.*?)\]", physical(df))


def rows(df) -> list[Any]:
    """The rows of a query in an order that does not depend on the files' order."""
    return sorted(df.collect(), key=repr)


@contextmanager
def conf(spark, **settings: str) -> Iterator[None]:
    """Settings of the session for a while; `__` stands for a dot."""
    keys = {key.replace("__", "."): str(value) for key, value in settings.items()}
    before = {key: spark.conf.get(key, None) for key in keys}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def plain(spark, query: str) -> list[Any]:
    """The rows of a query without us."""
    with conf(spark, spark__metastore__enabled=False):
        return rows(spark.sql(query))


def check(spark, query: str, files: list[int] | None = None) -> Any:
    """Runs a query with and without us: equal rows, and that many files read by each scan."""
    df = spark.sql(query)
    assert rows(df) == plain(spark, query)
    if files is not None:
        assert files_read(df) == files, physical(df)
    return df


def check_first(spark, query: str, files: int | None) -> None:
    """As `check`, with the files that the first scan reads; None: any number."""
    df = check(spark, query)
    assert files is None or files_read(df)[0] == files, (query, physical(df))


def query_number(spark, query: str) -> int:
    """The one number that a query answers without us."""
    with conf(spark, spark__metastore__enabled=False):
        return int(spark.sql(query).first()[0])
