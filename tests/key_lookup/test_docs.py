"""The example of docs/locate.md runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import metastore

pytestmark = pytest.mark.spark
PAGE = Path(__file__).parents[2] / "docs" / "locate.md"


def test_the_example_of_the_page_runs(spark, capsys):
    spark.sql("CREATE TABLE ice.db.visits (id bigint, region string, day date) USING iceberg")
    try:
        spark.sql(
            "INSERT INTO ice.db.visits VALUES (7, 'north', NULL), (7, 'north', NULL), (8, NULL, NULL), (9, 'x', NULL)"
        )
        metastore.analyze(spark, "ice.db.visits", progress=False)
        (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        names = {"spark": spark}
        exec(example, names)  # noqa: S102 - our own page
        assert "north" in capsys.readouterr().out
        assert sum(row["count"] for row in names["per_file"].collect()) == 3
        assert [tuple(row) for row in names["missing"].collect()] == [(9, "nowhere")]
    finally:
        spark.sql("DROP TABLE ice.db.visits")
