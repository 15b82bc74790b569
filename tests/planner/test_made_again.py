"""Tables that are dropped and made again under their name and at their place: nothing of the former one is used."""

from __future__ import annotations

import os
import shutil

import pytest

import metastore
from formats.kinds import DELTA, ICEBERG, PARQUET, ROW
from parquet.conftest import append
from planner.plans import check, conf, labels

pytestmark = pytest.mark.spark

AGAIN = ROW.replace("id % 7", "id % 3")
LATER = 10_000
"""The first `id` of the second table."""


def fill(spark, kind, name: str, first: int, row: str = ROW) -> None:
    """Four files of a hundred rows each."""
    for start in range(first, first + 400, 100):
        kind.append(spark, name, start, start + 100, row=row)


def ids(session, name: str, value: int, files: list[int] | None = None) -> list[int]:
    return [row.id for row in check(session, f"SELECT id FROM {name} WHERE id = {value}", files).collect()]


def summary(session, name: str) -> tuple[str, str]:
    (row,) = (row for row in metastore.summary(session, name) if row["column_name"] == "id")
    return row["min"], row["max"]


@pytest.mark.slow
@pytest.mark.parametrize("leaves_statistics", [False, True], ids=["nothing is left", "statistics are left"])
@pytest.mark.parametrize("purge", [pytest.param("", marks=pytest.mark.campaign), " PURGE"])
@pytest.mark.parametrize("kind", [ICEBERG, DELTA, PARQUET], ids=lambda kind: kind.format)
def test_a_table_that_is_dropped_and_made_again(spark, tmp_path, kind, purge, leaves_statistics):
    name, path, other = kind.name.format("made_again"), tmp_path / "t", spark.newSession()
    kind.create(spark, name, path)
    fill(spark, kind, name, 0)
    metastore.analyze(spark, name, progress=False)
    for session in (spark, other):
        assert ids(session, name, 5, [1]) == [5]
        assert summary(session, name) == ("0", "399")
    statistics = kind.location(spark, name).removeprefix("file:") + "/_metastore"
    shutil.copytree(statistics, tmp_path / "former")
    spark.sql(f"DROP TABLE {name}{purge}")
    shutil.rmtree(path, ignore_errors=True)
    kind.create(spark, name, path)
    if leaves_statistics:
        shutil.copytree(tmp_path / "former", statistics, dirs_exist_ok=True)
    try:
        fill(spark, kind, name, LATER, AGAIN)
        other.sql(f"REFRESH TABLE {name}")  # what the format itself remembers of the former one
        for session in (spark, other):
            assert ids(session, name, LATER + 5, [4]) == [LATER + 5]
            assert ids(session, name, 5) == []
            assert check(session, f"SELECT * FROM {name} WHERE v = 6").count() == 0
            assert check(session, f"SELECT * FROM {name} WHERE id >= {LATER}").count() == 400
        metastore.analyze(spark, name, progress=False)
        for session in (spark, other):
            frame = check(session, f"SELECT * FROM {name} WHERE id = {LATER + 5}", [1])
            assert labels(frame) == ["4 -> 1 files"]
            assert ids(session, name, 5) == []
            assert summary(session, name) == (str(LATER), str(LATER + 399))
    finally:
        kind.drop(spark, name)


@pytest.mark.slow
@pytest.mark.parametrize("central", [False, True], ids=["beside", "in a shared root"])
def test_a_directory_that_is_removed_and_written_anew_with_the_same_names_and_sizes(spark, tmp_path, central):
    path, other = tmp_path / "t", spark.newSession()
    names = [f"part-{number}.parquet" for number in range(4)]
    name = f"parquet.`{path}`"

    def write(first: int, written: int) -> dict[str, int]:
        for number, file in enumerate(names):
            append(spark, tmp_path / "made", first + number * 100, first + number * 100 + 100, row="id, id % 7 AS v")
            path.mkdir(exist_ok=True)
            (made,) = (tmp_path / "made").glob("*.parquet")
            made.rename(path / file)
            os.utime(path / file, (written, written))
            shutil.rmtree(tmp_path / "made")
        return {file: (path / file).stat().st_size for file in names}

    root = (tmp_path / "root").as_uri() if central else ""
    with conf(spark, spark__metastore__store=root), conf(other, spark__metastore__store=root):
        first = write(0, 1_700_000_000)
        metastore.analyze(spark, name, progress=False)
        for session in (spark, other):
            assert ids(session, name, 5, [1]) == [5]
        former = path / "_metastore"
        if not central:
            shutil.copytree(former, tmp_path / "former")
        shutil.rmtree(path)
        assert write(1000, 1_700_000_001) == first
        if not central:
            shutil.copytree(tmp_path / "former", former)
        for session in (spark, other):
            assert ids(session, name, 1005, [4]) == [1005]
            assert ids(session, name, 5) == []
        metastore.analyze(spark, name, progress=False)
        for session in (spark, other):
            assert ids(session, name, 1005, [1]) == [1005]
            assert ids(session, name, 5) == []
            assert summary(session, name) == ("1000", "1399")
