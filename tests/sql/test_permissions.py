"""Statistics tell of values: who may not read a table learns nothing from them and makes none, whichever way."""

from __future__ import annotations

import pytest

import metastore
from formats.kinds import KINDS, each_format
from lakes import SPARK
from metastore.errors import UnsupportedTable
from sql import policies
from sql.shell import run_in_session

pytestmark = pytest.mark.spark

COLUMNS = "id BIGINT, secret STRING"
ROW = "id, concat('S', lpad(CAST(id AS STRING), 3, '0')) AS secret"
TOLD = r"Permission denied|row filter or a column mask"


def query(text):
    def ask(session, table):
        session.sql(text.format(t=table)).collect()

    return ask


def program(*arguments):
    def ask(session, table):
        run_in_session(session, *(part.format(t=table) for part in arguments))

    return ask


ENTRIES = {
    "summary": query("SELECT * FROM metastore.summary('{t}')"),
    "frequencies": query("SELECT * FROM metastore.frequencies('{t}', 'secret')"),
    "columns": query("SELECT * FROM metastore.columns('{t}')"),
    "quantiles": query("SELECT * FROM metastore.quantiles('{t}', 'id')"),
    "locate": query("SELECT * FROM metastore.locate('{t}', 'secret', 'S007')"),
    "files": query("SELECT * FROM metastore.files('{t}')"),
    "snapshots": query("SELECT * FROM metastore.snapshots('{t}')"),
    "explain": query("SELECT * FROM metastore.explain('SELECT id FROM {t} WHERE secret < \"S1\"')"),
    "whatif": query("SELECT * FROM metastore.whatif('SELECT id FROM {t} WHERE secret < \"S1\"', 'secret')"),
    "estimates": query("SELECT * FROM metastore.estimates('SELECT id FROM {t} WHERE secret < \"S1\"')"),
    "estimates of a run": query(
        "SELECT * FROM metastore.estimates('SELECT id FROM {t} WHERE secret < \"S1\"', analyze => true)"
    ),
    "facts": query("SELECT * FROM metastore_facts('{t}', files => false)"),
    "ANALYZE": query("ANALYZE TABLE {t} COMPUTE STATISTICS FOR ALL COLUMNS"),
    "ANALYZE NOSCAN": query("ANALYZE TABLE {t} COMPUTE STATISTICS NOSCAN"),
    "python analyze": lambda session, table: metastore.analyze(session, table, progress=False),
    "python locate": lambda session, table: metastore.locate(
        session, table, "secret", session.sql("SELECT 'S007' AS secret")
    ),
    "python verify": metastore.verify,
    "python gc": metastore.gc,
    "python compact": metastore.compact,
    "python report": metastore.report,
    "data source": lambda session, table: session.read.format("metastore").load(table).collect(),
    "data source columns": lambda session, table: (
        session.read.format("metastore").option("view", "columns").option("table", table).load().collect()
    ),
    "analyze TABLE": program("analyze", "{t}"),
    "verify TABLE": program("verify", "{t}"),
    "summary TABLE": program("summary", "{t}"),
}
"""Every way in which the name of a table is given to us."""
if SPARK == "3.5":  # it has no data sources in Python
    ENTRIES = {name: ask for name, ask in ENTRIES.items() if not name.startswith("data source")}


@pytest.fixture(scope="module")
def guarded(spark):
    session = policies.session_with_rule(spark)
    session.conf.set("spark.metastore.analyze.formats", "iceberg,delta,hudi,parquet")  # else Spark's own ANALYZE runs
    return session


@pytest.fixture(scope="module", params=each_format())
def secrets(request, spark, tmp_path_factory):
    """An analyzed table of one format with a column that policies are about."""
    kind = KINDS[request.param]
    name = kind.name.format("secrets")
    kind.create(spark, name, tmp_path_factory.mktemp("secrets"), COLUMNS)
    kind.append(spark, name, 0, 100, row=ROW)
    metastore.analyze(spark, name, progress=False)
    yield name
    kind.drop(spark, name)


def refused(session, table, policy, ask):
    before = metastore.snapshots(session, table).to_dict()["rows"]
    with policies.under(session, policy), pytest.raises(Exception, match=TOLD):
        ask(session, table)
    assert metastore.snapshots(session, table).to_dict()["rows"] == before


def is_quick(policy, entry):
    few = ("summary", "explain", "ANALYZE NOSCAN", "python analyze", "python verify", "data source columns")
    return policy in policies.DIAGONAL and entry in few


MATRIX = [
    pytest.param(policy, entry, marks=() if is_quick(policy, entry) else pytest.mark.campaign)
    for policy in policies.POLICIES
    for entry in ENTRIES
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_who_sees_all_is_let_in(guarded, secrets, entry):
    ENTRIES[entry](guarded, secrets)


@pytest.mark.parametrize(("policy", "entry"), MATRIX)
def test_who_does_not_is_refused(guarded, secrets, policy, entry):
    refused(guarded, secrets, policy, ENTRIES[entry])


@pytest.mark.parametrize("policy", ["resolution once", "posthoc once"])
def test_rules_that_pass_over_what_bears_their_sign_are_asked_anew(guarded, spark, tmp_path, policy):
    path = tmp_path / "t"
    spark.sql(f"SELECT {ROW} FROM range(0, 100, 1, 1)").write.parquet(str(path))
    table = f"parquet.`{path}`"
    metastore.analyze(spark, table, progress=False)
    for entry in ("explain", "estimates", "summary"):
        ENTRIES[entry](guarded, table)
        refused(guarded, table, policy, ENTRIES[entry])


@pytest.mark.parametrize("policy", ["posthoc limit", "optimizer limit"])
def test_a_limit_of_every_query_hides_rows_and_is_named(guarded, secrets, policy):
    with policies.under(guarded, policy), pytest.raises(UnsupportedTable, match="to every query, such as a LIMIT"):
        metastore.summary(guarded, secrets)
    assert metastore.summary(guarded, secrets)


@pytest.mark.parametrize("entry", ["summary", "explain", "ANALYZE", "python analyze", "python verify"])
def test_memory_that_ends_while_rules_are_asked_ends_no_driver(guarded, secrets, entry):
    of_memory = pytest.raises(Exception, match=r"\[METASTORE_FAILED\].*Java heap")
    with policies.under(guarded, "optimizer exhaust"), of_memory:
        ENTRIES[entry](guarded, secrets)
    ENTRIES[entry](guarded, secrets)


@pytest.mark.parametrize("policy", ["optimizer refuse", "strategy mask"])
def test_tables_that_may_not_be_read_are_left_out(guarded, secrets, policy):
    names = "SELECT table FROM metastore.tables({})".format("'ice.db'" if secrets.startswith("ice") else "")
    last = secrets.rpartition(".")[2]
    assert last in [row[0].rpartition(".")[2] for row in guarded.sql(names).collect()]
    with policies.under(guarded, policy):
        assert last not in [row[0].rpartition(".")[2] for row in guarded.sql(names).collect()]


def test_other_tables_are_left_alone(guarded, analyzed):
    with policies.under(guarded, "optimizer mask"):
        assert guarded.sql(f"SELECT * FROM metastore.summary('{analyzed}')").count() > 0


@pytest.mark.parametrize("policy", ["optimizer mask", "strategy mask", "precbo filter"])
def test_masked_values_never_become_bounds(guarded, spark, policy):
    """Files that Python does not open are read by Spark, with whatever rules the session has."""
    table = f"ice.db.secrets_orc_{policy.replace(' ', '_')}"
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg TBLPROPERTIES ('write.format.default' = 'orc')")
    try:
        spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(0, 100, 1, 1)")
        with policies.under(guarded, policy), pytest.raises(UnsupportedTable, match=TOLD):
            metastore.analyze(guarded, table, progress=False)
        metastore.analyze(spark, table, progress=False)
        assert spark.sql(f"SELECT * FROM {table} WHERE secret = 'S077'").count() == 1
    finally:
        spark.sql(f"DROP TABLE {table} PURGE")


@pytest.mark.parametrize("policy", ["resolution mask", "optimizer mask", "strategy mask", "precbo filter"])
def test_queries_of_analyze_are_asked_too(guarded, spark, secrets, policy):
    """A policy that lets the name pass and acts on what ANALYZE itself reads later: with ORC and Avro, Spark's rows."""
    from metastore.adapters.loading import load_facts  # noqa: PLC0415 - what only this test looks into
    from metastore.adapters.shim_calls import require_unchanged  # noqa: PLC0415 - as above
    from metastore.adapters.spark_rows import read_rows_by_spark  # noqa: PLC0415 - as above

    facts = load_facts(guarded, secrets)

    def visible_rows():
        rows = require_unchanged(read_rows_by_spark(guarded, facts, facts.columns, facts.files), secrets)
        return set(map(tuple, rows.collect()))

    stored = visible_rows()
    assert len(stored) == 100
    with policies.under(guarded, policy):
        if "delta" in secrets:  # its files call the column otherwise, so that the policy does not know it
            assert visible_rows() == stored
        else:
            with pytest.raises(UnsupportedTable, match=TOLD):
                visible_rows()
