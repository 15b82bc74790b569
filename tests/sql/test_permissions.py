"""Statistics tell of values: who may not read a table learns nothing from them."""

from __future__ import annotations

import pytest

from sql import policies

pytestmark = pytest.mark.spark

CALLS = [
    "SELECT * FROM metastore.summary('{t}')",
    "SELECT * FROM metastore.columns('{t}')",
    "SELECT * FROM metastore.files('{t}')",
    "SELECT * FROM metastore.snapshots('{t}')",
    "SELECT * FROM metastore.explain('SELECT * FROM {t}')",
    "ANALYZE TABLE {t} COMPUTE STATISTICS FOR ALL COLUMNS",
]


@pytest.fixture(scope="module")
def guarded(spark):
    return policies.session_with_rule(spark)


def under(session, policy):
    session.conf.set(policies.SETTING, policy)
    return session


@pytest.mark.parametrize("call", CALLS)
def test_what_a_plug_in_refuses_is_refused(guarded, analyzed, call):
    assert under(guarded, "none").sql(call.format(t=analyzed)).count() > 0
    with pytest.raises(Exception, match="Permission denied"):
        under(guarded, "refuse").sql(call.format(t=analyzed))


@pytest.mark.parametrize("call", [call for call in CALLS if "explain" not in call])
def test_hidden_rows_are_not_told_of(guarded, analyzed, call):
    with pytest.raises(Exception, match=r"^\[METASTORE_UNSUPPORTED_TABLE\] .* row filter or a column mask"):
        under(guarded, "filter").sql(call.format(t=analyzed))


@pytest.mark.parametrize("policy", ["refuse", "filter"])
def test_tables_that_may_not_be_read_are_left_out(guarded, analyzed, policy):
    names = "SELECT table FROM metastore.tables('ice.db')"
    assert analyzed in [row[0] for row in under(guarded, "none").sql(names).collect()]
    assert analyzed not in [row[0] for row in under(guarded, policy).sql(names).collect()]


@pytest.mark.parametrize("policy", ["refuse", "filter"])
def test_the_data_source_asks_too(guarded, analyzed, policy):
    with pytest.raises(Exception, match=r"Permission denied|row filter or a column mask"):
        under(guarded, policy).read.format("metastore").load(analyzed).collect()
