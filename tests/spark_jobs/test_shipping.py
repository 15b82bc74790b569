"""The archive of the package, which several Pythons of one Spark may write."""

from pathlib import Path

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
    assert [(found.name, found.read_bytes()) for found in archive.parent.iterdir()] == [("a.zip", b"all of it")]
