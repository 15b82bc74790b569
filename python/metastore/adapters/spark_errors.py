"""Turns failures of Spark's jobs into errors of this package, with the cause in one line."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from socket import gethostname
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped] # it has no types
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException

from metastore.adapters.table_facts import Refusal
from metastore.errors import AnalyzeFailed
from metastore.format.data_files import leave_out_files
from metastore.visible_text import first_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from metastore.format.data_files import DataFile


T = TypeVar("T")

SPARK_JOB_ERRORS = (PySparkException, Py4JError)
"""Errors that PySpark raises when a job fails or is cancelled: RDDs and DataFrames differ."""


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
_UNREADABLE = re.compile(
    r"(?:(?:reading (?:ORC )?file:?|footer for file:?) (?:FileStatus\{path=)?|Path does not exist: "  # Spark and ORC
    r"|Failed to (?:fetch|open|open Parquet|open input stream for|get ORC rows for) file: )([^\n]+)"  # Iceberg
)
_METADATA = re.compile(r"/(?:metadata|_delta_log|\.hoodie)/")
"""A folder of a table without data files."""
_END_OF_MESSAGE = re.compile(r"[.;]*\s*(?:SQLSTATE: \w+)?$")
_ROOT = re.compile(r"^Caused by: [\w.$]+: ([^\n]+)$", re.MULTILINE)
_ROOT_OF_TASK = re.compile(r"^(?:Caused by: |.*\(TID \d+\) \([^)\n]+\): )[\w.$]*?(\w+)(?:: ([^\n]+))?$", re.MULTILINE)
"""An error in a task: its class without the package, and its message."""
_WRONG_PYTHON = re.compile(
    r'Cannot run program "[^"\n]+"[^\n]*?No such file or directory|No module named \S+'
    r"|Python in worker(?: \S+)? has different version[^\n]+"
)
_CANCELLED = r"SPARK_JOB_CANCELLED|[Jj]ob \d+ cancelled"
_NO_SPACE = r"No space left on device|spark\.driver\.maxResultSize"
_STOPPED = r"SparkContext (?:was|has been) shut ?down|stopped SparkContext|InterruptedException|Stage cancelled"
_NO_MEMORY = r"OutOfMemory|UNABLE_TO_ACQUIRE_MEMORY|MemoryError|Java heap space|Kryo serialization failed"
_NO_CLUSTER = r"FetchFailed|output location for shuffle|excludeOnFailure|[Tt]imed out|execute broadcast"
_NO_STORE = r"UnknownHost|Expired|ConnectException|AccessDenied|Permission denied"
_NOT_CAUSED_BY_FILE = re.compile(
    f"{_LOST.pattern}|{_WRONG_PYTHON.pattern}|{_OURS.pattern}"
    f"|{_CANCELLED}|{_NO_SPACE}|{_STOPPED}|{_NO_MEMORY}|{_NO_CLUSTER}|{_NO_STORE}"
)
_EXECUTOR_HOST = re.compile(r"\(TID \d+\) \((\S+) executor")
_MOST_UNREADABLE = 64
_MOST_FAILURES = 256
"""The number of jobs that may fail in one search for unreadable files."""
_PYTHON = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Refused|Exit)(?:: [^\n]+)?)$", re.MULTILINE)


def find_cause(failure: Exception) -> str:
    """Find the cause of a failed job in the text of its error."""
    text = str(failure)
    ours = _OURS.search(text)
    if ours is not None:
        return ours.group().rstrip(".")
    wrong_python = _WRONG_PYTHON.search(text)
    if wrong_python is not None:
        return wrong_python.group()
    if _LOST.search(text):
        return _MEMORY
    unreadable = _UNREADABLE.search(text)
    if unreadable is not None:
        return _describe_unreadable(text, unreadable)
    return first_line(_find_error(text) or failure)


def _find_error(text: str) -> str | None:
    """Find the last error of Python, else the error of Java, or None."""
    python_errors: list[str] = _PYTHON.findall(text)
    if python_errors:
        return python_errors[-1]
    java_error = _JAVA.search(text)
    if java_error is not None:
        return java_error[1]
    return None


def _describe_unreadable(text: str, match: re.Match[str]) -> str:
    """Describe which file Spark cannot read, and why."""
    description = f"Spark cannot read {_read_path(match)}"
    causes = [cause for cause in _ROOT.findall(text) if not _UNREADABLE.search(cause)]
    if causes:
        description += f": {causes[-1].strip()}"
    return description.rstrip(".")


def _read_path(match: re.Match[str]) -> str:
    """Return the path of an error's text, without the end of the sentence."""
    return _END_OF_MESSAGE.sub("", match[1].strip())


@contextmanager
def raise_as_ours(table: str) -> Iterator[None]:
    """Raise errors of Spark as `AnalyzeFailed`."""
    try:
        yield
    except SPARK_JOB_ERRORS as failure:
        raise AnalyzeFailed(table, find_cause(failure), _find_hint(str(failure))) from failure


def _find_hint(text: str) -> str:
    """Describe which Pythons a job ran, if this is why it failed."""
    if not _WRONG_PYTHON.search(text):
        return ""
    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public name for it
    executors_python = "another Python" if context is None else context.pythonExec
    host = _EXECUTOR_HOST.search(text)
    place = "executors run" if host is None else f"the executor on {host[1]} runs"
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return (
        f"The driver on {gethostname()} runs {sys.executable}, {place} {executors_python}. Set spark.pyspark.python to "
        f"a Python {version} of the executors' hosts with numpy and pyarrow."
    )


def leave_out_unreadable(
    files: Sequence[DataFile],
    read: Callable[[Sequence[DataFile]], T],
    *,
    python_errors: Mapping[str, str],
    opens_others: bool = False,
) -> tuple[list[T], tuple[Refusal, ...]]:
    """Run a job over data files; leave out the files that Spark cannot read.

    A job that fails is repeated without the file that its error names. If the error names no file, each half of the
    files is read by a job of its own, until a file is alone.

    Args:
        files: The data files.
        read: The job; it gets at least one file.
        python_errors: By path, why Python cannot read a file.
        opens_others: Whether a job may also open files that it was not given. Then it may fail because of these, and
            only files that an error names are left out.

    Returns:
        The results of the jobs that succeeded, and the files that none of them read.
    """
    search = _FileSearch(python_errors, opens_others=opens_others)
    results: list[T] = []
    parts = [tuple(files)] if files else []
    while parts:
        part = parts.pop()
        try:
            results.append(read(part))
        except SPARK_JOB_ERRORS as failure:
            next_parts = search.divide(part, failure)
            if next_parts is None:
                raise
            parts += next_parts
    return results, tuple(search.refused)


class _FileSearch:
    """A search for the unreadable files of jobs that fail.

    Attributes:
        refused: The unreadable files.
        failures: The number of jobs that failed.
    """

    def __init__(self, python_errors: Mapping[str, str], *, opens_others: bool) -> None:
        self.refused: list[Refusal] = []
        self.failures = 0
        self._python_errors = python_errors
        self._opens_others = opens_others

    def divide(self, files: tuple[DataFile, ...], failure: Exception) -> list[tuple[DataFile, ...]] | None:
        """Return the files of the next jobs after the job of some files failed; None if the failure is to be raised."""
        self.failures += 1
        may_divide = not self._opens_others and _may_be_caused_by_file(failure)
        unreadable = _find_named(failure, files, self._python_errors)
        if not unreadable and may_divide and len(files) == 1:
            unreadable = [Refusal(files[0].path, _explain(files[0], failure, self._python_errors))]
        self.refused += unreadable
        if self._is_exhausted() or not (unreadable or may_divide):
            return None
        return _divide(files, unreadable)

    def _is_exhausted(self) -> bool:
        return len(self.refused) > _MOST_UNREADABLE or self.failures > _MOST_FAILURES


def _find_named(failure: Exception, files: Sequence[DataFile], python_errors: Mapping[str, str]) -> list[Refusal]:
    """Refuse the file that an error names."""
    match = _UNREADABLE.search(str(failure))
    if match is not None:
        path = unquote(_read_path(match))
        candidates = sorted((file for file in files if _path_of(file) in path), key=lambda file: len(_path_of(file)))
        if candidates:
            return [Refusal(candidates[-1].path, _explain(candidates[-1], failure, python_errors))]
    return []


def _may_be_caused_by_file(failure: Exception) -> bool:
    """Return whether a job may have failed because of a data file that the error does not name."""
    if isinstance(failure, (AnalysisException, Py4JNetworkError)):  # no file was read, or the JVM has ended
        return False
    text = str(failure)
    named = _UNREADABLE.search(text)
    if named is not None and _METADATA.search(named[1]):
        return False
    return _NOT_CAUSED_BY_FILE.search(text) is None


def _divide(files: tuple[DataFile, ...], unreadable: Sequence[Refusal]) -> list[tuple[DataFile, ...]]:
    """Return the files of the next jobs: all but the unreadable ones, or two halves if none is unreadable."""
    if unreadable:
        remaining = leave_out_files(files, {refusal.subject for refusal in unreadable})
        return [remaining] if remaining else []
    middle = len(files) // 2
    return [files[middle:], files[:middle]]


def _explain(file: DataFile, failure: Exception, python_errors: Mapping[str, str]) -> str:
    """Describe why a file is unreadable: Python says it more plainly than Spark."""
    if file.path in python_errors:
        return f"neither Spark nor Python can read it: {python_errors[file.path]}"
    text = str(failure)
    errors = _ROOT_OF_TASK.findall(text)
    if _UNREADABLE.search(text) or _PYTHON.search(text) or not errors:
        return find_cause(failure)
    error, message = errors[-1]
    return f"Spark cannot read it: {first_line(message or error)}".rstrip(".")


def _path_of(file: DataFile) -> str:
    """Return a data file's path without the scheme, which Spark writes in several ways."""
    _, _, path = file.location.partition(":")
    return unquote(path.lstrip("/") or file.location.lstrip("/"))
