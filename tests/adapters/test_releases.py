"""Releases of table formats that are declared: their jars are locked, and the shim knows the same ones."""

from __future__ import annotations

import pytest

from gaps import RELEASES, TARGETS
from lakes import FORMATS, SPARK
from metastore import jars


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.jar)
def test_the_jar_of_a_release_is_locked(release):
    jar = jars.read_lock()[release.jar]
    assert (jar.version, release.format in jar.artifact) == (release.version, True)


def test_what_every_test_runs_on_is_among_them():
    released = {(release.spark, release.jar): ".".join(release.version.split(".")[:2]) for release in RELEASES}
    for target in TARGETS:
        if target.format != "parquet":
            assert target.title.split()[-1] == released[target.spark, f"{target.format}-{target.spark}"]


@pytest.mark.slow
@pytest.mark.spark
def test_the_shim_knows_the_oldest_and_the_newest(spark):
    formats = {row.format.lower(): row for row in spark.sql("SELECT * FROM metastore_formats()").collect()}
    assert set(formats) == set(FORMATS)
    for name, row in formats.items():
        tested = [numbers(release.version) for release in RELEASES if release.format == name and not release.refused]
        assert (numbers(row.oldest), numbers(row.newest)) == (min(tested), max(tested))
        used = next(release for release in RELEASES if release.jar == f"{name}-{SPARK}")
        assert (row.found, row.refusal) == (used.version, None)
