"""Data files that a failed job leaves out, and failures that end the work."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException, PySparkException

from metastore.adapters.spark_errors import leave_out_unreadable
from metastore.format.data_files import DataFile

NAMELESS = (
    "An error occurred while calling o1.collectToPython.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, "
    "most recent failure: Lost task 0.0 in stage 1.0 (TID 7) (host executor driver): java.lang.RuntimeException: no\n"
    "\tat org.apache.Reader.next(Reader.java:1)\n"
    "Caused by: java.lang.IllegalArgumentException: Buffer size too small.\n"
    "\tat org.apache.Codec.read(Codec.java:2)\n"
)
"""An error of a reader that does not say what it reads."""


def files(count: int) -> list[DataFile]:
    return [DataFile(path=f"file:/t/{number}.orc", size=1, rows=1, format="orc") for number in range(count)]


class Reader:
    """A job that fails if it reads one of the spoiled files.

    Attributes:
        jobs: The number of jobs.
    """

    def __init__(self, spoiled: dict[str, str]) -> None:
        self.spoiled = spoiled
        self.jobs = 0

    def read(self, part) -> tuple[str, ...]:
        self.jobs += 1
        assert part
        for file in part:
            if file.path in self.spoiled:
                raise PySparkException(self.spoiled[file.path])
        return tuple(file.path for file in part)


@pytest.mark.parametrize("spoiled", [(5,), (0, 15), (3, 4, 9), tuple(range(16))])
@pytest.mark.parametrize("error", [NAMELESS, "Error while reading file {}."])
def test_all_files_but_the_spoiled_ones_are_read_once(spoiled, error):
    every_file = files(16)
    bad_paths = [every_file[number].path for number in spoiled]
    reader = Reader({path: error.format(path) for path in bad_paths})
    results, refused = leave_out_unreadable(every_file, reader.read, python_errors={})
    read = sorted(path for result in results for path in result)
    assert sorted(refusal.subject for refusal in refused) == sorted(bad_paths)
    assert read == sorted({file.path for file in every_file} - set(bad_paths))
    # A search by halves: each spoiled file fails a job at each of five sizes at most.
    assert reader.jobs <= 1 + 2 * 5 * len(spoiled)


def test_the_cause_is_that_of_the_task():
    (file,) = files(1)
    _, (refusal,) = leave_out_unreadable([file], Reader({file.path: NAMELESS}).read, python_errors={})
    assert refusal.reason == "Spark cannot read it: Buffer size too small"
    without_message = NAMELESS.replace("IllegalArgumentException: Buffer size too small.", "NullPointerException")
    _, (refusal,) = leave_out_unreadable([file], Reader({file.path: without_message}).read, python_errors={})
    assert refusal.reason == "Spark cannot read it: NullPointerException"
    _, (refusal,) = leave_out_unreadable(
        [file], Reader({file.path: NAMELESS}).read, python_errors={file.path: "no magic"}
    )
    assert refusal.reason == "neither Spark nor Python can read it: no magic"


def test_without_files_there_is_no_job():
    assert leave_out_unreadable([], Reader({}).read, python_errors={}) == ([], ())


@pytest.mark.parametrize(
    "failure",
    [
        PySparkException("Lost task 0.0: ExecutorLostFailure (executor 1 exited)"),
        PySparkException("[SPARK_JOB_CANCELLED] Job 3 cancelled."),
        PySparkException("Caused by: [METASTORE_STORE_NOT_WRITABLE] /store cannot be written."),
        PySparkException("Caused by: java.io.IOException: No space left on device"),
        PySparkException("is bigger than spark.driver.maxResultSize (1024.0 MiB)"),
        PySparkException("Job 3 cancelled because SparkContext was shut down"),
        PySparkException("SparkContext has been shutdown"),
        PySparkException("Lost task 0.0 (TID 3): java.lang.OutOfMemoryError: Java heap space"),
        PySparkException("org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location"),
        PySparkException("Caused by: java.net.UnknownHostException: namenode"),
        PySparkException("Caused by: java.lang.InterruptedException"),
        PySparkException('Cannot run program "python9": error=2, No such file or directory'),
        PySparkException("Failed to open input stream for file: file:/t/metadata/snap-1.avro"),
        AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] The table cannot be found."),
        Py4JNetworkError("Answer from Java side is empty"),
    ],
    ids=lambda failure: str(failure)[:24],
)
def test_a_failure_that_no_file_causes_fails_the_work_at_once(failure):
    jobs = []

    def read(part) -> None:
        jobs.append(part)
        raise failure

    for count in (1, 4):
        with pytest.raises(type(failure)):
            leave_out_unreadable(files(count), read, python_errors={})
    assert len(jobs) == 2


def test_too_many_files_fail_the_work():
    many = files(200)
    reader = Reader({file.path: NAMELESS for file in many})
    with pytest.raises(PySparkException, match="Buffer size"):
        leave_out_unreadable(many, reader.read, python_errors={})
    assert reader.jobs < 200


def test_failures_that_depend_on_the_number_of_files_end():
    jobs = []

    def read(part) -> int:
        jobs.append(part)
        if len(part) > 1:
            raise PySparkException(NAMELESS)
        return 1

    with pytest.raises(PySparkException, match="Buffer size"):
        leave_out_unreadable(files(10_000), read, python_errors={})
    assert len(jobs) < 1000


def test_where_a_job_opens_other_files_only_named_ones_are_left_out():
    every_file = files(8)
    reader = Reader({every_file[3].path: NAMELESS})
    with pytest.raises(PySparkException, match="Buffer size"):
        leave_out_unreadable(every_file, reader.read, python_errors={}, opens_others=True)
    assert reader.jobs == 1
    named = Reader({every_file[3].path: f"Error while reading file {every_file[3].path}."})
    _, (refusal,) = leave_out_unreadable(every_file, named.read, python_errors={}, opens_others=True)
    assert refusal.subject == every_file[3].path
