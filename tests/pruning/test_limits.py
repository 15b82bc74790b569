"""The shim at the limits that both readers have, and both readers on manifests that no writer makes."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError

from format import limits
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format.manifest import Manifest
from pruning.scala import module

pytestmark = pytest.mark.spark

REFUSALS = ("DamagedObjectException", "FormatTooNewException")


def in_shim(work):
    """Whether the shim reads something; it fails with nothing but a refusal."""
    try:
        work()
    except Py4JJavaError as failure:
        if failure.java_exception.getClass().getSimpleName() not in REFUSALS:
            raise
        return limits.REFUSED
    return limits.READ


def in_python(data):
    try:
        Manifest.from_bytes(data)
    except (DamagedObject, FormatTooNew):
        return limits.REFUSED
    return limits.READ


def test_manifests(spark):
    reader = module(spark, "org.metastore.spark.statistics.objects.ManifestReader")
    cases = limits.manifests()
    results = {name: in_shim(lambda data=data: reader.read("m", data)) for name, (data, _) in cases.items()}
    assert results == {name: expected for name, (_, expected) in cases.items()}


@pytest.mark.slow
def test_both_readers_agree_on_manifests_that_no_writer_makes(spark):
    reader = module(spark, "org.metastore.spark.statistics.objects.ManifestReader")
    cases = limits.mutated(1_500)
    results = [in_shim(lambda data=data: reader.read("m", data)) for data in cases]
    other = [data for data, shim in zip(cases, results, strict=True) if in_python(data) != shim]
    assert not other, (len(other), [data[:2000] for data in other[:3]])
    assert {*results} == {limits.READ, limits.REFUSED}
