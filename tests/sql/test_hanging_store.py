"""Storage that never answers: what asks it ends in time, and nothing else of the session waits for it."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

import metastore
from planner.plans import check as check_query
from planner.plans import conf, labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]
PATIENCE = 60
"""Seconds: more than anything takes that does not hang."""
ASKED = {
    "a function": "SELECT * FROM metastore.summary('{t}')",
    "in a sub-query": "SELECT (SELECT count(*) FROM metastore.files('{t}')) AS n",
    "explain": "SELECT * FROM metastore.explain('SELECT * FROM metastore.columns(\"{t}\")')",
    "a view": "CREATE OR REPLACE TEMPORARY VIEW hanging AS SELECT * FROM metastore.snapshots('{t}')",
}


class Task:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self.thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - who waits looks at it
            self.error = error

    def ends(self) -> bool:
        self.thread.join(PATIENCE)
        return not self.thread.is_alive()


@pytest.fixture
def hanging(spark) -> Iterator[str]:
    """A store that takes connections and never says a word, for the statistics of all tables."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        store = f"webhdfs://127.0.0.1:{server.getsockname()[1]}/statistics"
        with conf(spark, spark__metastore__store=store, spark__metastore__read__timeout="1h"):
            yield store


def wait_for_thread(spark, name: str) -> Any:
    """The JVM's thread of a name, once there is one."""
    while True:
        for thread in spark._jvm.java.lang.Thread.getAllStackTraces().keySet().toArray():
            if thread.getName() == name and thread.isAlive():
                return thread


@pytest.mark.parametrize("query", ASKED.values(), ids=ASKED)
def test_no_other_statement_waits_and_an_interrupt_ends_the_call(spark, table, hanging, query):
    threads = spark._jvm.java.lang.Thread

    def ask() -> None:
        threads.currentThread().setName(f"asks: {query}")
        spark.sql(query.format(t=table)).collect()

    call = Task(ask)
    wait_for_thread(spark, "metastore-read")
    for statement in ("SHOW TABLES", "SELECT * FROM metastore.help()", "CREATE OR REPLACE TEMP VIEW one AS SELECT 1"):
        assert Task(lambda statement=statement: spark.sql(statement).collect()).ends(), statement
    assert call.thread.is_alive()
    wait_for_thread(spark, f"asks: {query}").interrupt()
    assert call.ends()
    assert "InterruptedException" in str(call.error)


@pytest.mark.parametrize("query", ASKED.values(), ids=ASKED)
def test_a_call_ends_in_time(spark, table, hanging, query):
    with conf(spark, spark__metastore__read__timeout="1s"):
        call = Task(lambda: spark.sql(query.format(t=table)).collect())
        assert call.ends()
    check(call)


@pytest.mark.parametrize("view", ["summary", "columns", "histograms"])
def test_the_data_source_ends_in_time(spark, table, hanging, view):
    with conf(spark, spark__metastore__read__timeout="1s"):
        call = Task(lambda: spark.read.format("metastore").option("view", view).load(table).collect())
        assert call.ends()
    check(call)


def check(call: Task) -> None:
    message = str(call.error)
    assert message.startswith("[METASTORE_STORE_NOT_READABLE]")
    assert "no answer within 1000 ms" in message
    assert "spark.metastore.read.timeout" in message
    assert len(message.splitlines()) == 1


def test_a_query_is_planned_without_the_statistics(spark, table, hanging):
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'p')")
    planned_without(spark, table, "1s")
    planned_without(spark, table, "1h")  # which it does not take: a store that is known to hang is not waited for


def test_an_analyze_in_python_ends_in_time(spark, table, hanging):
    with conf(spark, spark__metastore__analyze__timeout="2s"):
        call = Task(lambda: metastore.analyze(spark, table, progress=False))
        assert call.ends()
    message = str(call.error)
    assert message.startswith("[METASTORE_STORE_NOT_")
    assert "it has not answered for 2 seconds (spark.metastore.analyze.timeout)" in message
    assert len(message.splitlines()) == 1


def planned_without(spark, table, patience) -> None:
    with conf(spark, spark__metastore__planning__timeout=patience):
        df = spark.sql(f"SELECT * FROM {table} WHERE id = 1")
        assert Task(df.collect).ends()
        assert "ms to read" in labels(df)[0]
        assert "took longer than" in labels(df)[0]


def test_a_store_that_hangs_stops_its_own_queries_alone(spark, table, analyzed, hanging):
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'p')")
    planned_without(spark, table, "1s")
    spark.conf.unset("spark.metastore.store")
    check_query(spark, f"SELECT * FROM {analyzed} WHERE id = 7", [1])


@pytest.fixture
def answering_two() -> Iterator[str]:
    """A store that hangs until two tables are requested, and then refuses all."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            first, second = server.accept()[0], server.accept()[0]
            first.close()
            second.close()
            while True:
                server.accept()[0].close()

        Task(answer)
        yield f"webhdfs://127.0.0.1:{server.getsockname()[1]}/statistics"
        server.shutdown(socket.SHUT_RDWR)


def test_the_tables_of_a_query_are_looked_up_side_by_side(spark, table, analyzed, answering_two):
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'p')")
    with conf(spark, spark__metastore__store=answering_two, spark__metastore__planning__timeout=f"{PATIENCE // 2}s"):
        df = spark.sql(f"SELECT * FROM {table} JOIN {analyzed} USING (id) WHERE id = 1")
        assert Task(df.collect).ends()
        label = labels(df)
        assert len(label) >= 2
        assert all("could not be read" in label for label in label)


ANALYZE = "ANALYZE TABLE {} COMPUTE STATISTICS"


@pytest.fixture
def healthy(spark) -> Iterator[str]:
    """A table beside the one that hangs."""
    spark.sql("CREATE TABLE ice.db.sql_healthy (id BIGINT, s STRING, p STRING) USING iceberg")
    yield "ice.db.sql_healthy"
    spark.sql("DROP TABLE ice.db.sql_healthy")


@pytest.fixture
def elsewhere(spark, hanging) -> SparkSession:
    """A session whose statistics do not hang."""
    session = spark.newSession()
    session.conf.set("spark.metastore.store", "")
    return session


def test_an_analyze_that_hangs_delays_no_other_and_an_interrupt_ends_it(spark, table, analyzed, hanging, elsewhere):
    threads = spark._jvm.java.lang.Thread
    name = f"analyzes {table}"

    def analyze() -> None:
        threads.currentThread().setName(name)
        spark.sql(ANALYZE.format(table))

    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'p')")
    hung = Task(analyze)
    thread = wait_for_thread(spark, name)
    filtered = f"SELECT * FROM metastore.filtered_summary('SELECT * FROM {analyzed}')"
    for statement in (ANALYZE.format(analyzed), filtered):
        other = Task(lambda statement=statement: elsewhere.sql(statement).collect())
        assert other.ends(), statement
        assert other.error is None, other.error
    assert hung.thread.is_alive()
    thread.interrupt()
    assert hung.ends()
    assert "InterruptedException" in str(hung.error)


def test_an_analyze_that_hangs_ends_in_time_and_the_next_one_works(spark, table, hanging, elsewhere):
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'p')")
    with conf(spark, spark__metastore__analyze__timeout="2s"):
        call = Task(lambda: spark.sql(ANALYZE.format(table)))
        assert call.ends()
    message = str(call.error)
    # Python notices that the store does not answer as soon as the JVM notices that Python does not.
    assert message.startswith(f"[METASTORE_ANALYZE_FAILED] ANALYZE of {table} failed: ")
    assert "spark.metastore.analyze.timeout" in message
    assert len(message.splitlines()) == 1
    assert elsewhere.sql(ANALYZE.format(table)).collect()[0]["rows"] == 1


def test_a_table_that_hangs_holds_up_no_other_that_is_analyzed_by_itself(spark, table, healthy, hanging, elsewhere):
    with conf(spark, spark__metastore__analyze__auto="background"):
        spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'p')")
    with conf(elsewhere, spark__metastore__analyze__auto="wait", spark__metastore__analyze__auto__timeout="1h"):
        write = Task(lambda: elsewhere.sql(f"INSERT INTO {healthy} VALUES (1, 'a', 'p')"))
        assert write.ends()
    assert write.error is None, write.error
    files = elsewhere.sql(f"SELECT analyzed FROM metastore.files('{healthy}')").collect()
    assert {row.analyzed for row in files} == {True}
