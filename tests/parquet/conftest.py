"""Directories of Parquet files that were written a while ago."""

from __future__ import annotations

import os
import time

import pytest

ROW = "id, CAST(id % 7 AS INT) AS v, concat('s', lpad(id, 5, '0')) AS s, named_struct('a', id, 'b.c', id / 4) AS st"
_AGO = 3600


@pytest.fixture
def folder(spark, tmp_path):
    """Four data files of a hundred rows each, sorted by all columns but `v`."""
    path = tmp_path / "plain"
    for start in range(0, 400, 100):
        append(spark, path, start, start + 100)
    return path


@pytest.fixture
def table(spark, folder):
    """The same files as a table of the session's catalog."""
    name = f"parquet_{folder.parent.name.replace('-', '_')}"
    spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder.as_uri()}'")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def append(spark, path, start: int, end: int, row: str = ROW, by: tuple[str, ...] = ()) -> None:
    """Write one data file a partition; those of equally long rows have one size."""
    rows = spark.sql(f"SELECT {row} FROM range({start}, {end}, 1, 1)")
    rows.write.mode("append").option("compression", "uncompressed").partitionBy(*by).parquet(str(path))
    settle(path)


def settle(path, seconds: int = _AGO) -> None:
    """Date all data files back that were written just now: ANALYZE need not wait for them."""
    for file in path.rglob("*.parquet"):
        if time.time() - file.stat().st_mtime < _AGO - 60:
            os.utime(file, (time.time() - seconds,) * 2)
