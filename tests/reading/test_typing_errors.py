"""Errors for a mistyped name or a forgotten session say what to type."""

from __future__ import annotations

import pytest

import metastore
from metastore import configuration, errors, jars
from metastore.answers import Summary


class Session:
    """The part of a session that is used before the first query."""

    def sql(self) -> None: ...


PRICES = Summary(kind="summary", subject="t", columns=("column_name",), rows=({"column_name": "price"},))
CALLS = {
    "metastore.open('db.t')": r"There is no table db\.t\. .* metastore\.summary\(spark, 'db\.t'\)\.",
    "metastore.verify('db.t')": r"There is no table db\.t\. .* metastore\.summary\(spark, 'db\.t'\)\.",
    "metastore.summary('/w/t')": r"not '/w/t'\. Say metastore\.open\('/w/t'\)\.summary\(\), without Spark\.",
    "metastore.summary(table='s3://b/t')": r"Say metastore\.open\('s3://b/t'\)\.summary\(\), without Spark\.",
    "metastore.frequencies('/w/t', 'c', top=3)": r"Say metastore\.open\('/w/t'\)\.frequencies\('c', top=3\)",
    "metastore.summary('db.t')": r"not 'db\.t'\. Say metastore\.summary\(spark, 'db\.t'\)\.",
    "metastore.analyze('db.t', columns=['a'])": r"Say metastore\.analyze\(spark, 'db\.t', columns=\['a'\]\)\.",
    "metastore.explain('SELECT 1')": r"Say metastore\.explain\(spark, 'SELECT 1'\)\.",
    "metastore.summary(None, 'db.t')": r"a Spark session is expected, not NoneType\.",
    "metastore.locate(Session(), 'db.t', 'c', 'v')": r"not str\. Say metastore\.locate\(spark, 'db\.t', \['c'\], "
    r"spark\.createDataFrame\(\[\('v',\)\], \['c'\]\)\) for rows, or spark\.sql\(",
    "metastore.locate(Session(), 'db.t', ['c', 'd'], (1, 2))": r"spark\.createDataFrame\(\[\(1, 2\)\], \['c', 'd'\]\)",
    "metastore.sumary": r"no attribute 'sumary'\. Did you mean summary\?",
    "metastore.nothing_alike": r"no attribute 'nothing_alike'$",
    "jars.fetch('iceberg-4.2')": r"no jar 'iceberg-4\.2'\. Did you mean iceberg-4\.1",
    "configuration.get('spark.metastore.histogram.bin')": r"no such setting .* mean spark\.metastore\.histogram\.bins",
    "configuration.get('spark.metastore.zzz')": r"no such setting .* lists every setting",
    "PRICES.column('pirce')": "Did you mean price",
    "PRICES.column('x')": "Known: price",
}


class Context:
    """A context that was stopped."""

    _jsc = None


class StoppedSession(Session):
    _sc = Context()


class StoppedClient(Session):
    is_stopped = True


@pytest.mark.parametrize("session", [StoppedSession(), StoppedClient()])
def test_of_a_session_that_was_stopped_it_is_said(session):
    for ask in (
        lambda: metastore.summary(session, "db.t"),
        lambda: metastore.analyze(session, "db.t"),
        lambda: metastore.verify(session, "db.t"),
        lambda: metastore.explain(session, "SELECT 1"),
        lambda: metastore.settings(session),
    ):
        with pytest.raises(errors.NoSpark, match=r"This Spark session has been stopped\. Get a new one"):
            ask()


@pytest.mark.parametrize("call", CALLS)
def test_what_to_type_is_said(call):
    names = {
        "metastore": metastore,
        "Session": Session,
        "jars": jars,
        "configuration": configuration,
        "PRICES": PRICES,
    }
    with pytest.raises((errors.MetastoreError, AttributeError), match=CALLS[call]):
        eval(call, names)  # noqa: S307 - a line of the table above


def test_misspelt_variables_are_named_where_settings_are_shown(monkeypatch, caplog):
    from metastore.cli import doctor_checks  # noqa: PLC0415 - the command line is slow to import

    monkeypatch.setenv("METASTORE_CBO_ENABLE", "false")
    monkeypatch.setenv("METASTORE_PORT", "9083")  # of Hive
    (setting,) = (row for row in metastore.settings() if row["name"].startswith("METASTORE_"))
    assert (setting["name"], setting["value"], setting["source"]) == ("METASTORE_CBO_ENABLE", "false", "environment")
    assert setting["problem"] == "there is no such setting. Did you mean METASTORE_CBO_ENABLED?"
    check = doctor_checks.check_settings()
    assert (check.state, "METASTORE_CBO_ENABLE is no setting" in check.detail) == (doctor_checks.WARNING, True)
    assert check.fix == "Did you mean METASTORE_CBO_ENABLED?"
    said = "the environment variable METASTORE_CBO_ENABLE is no setting. Did you mean METASTORE_CBO_ENABLED?"
    assert [record.getMessage() for record in caplog.records] == [said]  # once
