"""A fresh table name for every test."""

from __future__ import annotations

import itertools

import pytest

_NUMBERS = itertools.count()


@pytest.fixture
def table(spark):
    name = f"ice.db.analyze_{next(_NUMBERS)}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name} PURGE")
