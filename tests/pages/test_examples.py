"""The commands and code in the pages run: blocks, lines of a shell, and commands in the text.

`examples.json` says which other test runs a page's blocks, what stands for a placeholder, and why something is not run.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from contextlib import nullcontext

import pytest
import typer
from typer.testing import CliRunner

import metastore
from format import golden
from lakes import EXTENSIONS, HUDI, OURS
from metastore.cli.app import app
from metastore.contract import read_contract
from pages.examples import DECLARED, ROOT, examples_to_run, fill_in, read_examples

TABLES = (ROOT / "tests/pages/tables.sql").read_text("utf-8")
END = re.compile(r";(?: *--.*)?\n")
VERBS = {*typer.main.get_command(app).commands}
FUNCTIONS = {function["name"] for function in read_contract("functions")["functions"]} | {*metastore.__all__}


def only(language):
    """The one block of a language."""
    (text,) = (example.text for example in read_examples(language) if not example.inline)
    return text


def test_checks_are_those_of_ci():
    listed = (example.text for example in read_examples("sh") if example.page == "README.md" and not example.inline)
    checks = [text for text in listed if not text.startswith("pip ")]
    _, ran = (ROOT / ".ci/run").read_text("utf-8").split("--break-system-packages uv\n")
    assert checks == ran.splitlines()


def test_every_language_is_run():
    languages = {"sh", "sql", "python", "toml", "json", "properties", "text"}
    assert {example.language for example in read_examples()} == languages


def test_what_is_declared_is_there():
    pages = {(example.page, example.language) for example in read_examples()}
    texts = {example.text for example in read_examples()}
    for entry in DECLARED["elsewhere"]:
        assert (entry["page"], entry["language"]) in pages
        assert entry["page"].rpartition("/")[2] in (ROOT / entry["test"]).read_text("utf-8")
    for entry in DECLARED["not_run"]:
        assert any(re.fullmatch(entry["is"], text) for text in texts), entry
    for placeholder in DECLARED["filled_in"]:
        assert any(placeholder in text for text in texts), placeholder


@pytest.mark.parametrize("example", [example for example in read_examples() if example.is_mention], ids=str)
def test_what_is_mentioned_is_there(example):
    verb = re.match(r"metastore ([a-z][\w-]*)", example.text)
    function = re.match(r"(?:SELECT \* FROM )?metastore\.(\w+)\(", example.text)
    assert verb is None or verb[1] in VERBS
    assert function is None or function[1] in FUNCTIONS


@pytest.mark.parametrize("example", examples_to_run("sh"), ids=str)
def test_placeholders_are_filled_in(example):
    assert not re.search(r"<[^>]+>|\b[A-Z]{3,}\b", fill_in(example.text))


def test_the_entry_point_is_one(tmp_path):
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    assert tomllib.loads(only("toml"))["project"]["entry-points"] == {
        "metastore.statistics": {"entropy": "my_package.statistics:entropy"}
    }


def test_the_manifest_is_the_one_of_the_page(tmp_path):
    golden.write(tmp_path)
    (log,) = tmp_path.rglob("log/*.json")
    written = json.loads(log.read_text("utf-8").splitlines()[0])
    text = re.sub(r"\{OBJECT\.\.\.", '{"object": null', only("json"))
    printed = json.loads(re.sub(r"\bOBJECT(?: or null)?", "null", text))
    assert {*written} <= {*printed}
    for part in ("table", "settings"):
        assert {*written[part]} <= {*printed[part]}
    for part in ("blocks", "snapshots"):
        assert {*written[part][0]} <= {*printed[part][0]}


def test_settings_of_hudi_are_those_of_its_tests():
    listed = dict(line.split() for line in only("properties").splitlines())
    assert listed.pop("spark.sql.extensions") == f"{EXTENSIONS['hudi']},{OURS}"
    assert listed.items() <= HUDI.items()


class Shop:
    """Tables for all examples, and what their placeholders stand for."""

    def __init__(self, spark, warehouse):
        self.spark = spark
        for statement in TABLES.split(";\n")[:-1]:
            self.session().sql(statement)
        session = self.session()
        for table in ("t", "orders", "orders_2024", "sales"):
            metastore.analyze(session, table, progress=False)
        first = {table: self._snapshot(table) for table in ("t", "orders")}
        session.sql("INSERT INTO t SELECT id, 42, 1, 7, 'x', id, id, DATE '2026-03-02' FROM range(100, 120)")
        session.sql("INSERT INTO orders VALUES (100, 4711)")
        for table in first:
            metastore.analyze(session, table, progress=False)
        self.places = {"location": str(warehouse / "db" / "t"), "of_t": first["t"], "of_orders": first["orders"]}
        keys = session.sql("SELECT id FROM t LIMIT 3")
        self.names = {"metastore": metastore, "math": math, "keys": keys, "monday": first["orders"]}
        self.names["entropy"] = metastore.statistic("entropy", version=1)(lambda values: float(len(values)))

    def session(self):
        """A session whose settings are its own, in the tables' database."""
        made = self.spark.newSession()
        made.sql("USE ice.db")
        return made

    def fill_in(self, example):
        return fill_in(example.text, **self.places)

    def drop(self):
        for statement in re.findall(r"CREATE OR REPLACE (TABLE \w+)", TABLES):
            self.session().sql(f"DROP {statement}")

    def _snapshot(self, table):
        return str(self.session().sql(f"SELECT max(snapshot_id) FROM ice.db.{table}.snapshots").first()[0])


@pytest.fixture(scope="module")
def shop(spark, warehouse):
    made = Shop(spark, warehouse)
    yield made
    made.drop()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("example", examples_to_run("sql"), ids=str)
def test_sql(shop, example):
    session = shop.session()
    for statement in END.split(shop.fill_in(example).rstrip().removesuffix(";")):
        session.sql(statement).collect()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("example", examples_to_run("python"), ids=str)
def test_python(shop, example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    session, text = shop.session(), shop.fill_in(example)
    if example.inline and re.match(r"metastore\.\w+\((?!spark)", text) and not text.startswith("metastore.open("):
        session.sql(f"SELECT * FROM {text}").collect()  # a table function
    else:
        exec(compile(text, example.page, "exec"), {**shop.names, "spark": session})  # noqa: S102 - our own page


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("example", examples_to_run("sh"), ids=str)
def test_command_line(shop, example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("metastore.spark.local_session.start_local_spark", lambda *_: nullcontext(shop.session()))
    program, *arguments = shlex.split(shop.fill_in(example))
    assert program == "metastore"
    done = CliRunner().invoke(app, arguments)
    crossed = "--fail-on" in arguments and done.exit_code == 3 and not isinstance(done.exception, Exception)
    assert crossed or done.exit_code == 0, (done.stdout, done.stderr, done.exception)
