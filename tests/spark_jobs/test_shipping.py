"""The archive of the package, which several Pythons of one Spark may write."""

import sys
from pathlib import Path
from types import SimpleNamespace

from pyspark import SparkFiles

from metastore.spark_jobs import session_jobs


def test_nobody_sees_half_an_archive(tmp_path, monkeypatch):
    archive, original = tmp_path / "pyspark-metastore" / "a.zip", Path.write_bytes

    def writing(path, data):
        original(path, data[:1])
        assert not archive.exists()
        return original(path, data)

    monkeypatch.setattr(Path, "write_bytes", writing)
    session_jobs._write_at_once(archive, b"all of it")
    monkeypatch.undo()
    session_jobs._write_at_once(archive, b"all of it")  # another did so meanwhile
    assert [(path.name, path.read_bytes()) for path in archive.parent.iterdir()] == [("a.zip", b"all of it")]


def test_what_spark_has_already_is_not_added_again(tmp_path, monkeypatch):
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))
    added = []
    context = SimpleNamespace(listFiles=[], _python_includes=[], addPyFile=added.append)
    session_jobs.ship_package(context)
    (name,) = [Path(path).name for path in added]
    context.listFiles = [f"spark://driver:1/files/{name}"]  # as another Python of this Spark finds it
    session_jobs.ship_package(context)
    assert (len(added), context._python_includes, sys.path[1]) == (1, [name], str(tmp_path / name))
    session_jobs.ship_package(context)
    assert context._python_includes == [name]
