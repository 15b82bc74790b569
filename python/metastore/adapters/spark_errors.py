"""The first cause of a failed Spark job, in one line."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types
from pyspark.errors import PySparkException

SPARK_JOB_ERRORS = (PySparkException, Py4JError)
"""What PySpark raises when a job fails or is cancelled: RDDs and DataFrames differ."""


_LOST = re.compile(
    r"Python worker exited unexpectedly|ExecutorLostFailure|[Ee]xit (?:code|status):? ?137|exceeding \w+ memory limits"
    r"|reading the port number from \S+ stdout|Python daemon failed to launch worker"  # killed as it started
    r"|worker to connect back|java\.\S+Exception: (?:Broken pipe|Connection reset)"  # killed as it was spoken to
)
_MEMORY = (
    "Python or an executor was lost in the middle of a task, as where memory runs out: give executors more "
    "(spark.executor.memoryOverhead), or run fewer tasks at a time (spark.executor.cores, or the N of local[N])"
)
_OURS = re.compile(r"\[METASTORE_[A-Z_]+\] [^\n]+")
_JAVA = re.compile(r"^: [\w.$]+: ([^\n]+?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_PYTHON = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Refused|Exit)(?:: [^\n]+)?)$", re.MULTILINE)


def find_cause(failure: Exception) -> str:
    r"""Find what a person wants to know in the text of a failed job."""
    text = str(failure)
    ours = _OURS.search(text)
    if ours is not None:
        return ours.group().rstrip(".")
    if _LOST.search(text):
        return _MEMORY
    raised = _PYTHON.findall(text)
    thrown = _JAVA.search(text)
    if not raised and thrown is not None:
        return thrown[1].rstrip(".")
    return str(raised[-1] if raised else text.strip().split("\n", 1)[0]).rstrip(".")
