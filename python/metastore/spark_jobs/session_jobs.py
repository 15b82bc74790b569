"""Ships the package with jobs and runs them: executors need only Python with numpy and pyarrow."""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
import uuid
import zipfile
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from pyspark import SparkContext, inheritable_thread_target

import metastore
from metastore.adapters.spark_versions import installed_spark_line
from metastore.kernel.user_defined import StatisticPickle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from metastore.format.data_files import DataFile
    from metastore.statistics import Statistic


T = TypeVar("T")

_AGAIN_SECONDS = 0.5


def run_cancellable(spark: SparkSession, job: Callable[[], T]) -> T:
    """Run a job so that Ctrl-C cancels it, with the job group, tags and pool of this thread.

    PySpark cancels in the thread that receives the signal, over that thread's connection to the JVM. Cancelling fails
    if the thread waits for a job's answer on the same connection: so it waits for another thread instead. In a
    notebook, whose kernel takes the signal from PySpark, nobody cancels: so this does, also a job that starts late.
    """
    context = spark.sparkContext
    tag = f"metastore-job-{uuid.uuid4()}"
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


def pickle_statistics(statistics: Iterable[Statistic]) -> tuple[tuple[StatisticPickle, ...], dict[str, str]]:
    """Pack statistics for the job; functions of installed modules go by name, others by their code."""
    from pyspark import cloudpickle  # noqa: PLC0415 - not needed to import this module

    pickles = []
    failed = {}
    for statistic in statistics:
        try:
            content = cloudpickle.dumps(statistic)  # type: ignore[no-untyped-call]
        except Exception as error:  # noqa: BLE001 - pickling runs code of whatever the function holds
            failed[statistic.name] = f"it cannot be sent to workers: {error}"
        else:
            pickles.append(StatisticPickle(statistic.name, statistic.version, content, statistic.expression))
    return tuple(pickles), failed


_EPOCH = (1980, 1, 1, 0, 0, 0)


def ship_package(context: SparkContext) -> None:
    """Make this version of the package importable by the workers of a SparkContext.

    The archive has the whole package, not only the modules that a task imports: it comes before an installed package
    on a worker's path, and must not hide parts of it.
    """
    from pyspark import SparkFiles  # noqa: PLC0415 - not needed to import this module

    content = _archive(Path(metastore.__file__).parent)
    name = f"pyspark-metastore-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    root = Path(SparkFiles.getRootDirectory())
    # addPyFile leaves this mark in the Python that called it.
    if str(root / name) in sys.path:
        return
    if any(added.endswith(f"/{name}") for added in context.listFiles):
        _include(context, root / name)
        return
    # Executors fetch the archive from this very file as long as the application lives.
    archive = root / "pyspark-metastore" / name
    if not archive.exists():
        _write_at_once(archive, content)
    context.addPyFile(str(archive))


def _include(context: SparkContext, archive: Path) -> None:
    """Do the part of addPyFile that concerns this Python, for a file that Spark already has and would warn about."""
    context._python_includes.append(archive.name)  # type: ignore[union-attr] # noqa: SLF001 - addPyFile does no less
    sys.path.insert(1, str(archive))
    importlib.invalidate_caches()


def _write_at_once(path: Path, content: bytes) -> None:
    """Write a file so that other processes, which may write the same, never see a part of it."""
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f"{path.name}-{uuid.uuid4()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


@cache  # sources that change later are not those that run here
def _archive(package: Path) -> bytes:
    """Zip the package's Python sources and the contract; equal sources give equal bytes."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for source in sorted([*package.rglob("*.py"), *package.glob("contract/*.json")]):
            name = Path(package.name) / source.relative_to(package)
            entry = zipfile.ZipInfo(name.as_posix(), _EPOCH)
            archive.writestr(entry, source.read_bytes(), compress_type=zipfile.ZIP_DEFLATED)
    return sink.getvalue()


_OPEN_COST = 1 << 20
_SMALLEST = 32 << 20
_SHORT = 128 << 20
_LARGEST = 512 << 20
_MOST_FILES = 2048


def weigh_files(files: Sequence[DataFile]) -> int:
    """Estimate the work that files are, in bytes."""
    return sum(file.size + _OPEN_COST for file in files)


def pack_files(files: Sequence[DataFile], parallelism: int) -> Iterator[tuple[DataFile, ...]]:
    """Group files, in order, into tasks of a sensible size.

    Two tasks for each slot balance the load; short tasks are avoided, for their start takes longer than that gains.
    """
    total = weigh_files(files)
    target = min(max(total // (2 * parallelism), min(total // parallelism, _SHORT), _SMALLEST), _LARGEST)
    group: list[DataFile] = []
    weight = 0
    for file in files:
        is_full = weight + file.size // 2 > target or len(group) == _MOST_FILES
        if group and is_full:
            yield tuple(group)
            group = []
            weight = 0
        group.append(file)
        weight += file.size + _OPEN_COST
    if group:
        yield tuple(group)
