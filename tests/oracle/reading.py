"""The files that an executed plan reads, found in Spark's own partitions, without the Metastore."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from planner import plans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame


def files(query: DataFrame) -> list[frozenset[str]]:
    """Returns for every scan of a query the data files that its tasks open, as the table names them."""
    return [frozenset(_of_scan(scan)) for scan in plans.scans(query)]


def _of_scan(scan: Any) -> Iterator[str]:
    if scan.getClass().getSimpleName() == "BatchScanExec":
        for partition in _each(scan.inputPartitions()):
            tasks = partition.taskGroup().tasks().iterator()
            while tasks.hasNext():
                yield str(tasks.next().file().location())
    else:
        for partition in _each(scan.inputRDD().filePartitions()):
            yield from (str(file.urlEncodedPath()) for file in partition.files())


def _each(seq: Any) -> Iterator[Any]:
    return (seq.apply(i) for i in range(seq.size()))


@contextmanager
def hidden(paths: Iterable[str]) -> Iterator[None]:
    """Takes files away for a while: a query that opens one of them fails."""
    moved = [(path, path.with_name(f"hidden.{path.name}")) for path in map(local, paths)]
    for here, there in moved:
        here.rename(there)
    try:
        yield
    finally:
        for here, there in moved:
            there.rename(here)


def local(path: str) -> Path:
    """Returns the place of a file that a plan or a table names."""
    return Path(unquote(path.removeprefix("file:"))) if path.startswith("file:") else Path(path)
