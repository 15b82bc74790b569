"""Public names stay: what `names.json` has is there, with its arguments, and what is there it has.

After adding a name: METASTORE_GOLDEN=write uv run pytest tests/contract/test_names.py. docs/compatibility.md says which
changes a release may make.
"""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path

import typer

import metastore
from metastore import configuration, errors
from metastore.cli.app import app

KEPT = Path(__file__).with_name("names.json")


def parameters(public):
    parameters = inspect.signature(public).parameters.values()
    return [
        f"{'*' if parameter.kind is parameter.KEYWORD_ONLY else ''}{parameter.name}{'' if required(parameter) else '?'}"
        for parameter in parameters
    ]


def required(parameter):
    return parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD


def members(public):
    """Methods with their parameters, and names of attributes, of a class; parameters of a function."""
    if not inspect.isclass(public):
        return parameters(public)
    ours = [class_ for class_ in public.__mro__ if class_.__module__.startswith("metastore")]
    names = sorted(
        {name for class_ in ours for name in (*vars(class_), *annotations(class_)) if not name.startswith("_")}
    )
    members = {name: getattr(public, name, None) for name in names}
    return {name: parameters(value) if inspect.isroutine(value) else "attribute" for name, value in members.items()}


def annotations(public):
    return vars(public).get("__annotations__", {})


def own_names(module):
    members = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    return {name: value for name, value in members.items() if getattr(value, "__module__", None) == module.__name__}


def options(command):
    return sorted(
        "/".join(option.opts + option.secondary_opts) for option in command.params if option.param_type_name == "option"
    )


def current():
    commands = typer.main.get_command(app).commands
    return {
        "metastore": {name: members(getattr(metastore, name)) for name in metastore.__all__},
        "metastore.errors": errors.__all__,
        "metastore.configuration": {name: members(value) for name, value in sorted(own_names(configuration).items())},
        "command line": {name: options(click_command) for name, click_command in sorted(commands.items())},
    }


def test_public_names_are_those_that_are_kept():
    if os.environ.get("METASTORE_GOLDEN") == "write":
        KEPT.write_text(json.dumps(current(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    assert current() == json.loads(KEPT.read_text("utf-8"))
