from __future__ import annotations

from pathlib import Path

from metastore import errors
from metastore.adapters import gaps

SPARKS_OWN = "DATA_SOURCE_NOT_FOUND"
PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


def test_the_documentation_is_current():
    assert PAGE.read_text("utf-8") == gaps.render_formats_page(), (
        "run: python -m metastore.adapters.gaps docs/formats.md"
    )


def test_gaps_are_about_what_is_listed():
    targets = {(target.format, target.spark) for target in gaps.TARGETS}
    codes = {kind.code for kind in errors.MetastoreError.__subclasses__()} | {None, SPARKS_OWN}
    for gap in gaps.GAPS:
        assert gap.behaviour in gaps.BEHAVIOURS
        assert {(gap.format, spark) for spark in gap.sparks} <= targets, gap
        assert gap.raised in codes, gap
        assert gap.reason[-1] != ".", gap
