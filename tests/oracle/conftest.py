"""Fixtures of the oracle's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from oracle.spark_answers import INTERPRETED
from planner import plans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Queries are interpreted: to compile them takes far longer than to run them over a few rows."""
    with plans.conf(spark, **INTERPRETED):
        yield
