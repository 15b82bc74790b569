"""A cancelled ANALYZE ends its tasks, commits nothing, and what it finished is used by the next one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import metastore
from pipeline.blocked import blocked, is_read, wait_until
from pipeline.checks import check_table, location

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FILES = 70
GROUP = "analyze-cancelled"


@pytest.fixture
def filled(spark, table):
    """A table of two tasks' files, in the order of their paths."""
    spark.sql(f"CREATE TABLE {table} (id BIGINT, name STRING) USING iceberg")
    spark.sql(f"INSERT INTO {table} SELECT /*+ REPARTITION({FILES}) */ id, concat('n', id) FROM range({FILES * 10})")
    return table


def by_python(spark, table):
    metastore.analyze(spark, table, progress=False)


def by_sql(spark, table):
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()


@pytest.mark.parametrize("analyze", [by_python, by_sql])
def test_a_cancelled_group_of_jobs(spark, filled, analyze):
    paths = sorted(row[0] for row in spark.sql(f"SELECT file_path FROM {filled}.files").collect())
    store = Path(location(spark, filled)) / "_metastore"

    def work():
        spark.sparkContext.setJobGroup(GROUP, "to be cancelled")
        analyze(spark, filled)

    # The pipe goes first: a failure must not wait for who reads it.
    with ThreadPoolExecutor(1) as threads, blocked(paths[-1]):
        running = threads.submit(work)
        wait_until(lambda: len(list(store.glob("objects/files-*.parquet"))) == 1, "one task finishes")
        wait_until(lambda: spark.sparkContext.statusTracker().getJobIdsForGroup(GROUP), "the job runs")
        spark.sparkContext.cancelJobGroup(GROUP)
        raised = running.exception(60)
        assert not is_read(paths[-1])
    assert str(raised).startswith("[METASTORE_ANALYZE_FAILED]"), raised
    assert "cancel" in str(raised).lower()
    assert "\n" not in str(raised).split("\n\nJVM stacktrace")[0].strip()
    check_left(spark, filled, store)


def check_left(spark, table, store):
    assert not list(store.glob("log/*.json"))
    report = metastore.analyze(spark, table, progress=False)
    assert report.files == report.files_total == FILES
    assert 0 < report.files_read <= FILES / 2
    check_table(spark, table)
