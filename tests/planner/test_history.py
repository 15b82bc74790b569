"""The history of pruning in a session, as `metastore.history` shows it."""

from __future__ import annotations

import pytest

import metastore
from metastore.errors import InvalidArgument
from planner.plans import conf

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark):
    """A session of its own: each has its own history."""
    return spark.newSession()


def history(session, table=None):
    return [
        (row["table"], row["files_total"], row["files_read"], row["reasons"])
        for row in metastore.history(session, table)
    ]


def test_nothing_is_noted_unasked_and_the_setting_is_named(session, analyzed):
    session.sql(f"SELECT * FROM {analyzed} WHERE id = 5").collect()
    with pytest.raises(InvalidArgument, match=r"because spark\.metastore\.history\.enabled is false"):
        history(session)
    with conf(session, spark__metastore__history__enabled="true"):
        assert history(session) == []


def test_each_scan_of_a_query_is_noted(session, analyzed):
    with conf(session, spark__metastore__history__enabled="true"):
        session.sql(f"SELECT * FROM {analyzed} WHERE id < 150 AND s = 'x0007'").collect()
        session.sql(
            f"SELECT a.id FROM {analyzed} a JOIN {analyzed} b ON a.v = b.v WHERE a.id = 5 AND b.id > 350"
        ).collect()
        session.sql(f"SELECT id FROM {analyzed} WHERE rand() < 0.5").collect()
        session.sql(f"SELECT id FROM {analyzed} WHERE id >= 0 ORDER BY id DESC LIMIT 2").collect()
        with conf(session, spark__metastore__aggregates__enabled="true"):
            session.sql(f"SELECT count(*) FROM {analyzed} WHERE id >= 100").collect()
    session.sql(f"SELECT * FROM {analyzed} WHERE id = 6").collect()
    noted = history(session, analyzed)
    assert [(table, total, read) for table, total, read, _ in noted[:1]] == [(analyzed, 4, 1)]
    assert sum(noted[0][3].values()) == 3
    assert sorted(noted[1:3], key=str) == sorted(
        [(analyzed, 4, 1, {"(a.id = 5L)": 3}), (analyzed, 4, 1, {"(b.id > 350L)": 3})], key=str
    )
    assert noted[3][3] == {"NOTHING_TO_PRUNE": 0}
    assert noted[4] == (analyzed, 4, 1, {"top-K": 3})
    assert noted[5] == (analyzed, 4, 0, {"ANSWERED_BY_STATISTICS": 3, "(id >= 100L)": 1})
    assert len(noted) == 6
    first = metastore.history(session, analyzed.upper())[0]
    assert first["bytes_skipped"] > 0
    assert first["planning_ms"] >= 0
    assert history(session, "db.other") == []
    assert len(history(session, analyzed.rpartition(".")[2])) == 6


def counters(spark) -> dict[str, int]:
    """Read the driver's metrics, once its listeners have heard of all queries."""
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    source = spark._jvm.org.apache.spark.SparkEnv.get().metricsSystem().getSourcesByName("metastore").head()
    counters = source.metricRegistry().getCounters()
    return {name: counters[name].getCount() for name in counters}


def test_the_driver_counts_for_its_metrics(spark, session, analyzed):
    session.sql(f"SELECT * FROM {analyzed} WHERE id = 5").collect()
    before = counters(spark)
    session.sql(f"SELECT * FROM {analyzed} WHERE id = 5").collect()
    session.sql(f"SELECT id FROM {analyzed} WHERE rand() < 0.5").collect()
    with conf(session, spark__metastore__enabled="false"):
        session.sql(f"SELECT * FROM {analyzed} WHERE id = 5").collect()
    after = counters(spark)
    added = {name: count - before.get(name, 0) for name, count in after.items()}
    assert added.pop("bytesSkipped") > 0
    assert added.pop("planningMillis") >= 0
    moved = {name: count for name, count in added.items() if count}
    assert moved == {"scans": 2, "filesTotal": 8, "filesSkipped": 3, "leftAlone.NOTHING_TO_PRUNE": 1}


def test_sessions_do_not_see_each_other(spark, session, analyzed):
    other = spark.newSession()
    with conf(other, spark__metastore__history__enabled="true"):
        other.sql(f"SELECT * FROM {analyzed} WHERE id = 5").collect()
    with conf(session, spark__metastore__history__enabled="true"):
        assert history(session) == []
    assert len(history(other)) == 1


def test_queries_that_fail_and_commands_are_not_noted(session, analyzed):
    with conf(session, spark__metastore__history__enabled="true"):
        with pytest.raises(Exception, match="boom"):
            session.sql(f"SELECT raise_error('boom') FROM {analyzed} WHERE id = 5").collect()
        session.sql("SHOW TABLES IN ice.db").collect()
        assert history(session) == []
