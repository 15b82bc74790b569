from __future__ import annotations

import gaps
from metastore import errors

SPARKS_OWN = "DATA_SOURCE_NOT_FOUND"


def test_gaps_are_about_what_is_listed():
    targets = {(target.format, target.spark) for target in gaps.TARGETS}
    codes = {kind.code for kind in errors.MetastoreError.__subclasses__()} | {None, SPARKS_OWN}
    for gap in gaps.GAPS:
        assert gap.behaviour in gaps.BEHAVIOURS
        assert {(gap.format, spark) for spark in gap.sparks} <= targets, gap
        assert gap.raised in codes, gap
        assert gap.reason[-1] != ".", gap
