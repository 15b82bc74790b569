"""The guide's statements, one after the other, show what the guide shows, and what the picture of the README shows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = DOCS / "guide.md"
BLOCKS = re.findall(r"```sql\n(.*?);\n```(?:\n\n```text\n(.*?)\n```)?", GUIDE.read_text("utf-8"), re.DOTALL)


@pytest.fixture
def session(spark):
    """A session of its own: the guide sets things."""
    spark.sql("DROP TABLE IF EXISTS orders")
    yield spark.newSession()
    spark.sql("DROP TABLE IF EXISTS orders")


def picture():
    spec = importlib.util.spec_from_file_location("picture", DOCS / "picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(drawing):
    """Return the texts of a picture, without the time of its drawing."""
    drawn = " ".join(re.findall(r"<text[^>]*>(.*?)</text>", drawing)).replace("&#160;", " ")
    return re.sub(r"snapshot .*? UTC", "", drawn)


def test_the_picture(session):
    session.conf.set("spark.metastore.aggregates.enabled", "true")
    picture().make_table(session)
    assert texts(picture().draw(session)) == texts((DOCS / "picture.svg").read_text("utf-8")), "python docs/picture.py"


def test_the_guide(session):
    assert len(BLOCKS) > 6
    session.conf.set("spark.metastore.aggregates.enabled", "true")
    for statements, expected in BLOCKS:
        *before, last = statements.split(";\n")
        for statement in before:
            session.sql(statement).collect()
        frame = session.sql(last)
        if last.startswith("EXPLAIN"):
            assert expected.rstrip(".") in frame.first()[0]
        elif expected:
            assert frame._show_string(truncate=0).strip() == expected, last
