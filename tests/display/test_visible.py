"""Nothing that stands in a table acts on whoever looks at it: one hostile table, every verb, every way of showing."""

from __future__ import annotations

import json
import logging
import pickle
import re
import unicodedata
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

import metastore
from metastore import errors
from metastore.cli import output
from metastore.cli.app import app
from metastore.visible_text import VisibleFormatter, get_logger, make_json_visible, make_visible
from table_level import analyzed_tables
from table_level.analyzed_tables import Content

ACTING = [
    *map(chr, [*range(0x20), *range(0x7F, 0xA0), 0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x180E, 0x3164, 0xFEFF, 0xFFA0]),
    *map(chr, [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xD800, 0xDFFF, 0xE0041]),
]
"""What a terminal obeys, what turns a line around, what is not seen."""
ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2069\u200b\x7f\n[red]error: all is well[/red]<b>&"
COLUMN = f"c{ATTACK}"
QUOTED = f"`{COLUMN}`"
VALUES = [f"v{i}{ATTACK}" for i in range(20)]
HARMLESS = "São Paulo, 東京　都, naïve, שלום, 👍🏽, a\u00a0b"


def acts(text: str) -> set[str]:
    """The characters of a text that act on a terminal, apart from ends of lines."""
    return {char for char in text if char in ACTING or unicodedata.category(char) in ("Cf", "Cs")} - {"\n"}


@pytest.fixture(scope="module")
def hostile_table(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "t"
    folder.mkdir()
    store, _ = analyzed_tables.commit_table_level(
        folder, [Content("string", [pa.array(VALUES * 3)] * 2, ["complete"] * 2)], bins=10
    )
    identity = replace(analyzed_tables.IDENTITY, name=f"db.{ATTACK}")

    def renamed(part):
        return replace(part, columns=tuple(replace(leaf, path=(COLUMN,)) for leaf in part.columns))

    def change(old):
        return replace(
            old,
            blocks=tuple(map(renamed, old.blocks)),
            snapshots=tuple(replace(renamed(snapshot), id=f"1{ATTACK}") for snapshot in old.snapshots),
        )

    store.commit(identity, change)
    return folder


def answers(table_path: Path) -> dict[str, metastore.Answer]:
    opened = metastore.open(str(table_path))
    results = {verb: getattr(opened, verb)() for verb in ("summary", "files", "columns", "snapshots")}
    for verb in ("frequencies", "histogram", "quantiles"):
        results[verb] = getattr(opened, verb)(QUOTED)
    results["verify"] = metastore.verify(str(table_path))
    results["gc"] = metastore.gc(str(table_path))
    return results


@pytest.mark.parametrize("char", ACTING, ids=lambda char: f"U+{ord(char):04X}")
def test_what_acts_is_shown(char):
    assert make_visible(f"a{char}b") == f"a{char.encode('unicode_escape').decode()}b"
    document = json.dumps({"a": f"x{char}y"}, ensure_ascii=False)
    assert not acts(make_json_visible(document))
    assert json.loads(make_json_visible(document)) == json.loads(document)


def test_what_only_is_written_differently_stays():
    assert make_visible(HARMLESS) == HARMLESS
    assert make_visible(make_visible(ATTACK)) == make_visible(ATTACK)


def test_answers_show_it_and_hold_it(hostile_table):
    for verb, answer in answers(hostile_table).items():
        assert len(answer) or verb == "gc"
        assert not acts(repr(answer)), verb
        assert not acts(str(answer)), verb
        html = answer._repr_html_()
        assert not acts(html), verb
        assert "<b>" not in html, verb
        console = Console(file=StringIO(), width=200, color_system=None, force_terminal=False)
        console.print(answer)
        assert not acts(console.file.getvalue()), verb
        if verb in ("summary", "snapshots", "histogram"):
            assert "[red]" in console.file.getvalue(), verb  # no markup: shown as it is written
    assert {row["value"] for row in answers(hostile_table)["frequencies"]} == set(VALUES)
    assert answers(hostile_table)["frequencies"].to_arrow()["value"][0].as_py() in VALUES
    assert answers(hostile_table)["summary"][0]["column_name"].strip("`") == COLUMN


COMMANDS = [
    *([verb] for verb in ("summary", "files", "columns", "snapshots", "tables", "verify", "gc", "compact")),
    *([verb, "", QUOTED] for verb in ("frequencies", "histogram", "quantiles", "columns")),
    *([verb, "", f"no {COLUMN}"] for verb in ("frequencies", "histogram", "quantiles", "columns")),
    ["summary", "", "--at", f"no {ATTACK}"],
    ["summary", "", "--file", f"no {ATTACK}"],
    ["locate", "", QUOTED, VALUES[0]],
]


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(map(ascii, command)))
def test_commands_show_it(hostile_table, command, terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    if terminal:
        monkeypatch.setattr(output, "PlainOutput", output.ConsoleOutput)
    verb, *arguments = command
    done = CliRunner().invoke(app, [verb, str(hostile_table), *arguments[1:]])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.stdout or done.stderr
    assert not acts(done.stdout + done.stderr)
    if not terminal:  # which breaks long lines
        assert not re.search(r"^\[red\]", done.stdout + done.stderr, re.MULTILINE), "a value began a line of its own"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(map(ascii, command)))
def test_json_holds_it_and_shows_it(hostile_table, command):
    verb, *arguments = command
    done = CliRunner().invoke(app, [verb, str(hostile_table), *arguments[1:], "--json"])
    assert not acts(done.stdout + done.stderr)
    document = json.loads(done.stdout)
    if verb == "summary" and not arguments:
        assert document["rows"][0]["column_name"].strip("`") == COLUMN


def test_a_lone_surrogate_is_shown():
    answer = metastore.Answer(kind="files", subject="t", columns=("path",), rows=({"path": "/a\udc80"},))
    assert "\\udc80" in repr(answer)
    assert not acts(answer._repr_html_())


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_show_it_and_hold_it(name):
    kind = getattr(errors, name)
    facts = {"sequence": 3, "near": [ATTACK]}
    parameter_names = kind.__init__.__code__.co_varnames[1 : kind.__init__.__code__.co_argcount]
    error = kind(**{parameter: facts.get(parameter, ATTACK) for parameter in parameter_names})
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    for text in (str(error), str(again), *error.args):
        assert not acts(text)
        assert "\n" not in text
    assert "\\x1b" in str(error)
    raw = {"table", "column", "reason", "store", "name", "where", "argument", "setting"} & set(parameter_names)
    assert all(getattr(error, attribute) == ATTACK for attribute in raw)


def test_lines_of_the_log_show_it(caplog):
    with caplog.at_level(logging.INFO):
        get_logger("metastore.tests").info("%s of %d: %s", ATTACK, 3, ValueError(ATTACK))
    message = caplog.records[-1].getMessage()
    assert "[red]" in message
    assert not acts(message)
    assert "\n" not in message
    cause = ValueError(ATTACK)
    record = logging.LogRecord("x", logging.INFO, "f", 1, "m", None, (ValueError, cause, None))
    assert not acts(VisibleFormatter().format(record))


def test_there_is_one_way_out():
    """Everything that is written for people, and every logger, passes what shows."""
    ways = re.compile(r"typer\.echo\(|\bprint\(|getLogger\(__name__|Console\(|sys\.std(out|err)\.write")
    elsewhere = re.compile(r">>>|^ *code = f?[\"']")  # in an example, or in another Python
    locations = []
    package = Path(metastore.__file__).parent
    for file in package.rglob("*.py"):
        lines = [line for line in file.read_text("utf-8").splitlines() if not elsewhere.search(line)]
        locations += [str(file.relative_to(package)) for line in lines if ways.search(line)]
    # A version, two fixed lines about a signal; `_write`, `_dump`, `_console` and its three uses.
    assert set(locations) - {"cli/output.py"} == {
        "cli/__init__.py",
        "cli/installation_commands.py",
        "cli/termination.py",
    }
    assert (len(locations), locations.count("cli/output.py")) == (9, 6)
