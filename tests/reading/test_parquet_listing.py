"""The data files of a directory are those that Spark reads of it, whatever else lies there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metastore.errors import AccessDenied, UnsupportedTable
from metastore.reading.parquet_listing import list_parquet_files

if TYPE_CHECKING:
    from pathlib import Path

READ = {
    "root and folders": (["g", "a/b/f"], ["g"]),
    "root and partitions": (["g", "p=1/f"], ["p=1/f"]),
    "below partitions": (["p=1/f", "p=1/sub/f", "p=2/sub/f"], ["p=1/f", "p=1/sub/f", "p=2/sub/f"]),
    "above partitions": (["sub/p=1/f", "sub/p=2/f"], ["sub/p=1/f", "sub/p=2/f"]),
    "between partitions": (["p=1/sub/q=2/f"], ["p=1/sub/q=2/f"]),
    "other case": (["p=1/f", "P=2/f"], ["P=2/f", "p=1/f"]),
    "files like partitions": (["g", "p=1"], ["g", "p=1"]),
    "hidden": (["g", "_h", ".h", "c._COPYING_", "_metadata", "_q/f"], ["g"]),
    "hidden and partitions": (["_p=1/f", "_q/f", "_p=2/_r=1"], ["_p=1/f", "_p=2/_r=1"]),
    "no data file in a folder": (["p=1/f", "a/_metadata"], ["p=1/f"]),
    "empty": (["g", "z:empty"], ["g"]),
    "empty partition": (["g", "p=1/z:empty"], []),
    "pipe": (["g", "z:pipe"], ["g"]),
    "link to a file": (["g", "h->g"], ["g", "h"]),
    "link to a partition": (["p=1/f", "p=2->p=1"], ["p=1/f", "p=2/f"]),
    "link to nowhere": (["g", "h->nowhere"], ["g"]),
    "link to itself": (["g", "h->h"], ["g"]),
    "link to the root": (["g", "loop->."], ["g"]),
}
REFUSED = {
    "folder": (["p=1/f", "a/b/f"], "p=1 as well as in a/b"),
    "empty file": (["p=1/f", "a/z:empty"], "p=1 as well as in a"),
    "listed folder": (["p=1/f", "_metadata_x/f"], "p=1 as well as in _metadata_x"),
    "two tables": (["s/p=1/f", "t/p=1/f"], "s/p=1 as well as in t/p=1"),
    "root": (["g", "sub/p=1/f"], "sub/p=1 as well as in the folder itself"),
    "other column": (["g", "p=1/f", "q=1/f"], "p=1 as well as in q=1"),
    "other depth": (["p=1/f", "p=1/q=2/f"], "p=1 as well as in p=1/q=2"),
    "link to the root": (["p=1/f", "loop->."], "loop is a link to a folder that it lies in"),
}


def lay_out(root: Path, entries: list[str]) -> Path:
    for entry in entries:
        name, _, target = entry.partition("->")
        name, _, kind = name.partition(":")
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if target:
            file.symlink_to((root / target).absolute())
        elif kind == "pipe":
            os.mkfifo(file)
        elif kind == "empty":
            file.touch()
        else:
            pq.write_table(pa.table({"x": [1]}), file)
    return root


def list_paths(root: Path, **options: bool) -> list[str]:
    files = list_parquet_files(str(root), **options)
    assert files is not None
    return sorted(file.path for file in files)


@pytest.mark.parametrize("case", READ)
def test_what_spark_reads_is_listed(tmp_path, case):
    entries, read = READ[case]
    assert list_paths(lay_out(tmp_path, entries)) == read


@pytest.mark.parametrize("case", REFUSED)
def test_what_spark_refuses_is_refused(tmp_path, case):
    entries, message = REFUSED[case]
    with pytest.raises(UnsupportedTable, match=f"looked for in partitions, but .*{message}. Move what does not belong"):
        list_parquet_files(str(lay_out(tmp_path, entries)))


def test_rows_that_spark_reads_forty_times_are_refused(tmp_path):
    with pytest.raises(UnsupportedTable, match="p=1/loop is a link to a folder that it lies in"):
        list_parquet_files(str(lay_out(tmp_path, ["p=1/f", "p=1/loop->p=1"])))


@pytest.mark.parametrize("entries", [["p=1/f", "a/b/f"], ["a/b/f", "c/f"]])
def test_a_catalog_may_have_partitions_anywhere(tmp_path, entries):
    assert list_paths(lay_out(tmp_path, entries), by_path=False) == sorted(entries)
    assert list_paths(lay_out(tmp_path / "flat", ["g", "a/f"]), by_path=False) == ["g"]


def test_a_folder_that_cannot_be_listed_is_named(tmp_path, monkeypatch):
    lay_out(tmp_path, ["p=1/f", "p=2/f"])
    scan = os.scandir

    def refusing(folder):
        if str(folder).endswith("p=2"):
            raise PermissionError(13, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(AccessDenied, match=r"cannot be read by this user: .*/p=2: Permission denied"):
        list_parquet_files(str(tmp_path))


@pytest.mark.spark
@pytest.mark.slow
def test_spark_reads_what_is_listed(spark, tmp_path):
    def read(case: str, entries: list[str]) -> list[str]:
        root = lay_out(tmp_path / case, entries)
        files = spark.read.parquet(str(root)).selectExpr("_metadata.file_path").collect()
        return sorted(file.file_path.partition(f"{root}/")[2] for file in files)

    assert {case: read(case.replace(" ", "_"), entries) for case, (entries, _) in READ.items()} == {
        case: expected for case, (_, expected) in READ.items()
    }
    for case, (entries, _) in REFUSED.items():
        with pytest.raises(Exception, match="CONFLICTING_"):
            read(f"refused_{case.replace(' ', '_')}", entries)
