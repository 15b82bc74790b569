"""Importers of archives that never change are dropped, and what they import is still found."""

from __future__ import annotations

import importlib
import sys
import zipfile
from pathlib import Path
from zipimport import zipimporter

import pytest

from metastore.spark_jobs.archive_imports import forget_archives


@pytest.fixture
def add_archive(tmp_path, monkeypatch):
    """Put an archive of two modules on the path, and import the first."""

    def add(name: str, modules: tuple[str, str]) -> str:
        archive = tmp_path / name
        with zipfile.ZipFile(archive, "w") as content:
            for module in modules:
                content.writestr(f"{module}.py", f"name = {module!r}")
        monkeypatch.syspath_prepend(archive)
        importlib.import_module(modules[0])
        return str(archive)

    yield add
    for name in [name for name in sys.modules if name.startswith("zipped_")]:
        del sys.modules[name]


def importers() -> set[str]:
    """The archives that have importers."""
    return {path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter)}


@pytest.mark.parametrize("name", ["pyspark.zip", "py4j-0.10.9.9-src.zip", "spark-core_2.13-4.1.4.jar"])
def test_archives_of_spark_are_forgotten(add_archive, name):
    archive = add_archive(name, ("zipped_first", "zipped_second"))
    assert archive in importers()
    forget_archives()
    assert archive not in importers()
    assert importlib.import_module("zipped_second").name == "zipped_second"


def test_archives_of_users_are_kept(add_archive):
    archive = add_archive("jobs.zip", ("zipped_first", "zipped_second"))
    forget_archives()
    assert archive in importers()


@pytest.mark.spark
def test_a_task_after_ours_reads_no_directory_of_spark(spark, tmp_path):
    import metastore  # noqa: PLC0415 - the name above is of the module that is tested

    def list_archives(_: int) -> list[str]:
        zip_paths = (path for path, importer in sys.path_importer_cache.items() if isinstance(importer, zipimporter))
        return [Path(path).name for path in zip_paths]

    location = (tmp_path / "table").as_uri()
    spark.range(0, 100, 1, 4).write.parquet(location)
    metastore.analyze(spark, f"parquet.`{location}`", progress=False)
    archives = spark.sparkContext.parallelize(range(4), 4).map(list_archives).collect()
    assert any("pyspark.zip" not in names for names in archives)
