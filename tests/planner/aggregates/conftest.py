"""A table of each format of this Spark, and statistics that may answer."""

from __future__ import annotations

from pathlib import Path

import pytest

import metastore
from formats.kinds import FORMATS, KINDS, each_format
from planner.aggregates.answered import fill
from planner.plans import conf

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Delta takes five times as long for a query as Iceberg: what asks hundreds of them is left to the campaign."""
    for item in items:
        long = item.path.parent == HERE and any(word in item.name for word in ("random", "every_type", "several_scans"))
        if long and "delta" in item.name and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.campaign)


PARQUET = [pytest.param("parquet", marks=pytest.mark.campaign)] if "parquet" in FORMATS else []


@pytest.fixture(scope="module", params=each_format(but="parquet") + PARQUET)
def kind(request):
    return KINDS[request.param]


@pytest.fixture(autouse=True, scope="module")
def answers(spark):
    """Hudi's own skipping, which loses rows, is off: tables keep what they are first read with."""
    with conf(spark, spark__metastore__aggregates__enabled=True, hoodie__enable__data__skipping=False):
        yield


@pytest.fixture(scope="module")
def table(spark, kind, tmp_path_factory):
    """Four analyzed files, which no test changes."""
    name = fill(spark, kind, tmp_path_factory.mktemp("aggregates") / "table")
    metastore.analyze(spark, name, progress=False)
    yield name
    kind.drop(spark, name)
