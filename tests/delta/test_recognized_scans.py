"""Listeners recognise the scans of an executed plan by Delta's classes, whatever chooses their files."""

from __future__ import annotations

import pytest

import metastore
from planner.plans import conf, files_read, plain, rows, scans

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PREPARED = "org.apache.spark.sql.delta.stats.PreparedDeltaFileIndex"
JOIN = "SELECT a.id, a.v FROM {t} a JOIN (SELECT id FROM {t} WHERE s = 's00250') b ON a.id = b.id"


@pytest.fixture
def analyzed(spark, filled):
    metastore.analyze(spark, filled, progress=False)
    return filled


def index_of(scan):
    return scan.relation().location()


def check_recognized(scan) -> None:
    """The scan's index is one of Delta's, and says of the table what Delta's own says."""
    index = index_of(scan)
    of_delta = index.getClass().getClassLoader().loadClass(PREPARED)
    assert of_delta.isInstance(index)
    assert index.getClass().getSimpleName() == of_delta.getSimpleName()
    assert index.preparedScan().total().files().get() == 4
    assert index.metadata().id()
    assert index.path().toString() == index.rootPaths().head().toString()


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM {t} WHERE id = 7", [1]),
        ("SELECT * FROM {t} WHERE id + 1 > 1000", [0]),
        ("SELECT id, v FROM {t} ORDER BY id DESC LIMIT 5", [1]),
        ("SELECT v, count(*) FROM {t} GROUP BY v", [4]),
    ],
)
def test_an_index_of_delta_lists_the_files_that_are_left(spark, analyzed, query, files, adaptive):
    text = query.format(t=analyzed)
    with conf(spark, spark__sql__adaptive__enabled=adaptive):
        df = spark.sql(text)
        assert rows(df) == plain(spark, text)
        assert files_read(df) == files
        for scan in scans(df):
            check_recognized(scan)


def test_the_keys_of_a_join_choose_its_files(spark, analyzed):
    text = JOIN.format(t=analyzed)
    df = spark.sql(text)
    assert rows(df) == plain(spark, text)
    assert files_read(df) == [1, 1]
    for scan in scans(df):
        check_recognized(scan)


def test_the_files_that_an_aggregate_leaves_are_listed_once_and_for_all(spark, analyzed):
    text = f"SELECT count(*), min(id) FROM {analyzed} WHERE id >= 50"
    with conf(spark, spark__metastore__aggregates__enabled=True):
        df = spark.sql(text)
        assert rows(df) == plain(spark, text)
        assert files_read(df) == [1]
        (scan,) = scans(df)
        check_recognized(scan)


def test_equal_scans_have_the_same_result_and_others_have_not(spark, analyzed):
    text = "SELECT id FROM {t} WHERE id = {k}"
    first, same, other = (scans(spark.sql(text.format(t=analyzed, k=k)))[0] for k in (7, 7, 307))
    assert first.sameResult(same)
    assert index_of(first).hashCode() == index_of(same).hashCode()
    assert not first.sameResult(other)
