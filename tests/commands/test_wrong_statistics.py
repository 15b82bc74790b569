"""Statistics that are wrong: the planner notices and reads the files, or the comparison notices."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import metastore
from commands.random_commands import SOURCE
from commands.targets import WITH_KEYS, WITHOUT_US, parameters
from commands.twins import FILES, compare, fill, read_by
from metastore.jvm_session import find_shim_package
from planner import written
from planner.plans import conf
from planner.written import Values

if TYPE_CHECKING:
    from commands.targets import Target
    from planner.written import Written

pytestmark = pytest.mark.spark

_names = itertools.count()
BY_CONDITION = "DELETE FROM {t} WHERE s = md5('78')"
BY_KEYS = f"MERGE INTO {{t}} t USING {SOURCE} s ON t.s = s.s WHEN MATCHED THEN UPDATE SET x = -1"
COMMANDS = [BY_CONDITION, BY_KEYS]


@pytest.fixture(params=parameters("copy-on-write"))
def target(spark, request):
    target = fill(spark, request.param, f"wrong_{next(_names)}")
    spark.sql("SELECT md5('78') s").createOrReplaceTempView(SOURCE)
    yield target
    target.drop()


def plant(target: Target, statistics: Written) -> None:
    """Makes these the table's statistics."""
    statistics.write()
    find_shim_package(target.spark).statistics.cache.StatisticsCache.clear()


def with_lists(target: Target, list_length: int | None) -> Written:
    """The true statistics, with so many values of each file's list of `s`, which says that it is complete."""
    statistics = written.read_store(str(target.files.location))
    by_name = {path.rsplit("/", 1)[-1]: path for path in target.files.state().files}
    for file in statistics.files:
        texts = pq.ParquetFile(by_name[file.path.rsplit("/", 1)[-1]]).read(["s"])["s"].drop_null()
        counts = Counter(written.stored(text) for text in texts)
        (column,) = (column for column in file.columns if column.name == "s")
        file.values[column] = Values("complete", list(counts.items())[:list_length])
    return statistics


def assert_same(target: Target, command: str, read: int) -> None:
    """A command reads so many files to find its rows, and changes what it changes without us."""
    before = target.version()
    without = target.run(lambda name: target.spark.sql(command.format(t=name)), WITHOUT_US)
    assert without.touched
    target.restore(before)
    assert read_by(target, command, "all") == read
    target.restore(before)
    assert target.run(lambda name: target.spark.sql(command.format(t=name)), WITH_KEYS) == without
    target.restore(before)


def test_a_list_that_is_cut_leaves_no_file_out(target):
    plant(target, with_lists(target, None))
    for command in COMMANDS:
        assert_same(target, command, 1)
    plant(target, with_lists(target, 1))
    for command in COMMANDS:
        assert_same(target, command, FILES)


def test_statistics_under_the_name_of_another_file_leave_no_file_out(target):
    right = with_lists(target, None)
    sizes = [file.size for file in right.files]
    assert all(sizes[i] != sizes[i - 1] for i in range(len(sizes))), "files of a size cannot be told apart"
    swapped = [replace(right.files[i - 1], path=file.path) for i, file in enumerate(right.files)]
    plant(target, replace(right, files=swapped))
    for command in COMMANDS:
        assert_same(target, command, FILES)


def test_an_expression_of_another_session_leaves_no_file_out(target):
    command = "UPDATE {t} SET x = 7 WHERE id * code = 78 * 78"
    with conf(target.spark, spark__sql__ansi__enabled="true"):
        metastore.analyze(target.spark, target.name, progress=False, expressions=["id * code"])
        assert_same(target, command, 1)
    with conf(target.spark, spark__sql__ansi__enabled="false"):
        assert_same(target, command, FILES)


def test_the_comparison_notices_a_command_that_misses_rows(target):
    """Bounds that are wrong and look right are noticed by nobody else."""
    plant(target, written.read_store(str(target.files.location)).change("id", written.shifted))
    assert compare(target, commands=6, seed=1).differences
