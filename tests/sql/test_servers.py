"""ANALYZE and summary where people run SQL: the shell, the Thrift server, Connect."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakes import EXTENSIONS, OURS
from metastore import jars
from processes.drivers import needs_proc, serving
from sql import policies, servers

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_proc]

SUMMARY = "SELECT column_name, min, max, count FROM metastore.summary('{t}') ORDER BY column_name"
CREATE = "CREATE TABLE {t} USING iceberg AS SELECT id, 's' || id AS s FROM range(10)"
ANALYZE = "ANALYZE TABLE {t} COMPUTE STATISTICS FOR ALL COLUMNS"
ESTIMATES = "SELECT 'COUNTED', max(rows) FROM metastore.estimates('SELECT * FROM {t} WHERE id < 7', analyze => true)"


SAMPLES = Path(__file__).parents[2] / "conf"


def sample(name: str) -> dict[str, str]:
    """The settings of a sample in `conf`."""
    lines = (SAMPLES / name).read_text("utf-8").splitlines()
    return dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))


@pytest.fixture
def server_conf(own_spark_conf, tmp_path):
    """The sample's settings for a server of its own, with its own catalog database and the jars that are here."""
    java = own_spark_conf["spark.driver.extraJavaOptions"].split(" -Dderby")[0]
    settings = sample("spark-defaults.conf")
    jar = jars.read_lock()["iceberg-4.1"]
    assert settings.pop("spark.jars.packages") == f"{jar.group}:{jar.artifact}:{jar.version}"
    return {
        **{key: value for key, value in own_spark_conf.items() if key != "spark.sql.catalog.spark_catalog"},
        **settings,
        "spark.sql.catalog.ice.warehouse": own_spark_conf["spark.sql.catalog.ice.warehouse"],
        "spark.driver.extraJavaOptions": f"{java} -Dderby.system.home={tmp_path}",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }


def test_the_samples_name_what_there_is():
    assert sample("spark-defaults.conf")["spark.sql.extensions"] == EXTENSIONS["iceberg"]
    assert sample("cluster.conf")["spark.sql.extensions"] == OURS


def test_the_sql_shell(server_conf, tmp_path):
    statements = [text.format(t="ice.db.shell") for text in (CREATE, ANALYZE, SUMMARY, "DROP TABLE {t}")]
    script = tmp_path / "script.sql"
    script.write_text("CREATE NAMESPACE IF NOT EXISTS ice.db;\n" + ";\n".join(statements) + ";\n")
    said = servers.run("spark-sql", "-f", str(script), conf=server_conf, folder=tmp_path)
    assert "id\t0\t9\t10" in said
    assert "s\ts0\ts9\t10" in said


def test_the_thrift_server(server_conf, tmp_path):
    port = servers.free_port()
    conf = {
        **server_conf,
        "spark.hive.server2.thrift.port": str(port),
        "spark.hive.server2.thrift.bind.host": "127.0.0.1",
    }
    statements = [text.format(t="ice.db.thrift") for text in (CREATE, ANALYZE, SUMMARY, ESTIMATES, "DROP TABLE {t}")]
    with serving("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", port, conf, tmp_path):
        script = tmp_path / "script.sql"
        script.write_text("CREATE NAMESPACE IF NOT EXISTS ice.db;\n" + ";\n".join(statements) + ";\n")
        address = f"jdbc:hive2://127.0.0.1:{port}/"
        said = servers.run("beeline", "--outputformat=csv2", "-u", address, "-f", str(script), folder=tmp_path)
    assert "id,0,9,10" in said
    assert "s,s0,s9,10" in said
    assert "COUNTED,7" in said


CLIENT = """
import socket, sys, threading, time
import metastore
from pyspark.sql import SparkSession
from pipeline.blocked import blocked, is_read
remote, table, names = sys.argv[1], sys.argv[2], sys.argv[3:]
builder = SparkSession.builder.remote(remote)
for pair in names:
    builder = builder.config(*pair.split("=", 1))
spark = builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db").collect()
spark.sql(f"CREATE TABLE {table} USING iceberg AS SELECT id, 's' || id AS s FROM range(10)").collect()
print("ANALYZED", spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()[0]["rows"])
query = "SELECT column_name, min, max, count FROM metastore.summary(:t) WHERE column_name = 'id'"
print("SUMMARY", *spark.sql(query, args={"t": table}).collect()[0])
query = "SELECT source, exact, matching_rows FROM metastore.estimates(:q) WHERE source IS NOT NULL"
print("ESTIMATED", *spark.sql(query, args={"q": f"SELECT * FROM {table} WHERE id < 7"}).collect()[0])
counted = [row["rows"] for row in metastore.estimates(spark, f"SELECT * FROM {table} WHERE id < 7", analyze=True)]
print("COUNTED", counted[0])
print("VERIFIED", {row["state"] for row in metastore.verify(spark, table)}, len(metastore.gc(spark, table)))
print("REPORTED", metastore.report(spark, table).columns)
keys = spark.createDataFrame([(3,), (99,)], "id bigint")
print("LOCATED", [row["id"] for row in metastore.locate(spark, table, "id", keys).collect()])
print("SOURCE", spark.read.format("metastore").option("table", table).load().count())
for mistake in ("summary('ice.db.nope')", "sumary('{}')", "summary(tabel => '{}')", "histogram('{}', 'idd')"):
    try:
        spark.sql(f"SELECT * FROM metastore.{mistake.format(table)}").collect()
    except Exception as error:
        print("ERROR", type(error).__name__, error)
"""
CANCEL = """
before = {row[0] for row in spark.sql(f"SELECT file_path FROM {table}.files").collect()}
spark.sql(f"INSERT INTO {table} VALUES (10, 's10')").collect()
(new,) = {row[0] for row in spark.sql(f"SELECT file_path FROM {table}.files").collect()} - before
with blocked(new):
    timer = threading.Timer(10, spark.interruptAll)
    timer.start()
    start = time.monotonic()
    try:
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
    except Exception as error:
        print("CANCELLED", "OPERATION_CANCELED" in str(error), time.monotonic() - start < 60)
    timer.join()
    assert not is_read(new)
with socket.create_server(("127.0.0.1", 0)) as silent:
    spark.conf.set("spark.metastore.store", f"webhdfs://127.0.0.1:{silent.getsockname()[1]}/statistics")
    spark.conf.set("spark.metastore.read.timeout", "1h")
    timer = threading.Timer(5, spark.interruptAll)
    timer.start()
    try:
        spark.sql(f"SELECT * FROM metastore.summary('{table}')").collect()
    except Exception as error:
        print("READ CANCELLED", "OPERATION_CANCELED" in str(error))
    timer.join()
    spark.conf.unset("spark.metastore.store")
timer = threading.Timer(5, spark.interruptAll)
timer.start()
try:
    endless = "SELECT sum(id % 7) FROM range(100000000000000)"
    spark.sql(f"SELECT * FROM metastore.estimates('{endless}', analyze => true)").collect()
except Exception as error:
    print("RUN CANCELLED", "OPERATION_CANCELED" in str(error))
timer.join()
print("AGAIN", spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()[0]["files_read"])
"""
END = """
spark.sql(f"DROP TABLE {table}").collect()
spark.stop()
"""


def client(script, remote, table, folder, conf):
    command = [sys.executable, "-c", script, remote, table, *(f"{name}={value}" for name, value in conf.items())]
    done = subprocess.run(
        command,
        env={**servers.environment(), "PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=servers.LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def connect_server(conf, folder):
    """The address of a Connect server."""
    port = servers.free_port()
    bound = {"spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": "127.0.0.1"}
    with serving("org.apache.spark.sql.connect.service.SparkConnectServer", port, {**conf, **bound}, folder):
        yield f"sc://127.0.0.1:{port}"


def check(said):
    assert "ANALYZED 10" in said
    assert "SUMMARY id 0 9 10" in said
    assert "VERIFIED {'ok'} 0" in said
    assert "ESTIMATED value counts True 7" in said
    assert "\nCOUNTED 7\n" in said
    assert "REPORTED 2" in said
    assert "LOCATED [3]" in said
    assert "SOURCE 2" in said
    for line in (
        "[METASTORE_TABLE_NOT_FOUND] There is no table ice.db.nope.",
        "[METASTORE_INVALID_ARGUMENT] metastore.sumary: there is no such table function. Did you mean",
        "[METASTORE_INVALID_ARGUMENT] metastore.summary: there is no argument tabel. Did you mean table?",
        "[METASTORE_COLUMN_NOT_FOUND] ice.db.connect",
    ):
        assert f"ERROR AnalysisException {line}" in said
    assert "\tat " not in said  # no stack of the server's


def test_a_local_connect_session(server_conf, tmp_path):
    conf = {name: value for name, value in server_conf.items() if name != "spark.master"}
    check(client(CLIENT + END, "local[2]", "ice.db.connect_local", tmp_path, conf))


def test_a_connect_server(server_conf, tmp_path):
    with connect_server(server_conf, tmp_path) as remote:
        said = client(CLIENT + CANCEL + END, remote, "ice.db.connect", tmp_path, {})
    check(said)
    assert "\nCANCELLED True True" in said
    assert "READ CANCELLED True" in said
    assert "RUN CANCELLED True" in said
    assert "AGAIN 1" in said


GUARDED = """
import re, sys
from pyspark.sql import SparkSession
from sql.test_permissions import COLUMNS, ENTRIES, ROW, TOLD
remote, table = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg").collect()
spark.sql(f"INSERT INTO {table} SELECT {ROW} FROM range(100)").collect()
spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS").collect()
for policy in (None, "optimizer mask", "resolution mask", "strategy filter", "check refuse"):
    if policy:
        spark.conf.set("tests.policy", policy)
    for name, ask in ENTRIES.items():
        if name.endswith("TABLE"):  # the command line starts a Spark of its own
            continue
        try:
            ask(spark, table)
            print("LET IN", policy, name)
        except Exception as error:
            print("REFUSED" if re.search(TOLD, str(error)) else f"FAILED {str(error).splitlines()[0]}", policy, name)
"""


def test_policies_hold_for_the_clients_of_a_connect_server(spark, server_conf, tmp_path):
    jar = policies.jar_with_rule(spark, tmp_path)
    conf = {
        **server_conf,
        "spark.sql.extensions": f"{EXTENSIONS['iceberg']},{policies.EXTENSION}",
        "spark.driver.extraClassPath": str(jar),
    }
    with connect_server(conf, tmp_path) as remote:
        said = client(GUARDED, remote, "ice.secrets", tmp_path, {})
    lines = said.splitlines()
    assert lines
    assert [line for line in lines if not line.startswith("LET IN None" if " None " in line else "REFUSED")] == []


BESIDE_DELTA = """
import sys
from pyspark.sql import SparkSession
remote, table = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
for start in (0, 100, 200):
    how = "CREATE TABLE {} USING delta AS" if start == 0 else "INSERT INTO {}"
    spark.sql(f"{how.format(table)} SELECT id, 's' || id AS s FROM range({start}, {start + 100}, 1, 1)").collect()
spark.sql("ANALYZE TABLE IDENTIFIER(:t) COMPUTE STATISTICS FOR ALL COLUMNS", args={"t": table}).collect()
print("NAMED", spark.sql(f"SELECT s FROM {table} WHERE id = :x", args={"x": 107}).collect()[0].s)
print("PLACED", spark.sql(f"SELECT count(*) FROM {table} WHERE id < ? OR s = ?", args=[10, "s250"]).collect()[0][0])
query = "SELECT kept FROM metastore.explain(:q)"
asked = {"q": f"SELECT * FROM {table} WHERE s = 's107'"}
print("KEPT", sorted(row.kept for row in spark.sql(query, args=asked).collect()))
query = "SELECT column_name, min, max, count FROM metastore.summary(:t) WHERE column_name = :c"
print("SUMMARY", *spark.sql(query, args={"t": table, "c": "id"}).collect()[0])
"""


@pytest.mark.campaign
def test_parameters_over_a_connect_server_beside_delta(server_conf, own_spark_conf, tmp_path):
    """Delta's parser drops them: ours gives them back to Spark."""
    catalog = "spark.sql.catalog.spark_catalog"
    conf = {
        **server_conf,
        catalog: own_spark_conf[catalog],
        "spark.sql.extensions": EXTENSIONS["delta"],
    }
    with connect_server(conf, tmp_path) as remote:
        said = client(BESIDE_DELTA, remote, "connect_delta", tmp_path, {})
    assert "NAMED s107" in said
    assert "PLACED 11" in said
    assert "KEPT [False, False, True]" in said
    assert "SUMMARY id 0 299 300" in said
