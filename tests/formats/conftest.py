"""One table of each format for a test; a behaviour that a format does not have raises its error."""

from __future__ import annotations

import itertools
import shutil

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import metastore
from formats.kinds import KINDS, each_format
from gaps import find_gap
from lakes import SPARK
from metastore import errors

_NUMBERS = itertools.count()


@pytest.fixture(scope="module", params=each_format())
def kind(request):
    return KINDS[request.param]


class FilteredTable:
    """A table, its format, and what tests say to both.

    Attributes:
        spark: The session.
        kind: The format.
        name: The table.
        place: Where it is, if it is one that has a place of its own.
    """

    def __init__(self, spark, kind, name, path):
        self.spark, self.kind, self.name, self.place = spark, kind, name, path

    def fill(self, start: int = 0, end: int = 400, step: int = 100) -> None:
        """Append files of `step` rows each."""
        for first in range(start, end, step):
            self.kind.append(self.spark, self.name, first, min(first + step, end))

    def analyze(self, **more):
        return metastore.analyze(self.spark, self.name, progress=False, **more)

    def summary(self, **more):
        """The summary of the columns that are not the format's own."""
        rows = metastore.summary(self.spark, self.name, **more)
        return {row["column_name"]: row for row in rows if not row["column_name"].startswith(self.kind.column_prefix)}

    @property
    def location(self) -> str:
        return self.kind.location(self.spark, self.name)

    def lacks(self, behaviour: str, ask=None) -> bool:
        """Whether the format lacks a behaviour; `ask` has to raise the error that is declared."""
        gap = find_gap(behaviour, self.kind.format, SPARK)
        if gap is None:
            return False
        if gap.raised is not None and ask is not None:
            with pytest.raises((errors.MetastoreError, PySparkException, Py4JError)) as raised:
                ask()
            assert gap.raised in str(raised.value)
        return True


@pytest.fixture
def empty(spark, kind, tmp_path):
    """A table that was never written."""
    name = kind.name.format(next(_NUMBERS))
    path = tmp_path / "table"
    kind.create(spark, name, path)
    yield FilteredTable(spark, kind, name, path)
    kind.drop(spark, name)


@pytest.fixture
def filled(empty):
    """Four data files of a hundred rows each, sorted by all columns but `v`."""
    empty.fill()
    return empty


@pytest.fixture
def parted(spark, kind, tmp_path):
    """A table partitioned by `day`, a data file of a hundred rows each."""
    name = kind.name.format(next(_NUMBERS))
    kind.create(spark, name, tmp_path / "table", by="day")
    table = FilteredTable(spark, kind, name, tmp_path / "table")
    table.fill()
    yield table
    kind.drop(spark, name)


@pytest.fixture
def again(spark, kind):
    """Drops a table with its files and creates it at the same place."""

    def make(table, columns):
        kind.drop(spark, table.name)
        shutil.rmtree(table.place, ignore_errors=True)
        kind.create(spark, table.name, table.place, columns)

    return make
