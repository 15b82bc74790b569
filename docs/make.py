"""Write the pages made of `contract/` and `docs/gaps.json`: `python docs/make.py`."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metastore.configuration import REGISTRY
from metastore.contract import read_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_SETTINGS = """# Settings

Made from `contract/settings.json` by `python docs/make.py`.

The first place that has a setting wins:

1. an argument;
2. the Spark conf;
3. the environment;
4. the nearest `metastore.toml` (or `[tool.metastore]` of a `pyproject.toml`) at or above the working folder. It names
   a setting without `spark.metastore.`: `pruning.enabled = false`;
5. the default.

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
  Iceberg's counts from the optimizer itself, as long as both of its settings are true. It does so in every batch read
  and in the targets of UPDATE, DELETE and MERGE.
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

`tests/versions/matrix.py` takes each of these through the same steps, in a Spark of its own: analyze, read fewer files,
delete, update, merge, analyze again, look back. Random queries are compared with the answers without the Metastore.

- A release older than the oldest of them is read as without the Metastore. ANALYZE, table functions, EXPLAIN and
  `metastore doctor --spark` say which release is needed.
- An empty cell was not run. A release between two that were run is taken to be like them.
- A newer release is used. If it lacks something that the Metastore needs, the reason names that.
"""


_RULES = """# Conditions that skip data files

Made from `contract/rules.json` by `python docs/make.py`. Tests ask Spark's planner and `prune` about each of them.

- bounds: the least and the greatest value of a column in a file may leave the file out, whatever the number of values.
  Lists of values and bloom filters may leave out more.
- values: only a list of all values that the column has in the file may leave it out.
- no: the condition leaves out no file.

The last column is about [`prune`](engines.md). AND, OR and NOT join conditions; an argument of a function may be
another function. Which files are read all the same: [details](details/pruning.md).
"""

_VARIANTS = """Directories of Parquet files go through the same steps on every line of Spark. Some releases go
through them once more: with another Java than 17, beside another engine, or with other readers of the format's own.
"""


def render_settings() -> str:
    """Write every setting, and the sources of its value."""
    rows = []
    for setting in REGISTRY.values():
        default = f"`{setting.default}`" if setting.default else "(none)"
        rows.append(_row(f"`{setting.key}`", f"`{setting.environment}`", default, setting.meaning))
    return _join([_SETTINGS, *rows, _SETTING_RULES])


def render_functions() -> str:
    """Write every table function that people call, and every view."""
    contract = read_contract("functions")
    functions = [_describe_function(function) for function in contract["functions"] if not function.get("internal")]
    views = map(_describe_view, contract["views"])
    return _join([_FUNCTIONS, *functions, "", _VIEWS, *views])


def _describe_function(function: Mapping[str, Any]) -> str:
    arguments = ", ".join(map(_describe_argument, function["arguments"]))
    star = " *" if function.get("without_spark") else ""
    parts = [
        f"\n## {function['name']}({arguments}){star}",
        f"{function['meaning']}.",
        f"Columns: {_quote_all(function['columns'])}",
    ]
    comments = [f"- `{column}`: {comment}." for column, comment in function.get("comments", {}).items()]
    if comments:
        parts.append("\n".join(comments))
    return "\n\n".join(parts)


def _describe_argument(argument: Mapping[str, Any]) -> str:
    name: str = argument["name"]
    return name if argument["required"] else f"[{name}]"


def _describe_view(view: Mapping[str, Any]) -> str:
    columns = f"as `{view['function']}`" if "function" in view else _quote_all(view["columns"])
    narrowed_by = ", ".join(view.get("narrowed_by", ()))
    return _row(f"`{view['name']}`", columns, view.get("object", ""), narrowed_by)


def _quote_all(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def render_errors() -> str:
    """Write every exit code, and every error with its meaning."""
    contract = read_contract("errors")
    codes = [_row(code["code"], code["meaning"]) for code in contract["exit_codes"]]
    errors = [
        _row(f"`{error['code']}`", f"`{error['class']}`", error["exit_code"], error["meaning"])
        for error in contract["errors"]
    ]
    head = ["| code | class in Python | exit code | meaning |", "|---|---|---|---|"]
    return _join([_ERRORS, *codes, "", *head, *errors])


def render_formats() -> str:
    """Write the behaviours of each table format and Spark, the reasons of gaps, and the releases that were tried."""
    declarations = json.loads(Path(__file__).with_name("gaps.json").read_text("utf-8"))
    targets = declarations["targets"]
    notes: list[Mapping[str, Any]] = []
    rows = []
    for name, text in declarations["behaviours"].items():
        gaps = [gap for gap in declarations["gaps"] if gap["behaviour"] == name]
        cells = [_describe_target(target, gaps, notes) for target in targets]
        rows.append(_row(text, *cells))
    head = _head([f"{target['title']}, Spark {target['spark']}" for target in targets])
    sentences = [f"{number}. {_describe_gap(gap, targets)}" for number, gap in enumerate(notes, 1)]
    releases = _list_releases(declarations["releases"])
    variants = _list_variants(declarations)
    return _join([_FORMATS, *head, *rows, "", *sentences, "", _RELEASES, *releases, *variants])


def _describe_target(
    target: Mapping[str, Any], gaps: Iterable[Mapping[str, Any]], notes: list[Mapping[str, Any]]
) -> str:
    """The cell of a behaviour for a format and a Spark; the gap in it is appended to the notes."""
    for gap in gaps:
        if not _is_gap_of(target, gap):
            continue
        if gap not in notes:
            notes.append(gap)
        return f"{gap['when']} ({notes.index(gap) + 1})"
    return "yes"


def _is_gap_of(target: Mapping[str, Any], gap: Mapping[str, Any]) -> bool:
    return gap["format"] == target["format"] and target["spark"] in gap["sparks"]


def _describe_gap(gap: Mapping[str, Any], targets: Iterable[Mapping[str, str]]) -> str:
    titles = [target["title"] for target in targets if _is_gap_of(target, gap)]
    error = f" Raises `{gap['raised']}`." if "raised" in gap else ""
    return f"{titles[0]}: {gap['reason']}.{error}"


def _list_releases(releases: Iterable[Mapping[str, Any]]) -> list[str]:
    """A table with a line a release and a column a Spark."""
    verdicts: dict[str, dict[str, str]] = {}
    sparks = set()
    for release in sorted(releases, key=itemgetter("format")):
        spark = _spark_of(release)
        sparks.add(spark)
        verdicts.setdefault(_title_of(release), {})[spark] = _verdict_of(release)
    lines = _head([f"Spark {spark}" for spark in sorted(sparks)])
    for title, verdicts_by_spark in verdicts.items():
        cells = [verdicts_by_spark.get(spark, "") for spark in sorted(sparks)]
        lines.append(_row(title, *cells))
    return lines


def _verdict_of(release: Mapping[str, Any]) -> str:
    if release.get("refused"):
        return str(release["refused"])
    return "; ".join(["yes", *release.get("kinds_refused", {}).values()])


def _title_of(release: Mapping[str, Any]) -> str:
    return f"{release['format'].capitalize()} {release['version']}"


def _spark_of(release: Mapping[str, Any]) -> str:
    if "scala" in release:
        return f"{release['spark']}, Scala {release['scala']}"
    return str(release["spark"])


def _parquet_title(jar: str) -> str:
    spark = jar.removeprefix("parquet-").replace("_", ", Scala ")
    return f"Parquet files on Spark {spark}"


def _list_variants(declarations: Mapping[str, Any]) -> list[str]:
    """The other things that releases are run with, a line each."""
    if not declarations["variants"]:
        return []
    titles = {
        release["jar"]: f"{_title_of(release)} on Spark {_spark_of(release)}" for release in declarations["releases"]
    }
    lines = ["", _VARIANTS, "| with | releases |", "|---|---|"]
    for variant in declarations["variants"]:
        releases = "; ".join(titles.get(jar) or _parquet_title(jar) for jar in variant["jars"])
        refusal = f": not analyzed, {variant['refused']}" if "refused" in variant else ""
        lines.append(_row(variant["title"], f"{releases}{refusal}"))
    return lines


def render_rules() -> str:
    """Write every condition that skips files, and what Spark's planner and `prune` need for it."""
    lines = [_RULES]
    for section in read_contract("rules"):
        rows = [_describe_rule(rule) for rule in section["rules"]]
        lines += [f"## {section['of']}", "", "| condition | Spark | without Spark |", "|---|---|---|", *rows, ""]
    return _join(lines[:-1])


def _describe_rule(rule: Mapping[str, str]) -> str:
    python = rule.get("python") or f"no: {rule['why_not_python']}"
    return _row(rule["rule"], rule["spark"], python)


def _head(titles: Sequence[str]) -> list[str]:
    titles_row = "".join(f" {title} |" for title in titles)
    return [f"| |{titles_row}", "|---" * (len(titles) + 1) + "|"]


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _join(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": render_settings,
    "functions.md": render_functions,
    "errors.md": render_errors,
    "formats.md": render_formats,
    "rules.md": render_rules,
}


def write_pages(names: Iterable[str] = PAGES) -> None:
    """Write pages beside this file."""
    for name in names:
        Path(__file__).with_name(name).write_text(PAGES[name](), "utf-8")


if __name__ == "__main__":
    write_pages()
