"""The answers of the table functions."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import AnalysisException

import metastore
from lakes import FORMATS
from metastore.configuration import resolve
from metastore.contract import read_contract
from metastore.errors import InvalidArgument, TableNotFound, UnsupportedTable
from planner.plans import conf
from pruning.scala import items, module

pytestmark = pytest.mark.spark

CALLS = (
    *("summary('{t}')", "frequencies('{t}', 'id')", "histogram('{t}', 'id')", "quantiles('{t}', 'id')"),
    *(
        "locate('{t}', 'id', 5)",
        "files('{t}')",
        "columns('{t}')",
        "layout('{t}')",
        "filtered_summary('SELECT * FROM {t}')",
        "explain('SELECT * FROM {t}')",
        "whatif('SELECT * FROM {t}', sorted_by => 'id')",
    ),
    *(
        "estimates('SELECT * FROM {t}')",
        "history('{t}')",
        "snapshots('{t}')",
        "diff('{t}', 'main')",
        "tables('ice.db')",
        "settings()",
        "help()",
        "version()",
    ),
)
COLUMNS = {
    function["name"]: ", ".join(function["columns"]).lower() for function in read_contract("functions")["functions"]
}


@pytest.mark.parametrize("call", CALLS)
def test_columns_and_types_are_as_promised(spark, analyzed, call):
    with conf(spark, spark__metastore__history__enabled="true"):
        schema = spark.sql(f"SELECT * FROM metastore.{call.format(t=analyzed)}").schema
    declared = re.sub(r"(map<\w+), ", r"\1,", COLUMNS[call.partition("(")[0]])
    assert ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in schema) == declared


def test_summary_has_a_row_for_every_leaf(spark, analyzed):
    rows = {row["column_name"]: row for row in spark.sql(f"SELECT * FROM metastore.summary('{analyzed}')").collect()}
    assert list(rows) == ["id", "s", "n.a", "n.`b.c`", "l", "p"]
    id_summary = rows["id"]
    assert (id_summary["min"], id_summary["max"], id_summary["count"], id_summary["approx_unique"]) == (
        "0",
        "99",
        100,
        100,
    )
    assert (id_summary["q25"], id_summary["q50"], id_summary["q75"]) == ("24", "49", "74")
    assert id_summary["avg"] == pytest.approx(49.5)
    assert id_summary["std"] == pytest.approx(29.011492, rel=1e-6)
    assert (id_summary["null_count"], id_summary["null_percentage"], id_summary["exact"], id_summary["current"]) == (
        0,
        0.0,
        True,
        True,
    )
    assert (id_summary["files"], id_summary["files_total"]) == (2, 2)
    assert rows["n.`b.c`"]["max"] == "49.500000" or rows["n.`b.c`"]["max"] == "49.5"
    assert (rows["l"]["min"], rows["l"]["count"], rows["l"]["null_count"]) == (None, 100, 0)


def test_summary_takes_arguments_by_position_name_and_parameter(spark, analyzed):
    snapshot = spark.sql(f"SELECT snapshot FROM metastore.snapshots('{analyzed}')").collect()[0][0]
    calls = [
        (f"metastore.summary('{analyzed}', NULL, {snapshot})", {}),
        (f"metastore.summary(table => '{analyzed}', at => '{snapshot}')", {}),
        ("metastore.summary(at => current_timestamp(), table => concat(:c, '.db.sql_analyzed'))", {"c": "ice"}),
        ("metastore_summary(:t)", {"t": analyzed}),
        ("metastore.summary('ice.`db`.`sql_analyzed`', at => 'main')", {}),
    ]
    for call, arguments in calls:
        assert spark.sql(f"SELECT * FROM {call}", args=arguments).count() == 6, call


def test_names_are_resolved_as_the_session_resolves_them(spark, analyzed):
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW sql_view AS SELECT * FROM {analyzed}")
    spark.sql("USE ice.db")
    try:
        assert spark.sql("SELECT * FROM metastore.summary('sql_analyzed')").count() == 6
        assert spark.sql("SELECT * FROM metastore.summary('db.sql_analyzed')").count() == 6
        assert "sql_analyzed" in [
            row["table"].split(".")[-1] for row in spark.sql("SELECT * FROM metastore.tables()").collect()
        ]
    finally:
        spark.sql("USE spark_catalog.default")
    with pytest.raises(Exception, match=r"^\[METASTORE_UNSUPPORTED_TABLE\] sql_view .*view"):
        spark.sql("SELECT * FROM metastore.summary('sql_view')")


@pytest.mark.parametrize("ansi", [True, False])
def test_values_are_shown_as_cast_shows_them(spark, ansi):
    spark.sql("CREATE OR REPLACE TABLE ice.db.sql_shown (n DECIMAL(38, 10), m DECIMAL(9, 8)) USING iceberg")
    spark.sql("INSERT INTO ice.db.sql_shown VALUES (0, 0.00000001)")
    spark.sql("ANALYZE TABLE ice.db.sql_shown COMPUTE STATISTICS FOR ALL COLUMNS")
    with conf(spark, spark__sql__ansi__enabled=ansi):
        cast = spark.sql("SELECT CAST(n AS STRING), CAST(m AS STRING) FROM ice.db.sql_shown").first()
        rows = spark.sql("SELECT min, max, top_value FROM metastore.summary('ice.db.sql_shown')").collect()
    spark.sql("DROP TABLE ice.db.sql_shown")
    assert [tuple(row) for row in rows] == [(text,) * 3 for text in cast]


def test_one_file_has_its_own_summary(spark, analyzed):
    path = spark.sql(f"SELECT path FROM metastore.files('{analyzed}') WHERE partition['p'] = 'p1'").collect()[0][0]
    rows = spark.sql(f"SELECT * FROM metastore.summary('{analyzed}', file => :f)", args={"f": path}).collect()
    row = rows[0]
    assert (row["min"], row["max"], row["count"], row["files"]) == ("1", "99", 50, 1)
    assert spark.sql(f"SELECT * FROM metastore.columns('{analyzed}', 'ID') WHERE path = '{path}'").count() == 1


def test_an_older_analyzed_snapshot_answers_for_its_descendants(spark, table):
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'x')")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'b', 'y')")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN s TO text")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN extra INT")
    rows = {row["column_name"]: row for row in spark.sql(f"SELECT * FROM metastore.summary('{table}')").collect()}
    assert list(rows) == ["id", "text", "p", "extra"]
    assert (rows["text"]["max"], rows["text"]["current"], rows["text"]["count"]) == ("a", False, 1)
    assert (rows["extra"]["max"], rows["extra"]["files"]) == (None, 0)
    analyzed = [row["analyzed"] for row in spark.sql(f"SELECT * FROM metastore.files('{table}')").collect()]
    assert sorted(analyzed) == [False, True]


def test_a_value_is_the_most_frequent_only_where_none_left_out_is_more_so(spark, table):
    long = "IF(id % 100 < 81, repeat(cast(id DIV 100 AS STRING), 5000), 'short')"  # 81 times each, and 'short' 38
    spark.sql(f"INSERT INTO {table} SELECT id, {long}, 'x' FROM range(1, 201, 1, 1)")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    location = spark.sql(f"SELECT location FROM metastore.tables('ice.db') WHERE table = '{table}'").first()[0]
    by_sql = spark.sql(f"SELECT * FROM metastore.summary('{table}')").collect()
    for rows in (by_sql, metastore.open(location).summary()):
        top_values = {row["column_name"]: (row["top_value"], row["top_count"]) for row in rows}
        assert top_values["s"] == (None, None)
        assert top_values["p"] == ("x", 200)


def test_columns_analyzed_counts_columns_that_the_table_has(spark, table):
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'x')")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS id, s")
    query = f"SELECT columns_analyzed FROM metastore.files('{table}')"
    assert spark.sql(query).first()[0] == 2
    spark.sql(f"ALTER TABLE {table} DROP COLUMN s")
    assert spark.sql(query).first()[0] == 1


def test_an_analyzed_empty_table_has_a_count_of_zero_and_nulls(spark, table):
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    rows = spark.sql(f"SELECT * FROM metastore.summary('{table}')").collect()
    assert [(row["count"], row["min"], row["null_percentage"], row["current"]) for row in rows] == [
        (0, None, None, True)
    ] * 3
    for function in ("frequencies", "histogram"):
        assert spark.sql(f"SELECT * FROM metastore.{function}('{table}', 'id')").count() == 0
    quantiles = spark.sql(f"SELECT * FROM metastore.quantiles('{table}', 's', '0.5,1')").collect()
    assert [tuple(row) for row in quantiles] == [(0.5, None, True, 0.0), (1.0, None, True, 0.0)]


def test_quantiles_of_long_texts_are_not_exact(spark, table):
    spark.sql(f"INSERT INTO {table} SELECT id, repeat('x', 70) || id, 'y' FROM range(9)")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    rows = spark.sql(f"SELECT * FROM metastore.quantiles('{table}', 's', '0,0.5,1')").collect()
    assert [(row.value[-1], row.exact) for row in rows] == [("…", False)] * 3
    location = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Location'").first().data_type
    here = metastore.open(location).quantiles("s", [0, 0.5, 1])
    assert [tuple(row.values()) for row in here] == [tuple(row) for row in rows]


def test_without_statistics_nothing_is_answered(spark, table):
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'x')")
    for function in ("summary", "columns"):
        with pytest.raises(Exception, match=rf"^\[METASTORE_NO_STATISTICS\] {table} .* ANALYZE TABLE {table} COMPUTE"):
            spark.sql(f"SELECT * FROM metastore.{function}('{table}')")
    assert spark.sql(f"SELECT * FROM metastore.files('{table}') WHERE NOT analyzed").count() == 1
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS NOSCAN")
    with pytest.raises(Exception, match="METASTORE_NO_STATISTICS"):
        spark.sql(f"SELECT * FROM metastore.summary('{table}')")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("summary('ice.db.nope')", "[METASTORE_TABLE_NOT_FOUND] There is no table ice.db.nope. Known: {names}."),
        (
            "summary('ice.db.sql_analyzd')",
            "[METASTORE_TABLE_NOT_FOUND] There is no table ice.db.sql_analyzd. Did you mean ice.db.sql_analyzed?",
        ),
        (
            "summary('nocat.db.t')",
            (
                "[METASTORE_TABLE_NOT_FOUND] There is no table nocat.db.t. "
                "There is no catalog nocat. Known: ice, spark_catalog. "
                "A catalog is configured by spark.sql.catalog.nocat = <its class>, in a shell by --conf."
            ),
        ),
        (
            "summary('a.b.c.d.e')",
            (
                "[METASTORE_TABLE_NOT_FOUND] There is no table a.b.c.d.e. "
                "There is no catalog a. Known: ice, spark_catalog. "
                "A catalog is configured by spark.sql.catalog.a = <its class>, in a shell by --conf."
            ),
        ),
        ("summary('delta.`/no/where`')", "[METASTORE_TABLE_NOT_FOUND] There is no table delta.`/no/where`."),
        (
            "tables('ice.dbb')",
            "[METASTORE_INVALID_ARGUMENT] database: there is no database ice.dbb. Did you mean ice.db?",
        ),
        (
            "summary('hudi.`/no/at`')",
            "[METASTORE_TABLE_NOT_FOUND] There is no table hudi.`/no/at`."
            if "hudi" in FORMATS
            else "[METASTORE_UNSUPPORTED_TABLE] hudi.`/no/at` is not supported: "
            "this Spark does not have the format hudi.",
        ),
        (
            "tables('nope')",
            ("[METASTORE_INVALID_ARGUMENT] database: there is no database spark_catalog.nope. Known: {databases}."),
        ),
        ("tables('a b')", "[METASTORE_INVALID_ARGUMENT] database: 'a b' is not the name of a database."),
        (
            "summary('/w/t')",
            (
                "[METASTORE_INVALID_ARGUMENT] table: '/w/t' is not the name of a table. A path is asked about as "
                "delta.`/w/t`, hudi.`/w/t` or parquet.`/w/t`, an Iceberg table by the name in its catalog; "
                "without Spark: metastore.open('/w/t') in Python, metastore summary /w/t in a shell."
            ),
        ),
        ("summary('a b')", "[METASTORE_INVALID_ARGUMENT] table: 'a b' is not the name of a table."),
        ("summary('{t}.files')", "[METASTORE_UNSUPPORTED_TABLE] {t}.files is not supported: it is a metadata table."),
        ("summary('{t}', at => 12)", "[METASTORE_INVALID_ARGUMENT] at: {t} has no snapshot 12. {snapshots}"),
        (
            "summary('{t}', at => '2020-01-01')",
            "[METASTORE_INVALID_ARGUMENT] at: {t} has no snapshot 2020-01-01. {snapshots}",
        ),
        ("diff('{t}', 12)", "[METASTORE_INVALID_ARGUMENT] from: {t} has no snapshot 12. {snapshots}"),
        (
            "summary({t})",
            "[METASTORE_INVALID_ARGUMENT] metastore.summary: {t} is no text. Name it as one: metastore.summary('{t}').",
        ),
        (
            "files(table => {t})",
            "[METASTORE_INVALID_ARGUMENT] metastore.files: {t} is no text. Name it as one: metastore.files('{t}').",
        ),
        ("columns('{t}', 'idd')", "[METASTORE_COLUMN_NOT_FOUND] {t} has no column 'idd'. Did you mean id?"),
        (
            "columns('{t}', '5')",
            "[METASTORE_COLUMN_NOT_FOUND] {t} has no column '5'. Known: id, s, n.a, n.`b.c`, l and 1 more.",
        ),
        (
            "frequencies('{t}', 'N')",
            "[METASTORE_INVALID_ARGUMENT] column: N is a struct. Name a field of it, such as n.a.",
        ),
        ("frequencies('{t}', 's', 2.5)", "[METASTORE_INVALID_ARGUMENT] top: 2.5 is not a positive whole number."),
        ("histogram('{t}', 's', '2.5')", "[METASTORE_INVALID_ARGUMENT] bins: 2.5 is not a positive whole number."),
        (
            "quantiles('{t}', 's', array(0.5, 1.5))",
            "[METASTORE_INVALID_ARGUMENT] probabilities: 1.5 is not a number from 0 to 1.",
        ),
        ("summary()", "[METASTORE_INVALID_ARGUMENT] metastore.summary: the argument table is missing."),
        ("version(1)", "[METASTORE_INVALID_ARGUMENT] metastore.version: takes at most 0 arguments, not 1."),
        (
            "summary(tabel => 'x')",
            "[METASTORE_INVALID_ARGUMENT] metastore.summary: there is no argument tabel. Did you mean table?",
        ),
        (
            "summary('x', 'y', of => 'z')",
            "[METASTORE_INVALID_ARGUMENT] metastore.summary: there is no argument of. Known: table, file, at.",
        ),
        ("summary('x', table => 'y')", "[METASTORE_INVALID_ARGUMENT] metastore.summary: table is given twice."),
        (
            "sumary('{t}')",
            (
                "[METASTORE_INVALID_ARGUMENT] metastore.sumary: there is no such table function. "
                "Did you mean metastore.summary?"
            ),
        ),
    ],
)
def test_mistakes_get_one_line(spark, analyzed, call, text):
    session = spark.newSession()  # without the catalogs that Iceberg sets where a path is loaded
    with pytest.raises(AnalysisException) as caught:
        session.sql(f"SELECT * FROM metastore.{call.format(t=analyzed)}")
    (snapshot,) = spark.sql(f"SELECT snapshot FROM metastore.snapshots('{analyzed}')").first()
    expected = text.format(
        t=analyzed,
        snapshots=f"Analyzed: {snapshot}. A snapshot is named by its id or version, a branch or tag, "
        "or an instant such as '2026-01-31 12:00:00'.",
        names=list_names("ice.db.", [row.tableName for row in spark.sql("SHOW TABLES IN ice.db").collect()]),
        databases=list_names(
            "spark_catalog.", [row[0] for row in spark.sql("SHOW DATABASES IN spark_catalog").collect()]
        ),
    )
    assert str(caught.value).split("\n")[0] == expected


def list_names(within: str, names: list[str]) -> str:
    """How an error lists what there is."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(within + name for name in sorted(names)[:5]) + more


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("nowhere_to_be_found", "<database>.nowhere_to_be_found"),
        ("`nowhere to be found`", "<database>.`nowhere to be found`"),
        ("default.nowhere_to_be_found", "default.nowhere_to_be_found"),
        ("ice.db.nowhere_to_be_found", None),
        ("global_temp.nowhere_to_be_found", None),
    ],
)
def test_a_hint_says_how_a_table_of_another_catalog_is_named(spark, name, example):
    statements = [
        lambda: spark.sql(f"SELECT * FROM metastore.summary('{name}')"),
        lambda: metastore.summary(spark, name),
        lambda: metastore.analyze(spark, name, progress=False),
        lambda: metastore.verify(spark, name),
    ]
    for ask in statements:
        with pytest.raises(Exception, match="METASTORE_TABLE_NOT_FOUND") as raised:
            ask()
        hint = rf"A table of another catalog has its name before it: \w+\.{re.escape(example or '')}\."
        assert bool(re.search(hint, str(raised.value))) == (example is not None)
        assert ("another catalog" in str(raised.value)) == (example is not None)


def test_misspelt_functions_of_one_part_are_named_and_those_of_users_are_theirs(spark, analyzed):
    for call in ("metastore_sumary('{t}')", "Metastore_Histogramm('{t}', 'id')"):
        with pytest.raises(AnalysisException, match=r"there is no such table function\. Did you mean metastore\."):
            spark.sql(f"SELECT * FROM {call.format(t=analyzed)}")
    with pytest.raises(AnalysisException, match="metastore_backup"):
        spark.sql("SELECT * FROM metastore_backup(1)")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW metastore_file AS SELECT 1 AS metastore_sumary")
    assert spark.sql("SELECT metastore_sumary FROM metastore_file").first()[0] == 1


def test_variables_that_are_near_to_settings_are_named(spark):
    environment_values = {
        "METASTORE_CBO_ENABLE": "1",
        "METASTORE_CBO_ENABLED": "1",
        "METASTORE_PORT": "9083",
        "CBO_ENABLE": "1",
    }
    environment = spark._jvm.PythonUtils.toScalaMap(environment_values)
    (misspelt,) = items(module(spark, "org.metastore.spark.conf.MetastoreConf").findMisspelt(environment))
    assert (misspelt._1(), misspelt._2(), misspelt._3()) == ("METASTORE_CBO_ENABLE", "1", "environment")
    assert misspelt._4() == " Did you mean METASTORE_CBO_ENABLED?"


def test_mistakes_in_python_are_those_of_sql(spark, analyzed):
    with pytest.raises(InvalidArgument, match=r"no database ice\.nope"):
        metastore.tables(spark, "ice.nope")
    with pytest.raises(UnsupportedTable, match="it is a metadata table"):
        metastore.analyze(spark, f"{analyzed}.files")
    with pytest.raises(TableNotFound):
        metastore.analyze(spark, "delta.`/no/where`")
    with pytest.raises(TableNotFound, match=r"table `/a/b`\. A path is asked about as delta\.`/a/b`, hudi"):
        metastore.analyze(spark, "/a/b")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ice.nodb.t", "There is no database ice.nodb. Known: ice."),
        ("ice.dbb.t", "There is no database ice.dbb. Did you mean ice.db?"),
        ("defalt.t", "There is no database defalt. Did you mean default?"),
        ("ic.db.t", "There is no catalog ic. Did you mean ice?"),
        ("ice.db", ""),
    ],
)
def test_the_part_of_a_name_that_is_unknown_is_named(spark, name, says):
    message = f"[METASTORE_TABLE_NOT_FOUND] There is no table {name}. {says}".rstrip()
    with pytest.raises(AnalysisException) as in_sql:
        spark.sql(f"SELECT * FROM metastore.summary('{name}')")
    assert str(in_sql.value).startswith(message)
    with pytest.raises(TableNotFound) as in_python:
        metastore.analyze(spark, name, progress=False)
    assert str(in_python.value).startswith(message)


@pytest.mark.parametrize(
    ("kind", "name", "counts_deleted"),
    [
        ("iceberg", "ice.db.deleted_in_bins", "'write.delete.mode' = 'merge-on-read', 'format-version' = '2'"),
        ("delta", "deleted_in_bins", "'delta.enableDeletionVectors' = 'true'"),
    ],
)
def test_histograms_say_where_they_count_deleted_rows(spark, kind, name, counts_deleted):
    spark.sql(f"CREATE TABLE {name} (id BIGINT) USING {kind} TBLPROPERTIES ({counts_deleted})")
    try:
        spark.sql(f"INSERT INTO {name} SELECT id FROM range(0, 1000, 1, 2)")
        metastore.analyze(spark, name, progress=False)
        assert {row["exact"] for row in metastore.histogram(spark, name, "id", 4)} == {True}
        spark.sql(f"DELETE FROM {name} WHERE id % 10 < 6")
        assert {row["exact"] for row in metastore.histogram(spark, name, "id", 4)} == {False}
        metastore.analyze(spark, name, progress=False)
        assert {row["exact"] for row in metastore.histogram(spark, name, "id", 4)} == {False}
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_arguments_must_be_constants(spark):
    with pytest.raises(Exception, match=r"^\[METASTORE_INVALID_ARGUMENT\] .* must be a constant"):
        spark.sql("SELECT * FROM VALUES ('x') AS t(c), LATERAL metastore.summary(t.c)")


def test_settings_are_those_of_the_python_registry(spark):
    spark.conf.set("spark.metastore.histogram.bins", "77")
    try:
        settings = {row["name"]: row for row in spark.sql("SELECT * FROM metastore.settings()").collect()}
    finally:
        spark.conf.unset("spark.metastore.histogram.bins")
    assert set(settings) == {setting.setting.key for setting in resolve()}
    assert settings["spark.metastore.histogram.bins"][1:3] == ("77", "spark")
    assert {name: row["default"] for name, row in settings.items()} == {
        setting.setting.key: setting.setting.default for setting in resolve()
    }


def test_help_lists_every_function(spark):
    functions = {row["function"]: row for row in spark.sql("SELECT * FROM metastore.help()").collect()}
    assert {f"metastore.{call.split('(')[0]}" for call in CALLS} == set(functions)
    assert functions["metastore.summary"]["arguments"] == "table [, file] [, at]"
