from __future__ import annotations

import pickle

import pytest

from metastore import errors

ALL = [
    errors.NoStatistics("db.t"),
    errors.TableNotFound("db.t", ["db.u"]),
    errors.ColumnNotFound("pirce", "db.t", ["price"]),
    errors.FormatTooNew("log/2.json", "format 2"),
    errors.StoreNotReadable("file:/x", "no answer"),
    errors.StoreNotWritable("file:/x", "read-only"),
    errors.CommitUnknown("file:/x", 7, "no answer"),
    errors.UnsupportedTable("db.v", "it is a view"),
    errors.AccessDenied("db.t", "Permission denied"),
    errors.CatalogFailed("db.t", "Connection refused"),
    errors.Failed("db.t", "java.lang.OutOfMemoryError: Java heap space"),
    errors.DamagedObject("x.parquet", "it is short"),
    errors.InvalidArgument("columns", "it is empty"),
    errors.InvalidSetting("spark.metastore.cache.size", "x", "it is no size"),
    errors.NoSpark("Spark 3.3 is not supported"),
    errors.JarNotFound("no such jar"),
    errors.LibraryNotFound("polars", "to_polars()"),
    errors.AnalyzeFailed("db.t", "a file is gone"),
    errors.CollectionRefused("a manifest is torn"),
]


def test_all_are_listed_and_have_a_code_of_their_own():
    kinds = {type(error) for error in ALL}
    assert {kind.__name__ for kind in kinds} | {"MetastoreError"} == set(errors.__all__)
    assert len({kind.code for kind in kinds}) == len(kinds)


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.code)
def test_one_line_that_begins_with_the_code(error):
    assert str(error).startswith(f"[{error.code}] ")
    assert "\n" not in str(error)


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.code)
def test_executors_send_them_to_the_driver(error):
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - as Spark does
    assert (type(copy), str(copy), copy.__dict__) == (type(error), str(error), error.__dict__)
