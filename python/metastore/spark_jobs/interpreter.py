"""Chooses the Python that runs the tasks of our jobs."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext


_LOCK = Lock()
_originals: dict[SparkContext, tuple[str, int]] = {}
"""By context whose interpreter is replaced: the original name, and the number of callers that use the replacement."""


@contextmanager
def use_driver_python(context: SparkContext) -> Iterator[None]:
    """Have workers on this host run the driver's Python, unless the environment names theirs.

    PySpark would take any `python3` of the PATH, which may lack numpy and pyarrow. SQL's ANALYZE does the same. The
    Python of the user's own jobs does not change.
    """
    if os.environ.get("PYSPARK_PYTHON") or not str(context.master).startswith("local"):
        yield
        return
    _replace(context)
    try:
        yield
    finally:
        _restore(context)


def _replace(context: SparkContext) -> None:
    with _LOCK:
        original, users = _originals.get(context, (context.pythonExec, 0))
        _originals[context] = original, users + 1
        context.pythonExec = context.getConf().get("spark.pyspark.python") or sys.executable


def _restore(context: SparkContext) -> None:
    with _LOCK:
        original, users = _originals.pop(context)
        if users > 1:
            _originals[context] = original, users - 1
        else:
            context.pythonExec = original
