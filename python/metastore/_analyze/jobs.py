"""Spark jobs that can be cancelled, and what is said of those that fail."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar, cast

from pyspark import inheritable_thread_target

from metastore._tables.lines import installed_spark_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

T = TypeVar("T")

_AGAIN_SECONDS = 0.5


def run_cancellable(spark: SparkSession, job: Callable[[], T]) -> T:
    """Run a job so that Ctrl-C cancels it, with the job group, tags and pool of this thread.

    PySpark cancels in the thread that the signal meets, over that thread's connection to the JVM. Where the thread
    waits for a job's answer on the same connection, cancelling fails: so it waits for another thread instead. In a
    notebook, whose kernel takes the signal from PySpark, nobody cancels: so this does, also a job that starts late.
    """
    context, tag = spark.sparkContext, f"metastore-job-{uuid.uuid4()}"
    with ThreadPoolExecutor(1, "metastore-job") as threads:
        context.addJobTag(tag)
        answer = threads.submit(_inheriting(spark, job))
        try:
            return answer.result()
        except KeyboardInterrupt:
            while not answer.done():
                context.cancelJobsWithTag(tag)
                wait([answer], _AGAIN_SECONDS)
            raise
        finally:
            context.removeJobTag(tag)


def _inheriting(spark: SparkSession, job: Callable[[], T]) -> Callable[[], T]:
    if installed_spark_line() >= (4, 0):
        return cast("Callable[[], T]", inheritable_thread_target(spark)(job))
    return cast("Callable[[], T]", inheritable_thread_target(job))  # Spark 3.5
