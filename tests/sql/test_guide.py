"""The guide's statements, one after the other, show what the guide shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
BLOCKS = re.findall(r"```sql\n(.*?);\n```(?:\n\n```text\n(.*?)\n```)?", GUIDE.read_text("utf-8"), re.DOTALL)


@pytest.fixture
def session(spark):
    """A session of its own: the guide sets things."""
    spark.sql("DROP TABLE IF EXISTS orders")
    yield spark.newSession()
    spark.sql("DROP TABLE IF EXISTS orders")


def test_the_guide(session):
    assert len(BLOCKS) > 6
    session.conf.set("spark.metastore.aggregates.enabled", "true")
    for statements, shown in BLOCKS:
        *before, last = statements.split(";\n")
        for statement in before:
            session.sql(statement).collect()
        found = session.sql(last)
        if last.startswith("EXPLAIN"):
            assert shown.rstrip(".") in found.first()[0]
        elif shown:
            assert found._show_string(truncate=0).strip() == shown, last
