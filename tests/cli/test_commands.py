"""The commands in this process: what they print, on which channel, and with which exit code."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import nullcontext

import pytest
import typer
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException

import metastore
from metastore import jars
from metastore.cli.options import LocalSpark
from metastore.cli.output import open_output
from metastore.errors import InvalidArgument, TableNotFound
from reading.stores import metadata


def test_help_names_every_verb(run):
    help_text = run("--help").stdout
    for verb in (
        "demo",
        "analyze",
        "summary",
        "files",
        "columns",
        "snapshots",
        "tables",
        "explain",
        "estimates",
        "whatif",
        "doctor",
        "jar",
    ):
        assert re.search(rf"^  {verb} ", help_text, re.MULTILINE), verb
    assert "3 the answer is stale, or" in help_text


def test_summary_in_a_pipe_is_plain_and_complete(run, location):
    done = run("summary", location)
    lines = done.stdout.splitlines()
    assert " ".join(lines[0].split()) == "column type histogram min max distinct null % avg std q25 q50 q75"
    assert " ".join(lines[1].split()) == "id bigint █████████▇ -5 10 20 0 2.5 2 20 45 70"
    assert "z" * 64 + "…" in lines[2]
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_json_is_one_document(run, location):
    printed = json.loads(run("summary", location, "--json").stdout)
    assert (printed["version"], printed["kind"], printed["subject"], printed["snapshot"]) == (
        1,
        "summary",
        "cat.db.t",
        "2",
    )
    assert printed["current"] is True
    assert printed["rows"][0]["min"] == "-5"
    assert printed["rows"][0]["analyzed_at"] == "2026-01-02T12:00:00+00:00"


@pytest.mark.parametrize(
    ("verb", "rows"), [("summary", 3), ("files", 2), ("columns", 4), ("snapshots", 2), ("tables", 1)]
)
def test_every_reading_verb(run, location, verb, rows):
    assert len(json.loads(run(verb, location, "--json").stdout)["rows"]) == rows
    assert len(run(verb, location).stdout.splitlines()) == rows + 1


def test_columns_of_one_column(run, location):
    rows = json.loads(run("columns", location, "id", "--json").stdout)["rows"]
    assert {row["column_name"] for row in rows} == {"id"}


@pytest.mark.parametrize("verb", ["summary", "files", "columns"])
def test_a_stale_answer_is_shown_and_ends_with_3(run, location, verb):
    metadata(location, 4, 3, {1: None, 2: 1, 3: 2})
    done = run(verb, location, code=3)
    assert done.stdout
    assert "metastore analyze" in done.stderr
    assert json.loads(run(verb, location, "--json", code=3).stdout)["current"] is False


def test_no_statistics_end_with_4(run, tmp_path):
    done = run("summary", tmp_path, code=4)
    assert done.stdout == ""
    assert "error: [METASTORE_NO_STATISTICS]" in done.stderr
    assert done.stderr.splitlines()[-1] == "  Run: metastore analyze <its name>"


def test_a_folder_is_named_as_statements_name_it(run, tmp_path):
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1" / "a.parquet").touch()
    assert f"Run: metastore analyze 'parquet.`{tmp_path}`'\n" in run("summary", tmp_path, code=4).stderr
    assert f"Name it 'parquet.`{tmp_path}`'." in run("analyze", tmp_path, code=2).stderr


def test_a_name_that_no_table_has_may_be_that_of_a_folder(run, tmp_path, monkeypatch):
    (tmp_path / "t1").mkdir()
    (tmp_path / "t1" / "a.parquet").touch()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(metastore, "summary", not_found)
    monkeypatch.setattr(metastore, "verify", not_found)
    monkeypatch.setattr(LocalSpark, "start", lambda _: nullcontext())
    folder = f"The folder of that name is ./t1, in statements parquet.`{tmp_path}/t1`."
    assert folder in run("summary", "t1", code=1).stderr
    assert folder in run("verify", "t1", code=1).stderr
    assert "The folder of that name is ./empty." in run("summary", "empty", code=1).stderr
    assert "folder" not in run("summary", "t2", code=1).stderr


def not_found(_, table, **__):
    raise TableNotFound(table)


def test_an_error_is_a_document_too(run, tmp_path):
    printed = json.loads(run("summary", tmp_path / "nothing", "--json", code=1).stdout)
    assert (printed["kind"], printed["code"]) == ("error", "METASTORE_TABLE_NOT_FOUND")


def test_a_damaged_object_is_one_clear_line(run, location):
    for stored in (location / "_metastore" / "objects").glob("table-summary-*"):
        stored.write_bytes(stored.read_bytes()[:-9])
    error_text = run("summary", location, code=1).stderr
    assert error_text.startswith("error: [METASTORE_DAMAGED_OBJECT] table-summary-")
    assert "Traceback" not in error_text


def test_a_newer_format_is_one_clear_line(run, location):
    log = max((location / "_metastore" / "log").iterdir())
    body = json.loads(log.read_text().splitlines()[0])
    line = json.dumps({**body, "format": 99}).encode() + b"\n"
    log.write_bytes(line + b"sha256:" + hashlib.sha256(line).hexdigest().encode() + b"\n")
    assert "METASTORE_FORMAT_TOO_NEW" in run("summary", location, code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["summary"], "Missing argument"),
        (["sumary", "x"], "No such command"),
        (["summary", "db.t", "--conf", "novalue"], "not of the form KEY=VALUE"),
        (["analyze", "/some/where"], "is a location"),
        (["analyze", "/some/where"], "Name it parquet.`/some/where`, delta.`/some/where` or hudi.`/some/where`"),
        (["gc", "db.t", "--table", "db.t"], "is the name of a table itself"),
        (["analyze", "db.t", "--columns", ""], "has an empty name"),
        (["analyze", "db.t", "--columns", "a,"], "has an empty name"),
        (["analyze", "db.t", "--ranks", ",a"], "has an empty name"),
        (["analyze", "db.t", "--distribution", ""], "has an empty name"),
        (["analyze", "db.t", "--frequencies", "all"], "spark.metastore.frequencies.algorithm"),
        (["demo", "--scale", "0"], "--scale: 0 is not between"),
    ],
)
def test_wrong_usage_ends_with_2(run, arguments, message):
    assert message in run(*arguments, code=2).stderr


def test_a_wrong_setting_ends_with_2(run, monkeypatch):
    monkeypatch.setenv("METASTORE_HISTOGRAM_BINS", "0")
    done = run("config", code=2)
    assert "METASTORE_INVALID_SETTING" in done.stderr
    assert "spark.metastore.read.timeout" in done.stdout
    (wrong,) = [row for row in json.loads(run("config", "--json", code=2).stdout)["rows"] if row["problem"]]
    assert (wrong["name"], wrong["value"]) == ("spark.metastore.histogram.bins", "1000")


def test_a_broken_file_of_settings_is_one_line(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metastore.toml").write_text("histogram.bins = = 7")
    error_text = run("config", code=2).stderr
    assert error_text.startswith(
        f"error: [METASTORE_INVALID_ARGUMENT] {tmp_path}/metastore.toml: it is not valid TOML: "
    )
    assert len(error_text.splitlines()) == 1


def test_tables_of_a_folder_that_is_no_root(run, location):
    done = run("tables", location.parent)
    assert "No statistics lie in" in done.stderr
    assert run("tables", location).stderr == ""


def test_config_tells_value_and_source(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METASTORE_CBO_ENABLED", "false")
    rows = {row["name"]: row for row in json.loads(run("config", "--json").stdout)["rows"]}
    assert (rows["spark.metastore.cbo.enabled"]["value"], rows["spark.metastore.cbo.enabled"]["source"]) == (
        "false",
        "environment",
    )
    assert rows["spark.metastore.enabled"]["source"] == "default"


def test_jar_prints_the_path_alone(run):
    assert run("jar").stdout == f"{jars.shim()}\n"


def test_the_version_is_an_option_too(run):
    assert run("--version").stdout == f"metastore {metastore.__version__}\n"


def test_version(run):
    assert json.loads(run("version", "--json").stdout)["metastore"] == "0.1.0"


JAVA = "An error occurred while calling o41.sql.\n: java.io.IOException: no disk\n\tat org.apache.Spark.run"


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (AnalysisException("[PARSE_SYNTAX_ERROR] Syntax error. SQLSTATE: 42601\n\n== SQL ==\nSELEC"), "[PARSE_SYNTAX"),
        (Py4JError(JAVA), "java.io.IOException: no disk"),
    ],
)
def test_an_error_of_spark_is_one_line(capsys, failure, message):
    with pytest.raises(typer.Exit) as exited, open_output(as_json=False):
        raise failure
    output = capsys.readouterr()
    assert (exited.value.exit_code, output.out, len(output.err.splitlines())) == (1, "", 1)
    assert output.err.startswith(f"error: [SPARK_ERROR] {message}")


def test_mistakes_of_ours_keep_their_trace():
    with pytest.raises(ZeroDivisionError), open_output(as_json=False):
        raise ZeroDivisionError


@pytest.mark.parametrize("name", ["columns", "ranks", "distribution"])
def test_a_name_is_no_list_of_names(name):
    with pytest.raises(InvalidArgument) as raised:
        metastore.analyze(None, "db.t", **{name: "id"})
    assert f"{name}=['id']" in str(raised.value)


def test_an_empty_list_of_columns_is_refused():
    with pytest.raises(InvalidArgument, match="empty"):
        metastore.analyze(None, "db.t", columns=[])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: metastore.summary(None, "db.t"),
        lambda: metastore.analyze(None, "db.t"),
        lambda: metastore.locate(None, "db.t", "id", None),
        lambda: metastore.verify(None, "db.t"),
    ],
)
def test_what_is_no_session_is_told(ask):
    with pytest.raises(InvalidArgument, match="a Spark session is expected, not NoneType"):
        ask()


def test_facts_read_as_in_other_verbs(capsys):
    refused = [["a.parquet", "it is gone"], ["b.parquet", "it is empty"]]
    with open_output(as_json=False) as output:
        output.facts("analyze", {"seconds": 11.025488, "bytes_read": 28664, "committed": True, "refused": refused})
    assert [line.split(None, 1) for line in capsys.readouterr().out.splitlines()] == [
        ["seconds", "11.03"],
        ["bytes_read", "28.7 kB"],
        ["committed", "yes"],
        ["refused", "a.parquet: it is gone; b.parquet: it is empty"],
    ]


def test_config_shows_a_misspelt_setting(run, monkeypatch):
    monkeypatch.setenv("METASTORE_PRUNNING_ENABLED", "1")
    done = run("config")
    assert done.exit_code == 0
    assert "METASTORE_PRUNNING_ENABLED" in done.stdout


def test_what_fails_while_a_stopped_command_ends_is_no_error(capsys):
    with pytest.raises(typer.Exit) as end, open_output(as_json=False):
        raise Py4JError("Answer from Java side is empty") from KeyboardInterrupt()
    assert end.value.exit_code == 130
    assert capsys.readouterr().err == "interrupted\n"
