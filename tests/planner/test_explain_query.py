"""`ExplainQuery`: which data files a query would read, and why, without running it."""

from __future__ import annotations

import pytest

from planner.plans import conf

pytestmark = pytest.mark.spark


def decisions(spark, query: str) -> list[dict[str, object]]:
    found = spark._jvm.org.metastore.spark.explain.ExplainQuery.decisions(spark._jsparkSession, query)
    names = ("scan", "table", "path", "kept", "reason", "conjunct", "statistic", "rows")
    return [{n: _plain(getattr(found.apply(i), n)()) for n in names} for i in range(found.size())]


def _plain(value):
    if hasattr(value, "isDefined"):
        return value.get() if value.isDefined() else None
    return value


def test_every_file_has_a_reason(spark, analyzed):
    found = decisions(spark, f"SELECT * FROM {analyzed} WHERE id = 5 AND v >= 0")
    assert [d["kept"] for d in found] == [True, False, False, False] or sum(d["kept"] for d in found) == 1
    assert {d["reason"] for d in found} == {"SKIPPED", "KEPT_MAY_MATCH"}
    skipped = next(d for d in found if not d["kept"])
    assert "id" in skipped["conjunct"]
    assert "5" in skipped["conjunct"]
    assert skipped["statistic"]
    assert skipped["rows"] == 100
    assert skipped["path"].endswith(".parquet")
    assert skipped["table"] == analyzed


def test_each_scan_has_its_own_rows(spark, analyzed):
    query = f"SELECT * FROM {analyzed} a JOIN {analyzed} b ON a.v = b.v WHERE a.id < 50 AND b.id >= 200"
    found = decisions(spark, query)
    assert {d["scan"] for d in found} == {0, 1}
    assert sorted(sum(d["kept"] for d in found if d["scan"] == s) for s in (0, 1)) == [1, 2]


def test_a_scan_that_is_left_alone_says_why(spark, four_files):
    assert {d["reason"] for d in decisions(spark, f"SELECT * FROM {four_files} WHERE id = 5")} == {"NO_STATISTICS"}


def test_commands_are_planned_and_never_run(spark, analyzed):
    found = decisions(spark, f"INSERT INTO {analyzed} SELECT * FROM {analyzed} WHERE id = 5")
    assert {d["reason"] for d in found} <= {"INSIDE_WRITE"}
    assert spark.table(analyzed).count() == 400


def test_nothing_is_said_where_we_are_switched_off(spark, analyzed):
    with conf(spark, spark__metastore__enabled=False):
        assert decisions(spark, f"SELECT * FROM {analyzed} WHERE id = 5") == []
