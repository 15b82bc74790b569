"""Makes the pages that say what `contract/` and `docs/gaps.json` say: `python docs/make.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metastore.configuration import REGISTRY
from metastore.contract import read_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_SETTINGS = """# Settings

Made from `contract/settings.json` by `python docs/make.py`.

The first place that has a setting wins: an argument, the Spark conf, the environment, the nearest `metastore.toml` (or
`[tool.metastore]` of a `pyproject.toml`) at or above the working folder, the default. TOML names a setting without
`spark.metastore.`: `pruning.enabled = false`.

The planner inside a running Spark reads the Spark conf and the environment of the driver.
`metastore.configure(builder)` passes the settings of a file to it.

`metastore.settings()`, in SQL and in Python, and `metastore config` show each value in force, where it comes from, and
what is wrong with it.

## All settings

| Spark conf | environment | default | meaning |
|---|---|---|---|"""

_SETTING_RULES = """
## Settings that need trust

- `spark.metastore.python` and `spark.metastore.store` count in a file only if you or root own it and nobody else
  can write it; the same holds for its folders. From any other file they are left out, and one line says so
  ([security.md](security.md)).
- `spark.metastore.python` names a program that runs as the driver's user. It is read from the conf that Spark was
  started with, never from a session's.

## Mistakes

- A value that a setting cannot have is an error where it is set (`SET`, an argument, a file) or first used. Queries
  go on with the default.
- An unknown name is refused in a file and as an argument. `SET` refuses it if it is near to a setting's name.
- ANALYZE lists unknown names of the conf under `refused`, and unknown table properties that begin with
  `metastore.`.
- A variable of the environment with a name near to a setting's is named in the log and by `metastore doctor`.

## Settings of Spark that change

The Metastore switches on `spark.sql.cbo.enabled` and `spark.sql.cbo.joinReorder.enabled` in the conf of the
SparkContext, if Spark is started with neither of them set. It then also sets
`spark.sql.iceberg.report-column-stats` to false, unless that is set: Iceberg's own distinct counts come without
bounds, and from these Spark estimates zero rows.

- These are defaults that any session may change.
- They stay when a session sets `spark.metastore.enabled` or `spark.metastore.cbo.enabled` to false. Its plans are
  then those of a Spark without the Metastore and with the same three settings.
- If one of these two is false from the start, none of the three is touched.
- If the user has switched cost-based optimization on, Iceberg's setting is left alone. The Metastore then keeps
  Iceberg's counts from the optimizer itself, in every batch read and in the targets of UPDATE, DELETE and MERGE, as
  long as both of its settings are true.
"""

_FUNCTIONS = """# Table functions

Made from `contract/functions.json` by `python docs/make.py`.

Each is called as `metastore.<name>(...)`, arguments by position or by name (`at => ...`); those in brackets may be left
out, or be NULL. `metastore.help()` lists the same. Functions marked with * also answer without Spark, as methods of
`metastore.open(location)`."""

_VIEWS = """## Views of the data source

`spark.read.format("metastore").option("view", "summary").load("t")`: the columns of the function of that name, or
those named here. Where an object kind stands, its fields follow as they are stored ([format.md](format.md)), after the
texts. The options named under "narrowed by" make a view shorter.

| view | columns | stored fields of | narrowed by |
|---|---|---|---|"""

_ERRORS = """# Errors

Made from `contract/errors.json` by `python docs/make.py`.

A mistake has the same code in SQL, in Python (`metastore.errors`) and on the command line, whose exit codes are:

| exit code | meaning |
|---|---|"""

_FORMATS = """# Table formats

Made from `docs/gaps.json` by `python docs/make.py`.
Tests go through the same list: what is said to work is tested, and what is said to raise an error raises it.
Limits that are alike for all formats are in [limits.md](limits.md).
"""

_RELEASES = """## Releases

Each of these goes through one story, in a Spark of its own, by `tests/versions/matrix.py`: analyze, read fewer files,
delete, update, merge, analyze again, look back, and compare random queries with the answers without us. A release
older than the oldest of them is read as without us; ANALYZE, table functions, EXPLAIN and `metastore doctor --spark`
say which one is needed. An empty cell was not run: releases between those that were are taken to be like them; newer
ones are tried, and where they lack what we ask of them it is named.
"""


_VARIANTS = """Directories of Parquet files go through the same story on every line of Spark. Some releases go
through it once more, with another Java than 17, beside another engine, or with other readers of the format's own:
"""


def render_settings() -> str:
    """Every setting, and where its value comes from."""
    rows = (
        f"| `{one.key}` | `{one.environment}` | {f'`{one.default}`' if one.default else '(none)'} | {one.meaning} |"
        for one in REGISTRY.values()
    )
    return _join(_SETTINGS, *rows, _SETTING_RULES)


def render_functions() -> str:
    """Every table function that people call, and every view."""
    contract = read_contract("functions")
    listed = (one for one in contract["functions"] if not one.get("internal"))
    views = (
        f"| `{one['name']}` | {_columns(one)} | {one.get('object', '')} | {', '.join(one.get('narrowed_by', ()))} |"
        for one in contract["views"]
    )
    return _join(_FUNCTIONS, *(_describe_function(one) for one in listed), "", _VIEWS, *views)


def render_errors() -> str:
    """Every exit code, and every error with what it means."""
    contract = read_contract("errors")
    codes = (f"| {one['code']} | {one['meaning']} |" for one in contract["exit_codes"])
    errors = (
        f"| `{one['code']}` | `{one['class']}` | {one['exit_code']} | {one['meaning']} |" for one in contract["errors"]
    )
    return _join(_ERRORS, *codes, "", "| code | class in Python | exit code | meaning |", "|---|---|---|---|", *errors)


def render_formats() -> str:
    """What works on which table format and Spark, why something does not, and which releases were tried."""
    declared = json.loads(Path(__file__).with_name("gaps.json").read_text("utf-8"))
    targets = declared["targets"]
    notes: list[Mapping[str, Any]] = []
    rows = [_behaviour(name, text, declared, notes) for name, text in declared["behaviours"].items()]
    head = _head([f"{one['title']}, Spark {one['spark']}" for one in targets])
    said = [f"{number}. {_sentence(one, targets)}" for number, one in enumerate(notes, 1)]
    variants = ["", _VARIANTS, *_variants(declared)] if declared["variants"] else []
    return _join(_FORMATS, *head, *rows, "", *said, "", _RELEASES, *_releases(declared["releases"]), *variants)


def _behaviour(name: str, text: str, declared: Mapping[str, Any], notes: list[Mapping[str, Any]]) -> str:
    cells = []
    for target in declared["targets"]:
        wanted = (name, target["format"])
        gaps = (one for one in declared["gaps"] if (one["behaviour"], one["format"]) == wanted)
        found = next((one for one in gaps if target["spark"] in one["sparks"]), None)
        if found is not None and found not in notes:
            notes.append(found)
        cells.append("yes" if found is None else f"{found['when']} ({notes.index(found) + 1})")
    return f"| {text} | {' | '.join(cells)} |"


def _sentence(gap: Mapping[str, Any], targets: Iterable[Mapping[str, str]]) -> str:
    titles = (one["title"] for one in targets if one["format"] == gap["format"] and one["spark"] in gap["sparks"])
    error = f" Raises `{gap['raised']}`." if "raised" in gap else ""
    return f"{next(titles)}: {gap['reason']}.{error}"


def _releases(releases: Iterable[Mapping[str, Any]]) -> list[str]:
    verdicts: dict[str, dict[str, str]] = {}
    for one in sorted(releases, key=lambda one: one["format"]):
        verdict = one.get("refused") or "; ".join(("yes", *one.get("kinds_refused", {}).values()))
        verdicts.setdefault(_title_of(one), {})[_spark_of(one)] = verdict
    sparks = sorted({spark for of_spark in verdicts.values() for spark in of_spark})
    cells = {title: " | ".join(of_spark.get(spark, "") for spark in sparks) for title, of_spark in verdicts.items()}
    return [*_head([f"Spark {spark}" for spark in sparks]), *(f"| {title} | {row} |" for title, row in cells.items())]


def _title_of(release: Mapping[str, Any]) -> str:
    return f"{release['format'].capitalize()} {release['version']}"


def _spark_of(release: Mapping[str, Any]) -> str:
    return f"{release['spark']}, Scala {release['scala']}" if "scala" in release else str(release["spark"])


def _parquet_title(jar: str) -> str:
    spark = jar.removeprefix("parquet-").replace("_", ", Scala ")
    return f"Parquet files on Spark {spark}"


def _variants(declared: Mapping[str, Any]) -> list[str]:
    """What else releases are run with, a line for each thing."""
    titles = {one["jar"]: f"{_title_of(one)} on Spark {_spark_of(one)}" for one in declared["releases"]}
    lines = ["| with | releases |", "|---|---|"]
    for variant in declared["variants"]:
        named = [titles.get(jar) or _parquet_title(jar) for jar in variant["jars"]]
        refusal = f": not analyzed, {variant['refused']}" if "refused" in variant else ""
        lines.append(f"| {variant['title']} | {'; '.join(named)}{refusal} |")
    return lines


def _head(titles: Sequence[str]) -> list[str]:
    return ["| |" + "".join(f" {title} |" for title in titles), "|---" * (len(titles) + 1) + "|"]


def _describe_function(function: Mapping[str, Any]) -> str:
    arguments = (one["name"] if one["required"] else f"[{one['name']}]" for one in function["arguments"])
    star = " *" if function.get("without_spark") else ""
    columns = ", ".join(f"`{column}`" for column in function["columns"])
    head = f"## {function['name']}({', '.join(arguments)}){star}"
    comments = [f"- `{column}`: {comment}." for column, comment in function.get("comments", {}).items()]
    listed = "\n\n" + "\n".join(comments) if comments else ""
    return f"\n{head}\n\n{function['meaning']}.\n\nColumns: {columns}{listed}"


def _columns(view: Mapping[str, Any]) -> str:
    return f"as `{view['function']}`" if "function" in view else ", ".join(f"`{one}`" for one in view["columns"])


def _join(*parts: str) -> str:
    return "\n".join(parts) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": render_settings,
    "functions.md": render_functions,
    "errors.md": render_errors,
    "formats.md": render_formats,
}


def write_pages(names: Iterable[str] = PAGES) -> None:
    """Writes pages beside this file."""
    for name in names:
        Path(__file__).with_name(name).write_text(PAGES[name](), "utf-8")


if __name__ == "__main__":
    write_pages()
