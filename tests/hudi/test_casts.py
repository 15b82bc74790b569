"""Columns whose type a write has widened: older data files hold another type, which Hudi casts when it reads them."""

from __future__ import annotations

import pytest

import metastore
from hudi.conftest import write
from metastore.adapters import refusals
from metastore.pipeline import compute
from nightly import others_nightly
from planner.plans import conf, files_read, rows

pytestmark = pytest.mark.spark

FIRST = {
    "n": "CAST(id AS INT)",
    "f": "CAST(id / 10 AS FLOAT)",
    "d": "CAST(16777216 + id AS INT)",
    "r": "CAST(16777216 + id AS INT)",
    "b": "9007199254740992 + id",
    "t": "CAST(id AS INT)",
    "x": "CAST(id / 10 AS FLOAT)",
    "m": "CAST(id AS DECIMAL(10,2))",
    "st": "named_struct('a', CAST(id AS INT), 'f', CAST(id / 10 AS FLOAT))",
}
WIDER = {
    "n": "3000000000 + id",
    "f": "CAST(id / 10 AS DOUBLE)",
    "d": "id / 4",
    "r": "CAST(id / 4 AS FLOAT)",
    "b": "id / 4",
    "t": "CAST(id AS STRING)",
    "x": "CAST(id AS STRING)",
    "m": "CAST(id AS DECIMAL(20,4))",
    "st": "named_struct('a', 3000000000 + id, 'f', CAST(id / 10 AS DOUBLE))",
}
FILES = {  # predicate: rows, files, and files where Spark has to read the data
    "n = 5": (1, 1, 1),
    "n > 2000000000": (10, 1, 1),
    "f = 1.3D": (1, 1, 2),  # and not that of the float, 1.2999999523162842
    "f = CAST(CAST(1.3 AS FLOAT) AS DOUBLE)": (0, 1, 2),
    "f > 1.9D": (10, 2, 3),
    "d = 16777229D": (1, 1, 1),
    "r = CAST(16777229 AS FLOAT)": (3, 1, 1),
    "b = 9007199254741005D": (3, 1, 1),
    "t = '13'": (1, 1, 1),
    "x = '1.3'": (1, 2, 2),
    "x = '25'": (1, 3, 3),
    "m = 13": (1, 1, 1),
    "st.a = 13": (1, 1, 1),
    "st.f = 1.3D": (1, 1, 2),
    "f IS NULL": (0, 0, 2),
}


@pytest.fixture(params=others_nightly(["COPY_ON_WRITE", "MERGE_ON_READ"]))
def first(request, spark, tmp_path):
    """A table of two data files, analyzed, and what makes its writes."""
    path, options = str(tmp_path / "table"), {"hoodie.datasource.write.table.type": request.param}
    write(path, _rows(spark, 0, 20, FIRST), **options)
    return path, options


def _rows(spark, start, end, columns):
    files = (end - start) // 10
    named = (f"{sql} AS {name}" for name, sql in columns.items())
    return spark.range(start, end, 1, files).selectExpr("id", *named, "id AS ts")


def _analyze(spark, path, **more):
    return metastore.analyze(spark, f"hudi.`{path}`", progress=False, **more)


def _matching_ids(spark, path, where):
    return spark.read.format("hudi").option("hoodie.enable.data.skipping", "false").load(path).where(where).select("id")


def _check(spark, path, by_spark=None):
    for where, (count, *files) in FILES.items():
        with conf(spark, spark__metastore__enabled="false"):
            true = rows(_matching_ids(spark, path, where))
        frame = _matching_ids(spark, path, where)
        assert rows(frame) == true, where
        assert len(true) == count, where
        if by_spark is not None:
            assert files_read(frame) == [files[by_spark]], where


def test_older_files_are_described_as_hudi_reads_them(spark, first):
    path, options = first
    _analyze(spark, path)
    write(path, _rows(spark, 20, 30, WIDER), **options)
    _check(spark, path)  # by statistics of the narrower types
    report = _analyze(spark, path)
    assert (report.files, report.files_read) == (3, 3)
    said = {refusal.subject: refusal.reason for refusal in report.refused}
    assert set(said) == {"f", "x", "st.f"}
    assert refusals.ONLY_BOUNDS in said["f"]
    assert refusals.NOTHING in said["x"]
    _check(spark, path, by_spark=0)
    assert _analyze(spark, path).files_read == 0
    summary = {row["column_name"]: row for row in metastore.summary(spark, f"hudi.`{path}`")}
    assert (summary["n"]["min"], summary["n"]["max"], summary["n"]["approx_unique"]) == ("0", "3000000029", 30)
    assert (summary["d"]["max"], summary["r"]["max"]) == ("1.6777235E7", "1.6777236E7")
    assert summary["f"]["exact"] is False


def test_files_that_spark_reads_by_themselves(spark, first, monkeypatch):
    path, options = first
    write(path, _rows(spark, 20, 30, WIDER), **options)
    monkeypatch.setattr(compute, "find_spark_only_reason", lambda *_, **__: refusals.REMOTE)
    report = _analyze(spark, path, ranks=["f"])
    assert report.files_read == 3
    assert {refusal.subject for refusal in report.refused} == {"f", "x", "st.f"}
    _check(spark, path, by_spark=1)
    (middle,) = metastore.quantiles(spark, f"hudi.`{path}`", "f", [0.5])
    assert (middle["value"], middle["exact"]) in {("1.4", True), ("1.5", True)}


@pytest.mark.parametrize(
    ("wide", "narrow", "where"),
    [("id / 10", "CAST(id / 10 AS FLOAT)", "c = 2.5D"), ("3000000000 + id", "CAST(id AS INT)", "c = 25")],
)
def test_writes_of_narrower_types(spark, tmp_path, wide, narrow, where):
    """The table keeps the wider type, and the new file holds the narrower one."""
    path = str(tmp_path / "table")
    write(path, _rows(spark, 0, 20, {"c": wide}))
    write(path, _rows(spark, 20, 30, {"c": narrow}))
    _analyze(spark, path)
    frame = _matching_ids(spark, path, where)
    assert [row.id for row in frame.collect()] == [25]
    assert files_read(frame) == [1]
