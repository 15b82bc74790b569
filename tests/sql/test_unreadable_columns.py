"""Tables with columns that Spark has no type for: every verb names the columns."""

from __future__ import annotations

import inspect
import re
import shutil
from datetime import time
from pathlib import Path

import pyarrow as pa
import pytest
import typer

import metastore
from lakes import SPARK
from metastore.cli.app import app
from metastore.contract import read_contract
from metastore.errors import UnsupportedTable
from nightly import others_nightly
from sql.shell import run_in_session

pytestmark = pytest.mark.spark

NAMED = r"Spark cannot read its `?t`? of type time, `?st`?\.`?t`? of type time"
QUERY = "SELECT id FROM {t} WHERE id = 1"
ANALYZES = (
    "ANALYZE TABLE {t} COMPUTE STATISTICS",
    "ANALYZE TABLE {t} COMPUTE STATISTICS NOSCAN",
    "ANALYZE TABLE {t} PARTITION (id = 1) COMPUTE STATISTICS",
    "ANALYZE TABLE {t} COMPUTE STATISTICS FOR ALL COLUMNS",
    "ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS id",
)
ASKS_QUERIES = "history"
"""It lists queries that have ended: no table is looked up."""
READS_LOCATIONS = {"open", "prune"}
"""They are given a location, not a table, and ask no Spark which types it has."""
FUNCTIONS = {
    function["name"]: [argument["name"] for argument in function["arguments"] if argument["required"]]
    for function in read_contract("functions")["functions"]
    if function["name"] != ASKS_QUERIES
}
ARGUMENTS = {"table": "'{t}'", "query": f"'{QUERY}'", "column": "'id'", "value": "1", "from": "'main'"}
"""An argument of each name in SQL."""
MORE = {"whatif": ", sorted_by => 'id'"}
"""Of arguments that are not required, one that has to be given."""


def about_tables(verbs: dict[str, list[str]], *names: str) -> list[str]:
    """The verbs that are given the name of a table, or a query of one."""
    return [verb for verb, parameters in verbs.items() if set(names).intersection(parameters)]


def make_by_iceberg(spark, name: str, warehouse: Path, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE {name} (id INT, st STRUCT<a: INT>) USING iceberg")
    java = spark._jvm.org.apache.iceberg
    kind = java.types.Types.TimeType.get()
    change = java.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name).updateSchema()
    change.addColumn("t", kind).addColumn("st", "t", kind).moveFirst("t").commit()


def make_by_pyiceberg(spark, name: str, warehouse: Path, tmp_path: Path) -> None:
    """A table with a row, where a catalog of Hadoop finds it."""
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = catalogs.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    _, namespace, table = name.split(".")
    catalog.create_namespace(namespace)
    noon = pa.array([time(12)], pa.time64("us"))
    struct = pa.StructArray.from_arrays([pa.array([2], pa.int32()), noon], ["a", "t"])
    rows = pa.table({"t": noon, "id": pa.array([1], pa.int32()), "st": struct})
    written = catalog.create_table(
        f"{namespace}.{table}", rows.schema, location=(warehouse / namespace / table).as_uri()
    )
    written.append(rows)
    metadata = Path(written.metadata_location.removeprefix("file://"))
    shutil.copy(metadata, metadata.with_name("v1.metadata.json"))
    metadata.with_name("version-hint.text").write_text("1")


@pytest.fixture(
    scope="module", params=others_nightly([make_by_pyiceberg, make_by_iceberg]), ids=["pyiceberg", "iceberg"]
)
def table(request, spark, warehouse, tmp_path_factory):
    """A table with two columns of the type `time`, alone in its namespace."""
    namespace = f"unreadable_{request.param_index}"
    request.param(spark, f"ice.{namespace}.times", warehouse, tmp_path_factory.mktemp("times"))
    yield f"ice.{namespace}.times"
    shutil.rmtree(warehouse / namespace)


def check(message: str) -> None:
    assert re.search(NAMED, message), message
    assert "METASTORE_UNSUPPORTED_TABLE" in message
    assert "ACCESS_DENIED" not in message


def says(ask, *arguments: object, **options: object) -> str:
    """What a call says that fails."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - of several classes: `check` looks at it
        ask(*arguments, **options)
    return str(raised.value)


@pytest.mark.parametrize("statement", ANALYZES)
def test_analyze_names_the_columns(spark, table, statement):
    check(says(spark.sql, statement.format(t=table)))


def test_analyze_of_a_namespace_names_the_columns(spark, table):
    (row,) = spark.sql(f"ANALYZE TABLES IN {table.rpartition('.')[0]} COMPUTE STATISTICS").collect()
    check(str(row))


@pytest.mark.parametrize("function", about_tables(FUNCTIONS, "table", "query"))
def test_functions_of_sql_name_the_columns(spark, table, function):
    arguments = ", ".join(ARGUMENTS[name] for name in FUNCTIONS[function]) + MORE.get(function, "")
    call = f"SELECT * FROM metastore_{function}({arguments.format(t=table)})"
    check(says(lambda: spark.sql(call).collect()))


PYTHON = {
    name: list(inspect.signature(getattr(metastore, name)).parameters)
    for name in metastore.__all__
    if inspect.isfunction(getattr(metastore, name)) and name not in {ASKS_QUERIES, *READS_LOCATIONS}
}


@pytest.mark.parametrize("function", about_tables(PYTHON, "table", "query"))
def test_functions_of_python_name_the_columns(spark, table, function):
    keys = spark.createDataFrame([(1,)], "id INT")
    values = {"spark": spark, "where": spark, "table": table, "query": QUERY.format(t=table), "keys": keys}
    values |= {"column": "id", "before": "main", "from_": "main"}
    parameters = inspect.signature(getattr(metastore, function)).parameters
    required = {name for name, parameter in parameters.items() if parameter.default is parameter.empty}
    given = {name: values[name] for name in parameters if name in required & values.keys() or name == "table"}
    if function == "locate":
        given["columns"] = "id"
    if function == "whatif":
        given["sorted_by"] = "id"
    with pytest.raises(UnsupportedTable) as raised:
        getattr(metastore, function)(**given)
    check(str(raised.value))


COMMANDS = {
    name: [parameter.name for parameter in command.params if parameter.param_type_name == "argument"]
    for name, command in typer.main.get_command(app).commands.items()
    if name not in READS_LOCATIONS
}
WORDS = {"table": "{t}", "where": "{t}", "query": QUERY, "column": "id", "value": "1", "before": "main"}
"""An argument of each name in a shell."""


@pytest.mark.parametrize("command", about_tables(COMMANDS, "table", "where", "query"))
def test_commands_name_the_columns(spark, table, command):
    words = [WORDS[name].format(t=table) for name in COMMANDS[command] if name in WORDS]
    options = ["--sorted-by", "id"] if command == "whatif" else []
    check(says(run_in_session, spark, command, *words, *options))


@pytest.mark.skipif(SPARK == "3.5", reason="it has no data sources in Python")
@pytest.mark.parametrize("view", [view["name"] for view in read_contract("functions")["views"]])
def test_views_of_the_data_source_name_the_columns(spark, table, view):
    check(says(lambda: spark.read.format("metastore").option("view", view).load(table).collect()))


def test_all_verbs_are_asked():
    """A verb that is given a table under another name of its argument would be left out silently."""
    assert {"summary", "facts", "filter", "whatif"} <= set(about_tables(FUNCTIONS, "table", "query"))
    other = {name for name in PYTHON if name not in about_tables(PYTHON, "table", "query")}
    assert other == {"configure", "settings", "statistic", "tables", "version"}
    other = {name for name in COMMANDS if name not in about_tables(COMMANDS, "table", "where", "query")}
    assert other == {"demo", "tables", "doctor", "config", "jar", "version"}
