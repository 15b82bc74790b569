"""Locations are named as statements name them."""

from __future__ import annotations

import pytest

from metastore.errors import NoStatistics
from metastore.path_names import is_location, name_in_shell, name_in_statements, phrase_names


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("a.parquet", "parquet.`{}`"),
        ("p=1/q=2/a.parquet", "parquet.`{}`"),
        ("_delta_log/0.json", "delta.`{}`"),
        (".hoodie/hoodie.properties", "hudi.`{}`"),
        ("metadata/v1.metadata.json", "<its name>"),
        ("a.csv", "<its name>"),
        ("_h.parquet", "<its name>"),
    ],
)
def test_folders_are_named_by_what_they_hold(tmp_path, file, named):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).touch()
    for location in (str(tmp_path), f"{tmp_path}/", f"file:{tmp_path}", f"file://{tmp_path}", f"{tmp_path}/x/.."):
        assert name_in_statements(location) == named.format(tmp_path)
    assert NoStatistics(str(tmp_path)).command.startswith(f"ANALYZE TABLE {named.format(tmp_path)} COMPUTE")


def test_what_cannot_be_looked_at_has_no_name(tmp_path):
    for location in ("s3://bucket/t", str(tmp_path / "nothing"), "./nothing"):
        assert (is_location(location), name_in_statements(location)) == (True, "<its name>")
    assert "parquet.`s3://bucket/t`" in phrase_names("s3://bucket/t")


def test_relative_locations_and_names(tmp_path, monkeypatch):
    (tmp_path / "t 1").mkdir()
    (tmp_path / "t 1" / "a.parquet").touch()
    monkeypatch.chdir(tmp_path)
    assert name_in_statements("./t 1") == f"parquet.`{tmp_path}/t 1`"
    assert name_in_shell("./t 1") == f"'parquet.`{tmp_path}/t 1`'"
    assert name_in_statements("db.t") == name_in_shell("db.t") == "db.t"
    assert name_in_statements("delta.`/t`") == "delta.`/t`"


def test_a_table_of_iceberg_is_told_as_one(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").touch()
    assert phrase_names(str(tmp_path)) == "It is an Iceberg table: name it as its catalog does."
