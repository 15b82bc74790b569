"""Tables of each format that nobody analyzed."""

from __future__ import annotations

import pytest

from auto.checks import NUMBERS
from formats.kinds import KINDS, each_format


@pytest.fixture(params=each_format(but="parquet"))
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def table(spark, kind, tmp_path):
    """A table of each format with one file that nobody analyzed."""
    name = kind.name.format(f"auto_{next(NUMBERS)}")
    kind.create(spark, name, tmp_path / "table")
    kind.append(spark, name, 0, 100)
    yield name
    kind.drop(spark, name)
