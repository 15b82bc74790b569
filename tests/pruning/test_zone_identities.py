"""Identities of zones stand in for the paths of their data files."""

from __future__ import annotations

import pytest

from metastore.format.object_layout import ZONE_FILES
from metastore.format.parquet_footer import read_footer
from metastore.jvm_session import find_shim_package
from pruning import zoned
from pruning.scala import module, no_limits, open_store

pytestmark = pytest.mark.spark
FILES = 2 * ZONE_FILES + 40


def joined(spark, folder, paths: list[str], sizes: list[int]):
    """The statistics in a folder joined with these files."""
    arrays = spark.sparkContext._gateway.new_array
    of_paths, of_sizes = arrays(spark._jvm.java.lang.String, len(paths)), arrays(spark._jvm.long, len(paths))
    for i, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        of_paths[i], of_sizes[i] = path, size
    nothing_else = [no_limits(spark)] * 2
    block_zones = open_store(spark, folder).planning(zoned.TABLE.uuid, 60_000, *nothing_else).right().get()
    nothing = module(spark, "scala.collection.immutable.Nil")
    return block_zones.forFiles(find_shim_package(spark).statistics.columns.FileList(of_paths, of_sizes), nothing)


def test_paths_are_not_read_where_zones_are_found(spark, tmp_path):
    files, summary = zoned.random_block(1, FILES)
    block = zoned.write(tmp_path, files, summary, zoned.SMALL).blocks[0]
    path = tmp_path / "objects" / block.files.name
    data = bytearray(path.read_bytes())
    [chunk] = [chunk for chunk in read_footer("files", data).chunks(0) if chunk.name == "path"]
    data[chunk.start + chunk.length // 2] ^= 0xFF
    path.write_bytes(data)
    module(spark, "org.metastore.spark.statistics.cache.StatisticsCache").clear()
    assert joined(spark, tmp_path, files["path"].to_pylist(), files["size"].to_pylist()).knownFiles() == FILES
    moved = [*range(ZONE_FILES, FILES), *range(ZONE_FILES)]
    paths, sizes = ([files[name][i].as_py() for i in moved] for name in ("path", "size"))
    assert joined(spark, tmp_path, ["new", *paths], [1, *sizes]).knownFiles() == FILES
    assert joined(spark, tmp_path, paths[1:], sizes[1:]).knownFiles() == 0


def test_identities_of_other_files_are_not_believed(spark, tmp_path):
    """One path differs: its zone is looked for path by path, and that file is unknown."""
    files, summary = zoned.random_block(1, FILES)
    zoned.write(tmp_path, files, summary, zoned.SMALL)
    other = ZONE_FILES // 2
    paths = [path + "x" if i == other else path for i, path in enumerate(files["path"].to_pylist())]
    joined_files = joined(spark, tmp_path, paths, files["size"].to_pylist())
    assert joined_files.knownFiles() == FILES - 1
    assert not joined_files.isKnown(other)
