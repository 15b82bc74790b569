"""Arguments that several commands share, and the options that `command` adds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from metastore.cli.completion import complete_column, complete_table
from metastore.cli.output import open_output
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession


Table = Annotated[
    str,
    typer.Argument(
        help="A table's location (read without Spark), or its name in a catalog.",
        show_default=False,
        autocompletion=complete_table,
    ),
]
OfColumn = Annotated[str, typer.Argument(help="The column.", show_default=False, autocompletion=complete_column)]
_NEGATIVE = re.compile(r"-\.?\d")
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
At = Annotated[str | None, typer.Option(help="A snapshot id, version or instant.", show_default=False)]
_Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", "-c", help="Spark setting KEY=VALUE, beside spark-defaults.conf.", show_default=False),
]
_Jars = Annotated[str | None, typer.Option(help="Jars for Spark, with commas between.", show_default=False)]


class Command(TyperCommand):
    """A command that takes a negative number for a value, and whose errors name only what is wrong with a value."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override] # of its own click
        """Read the words of a command line."""
        if self._has_value() and "--" not in args:
            args = _move_numbers_to_end(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def _has_value(self) -> bool:
        return any(parameter.name == "value" for parameter in self.params)


def _move_numbers_to_end(words: list[str]) -> list[str]:
    """The words, with negative numbers behind `--`, where they are not taken for options."""
    numbers = list(filter(_NEGATIVE.match, words))
    if not numbers:
        return words
    other_words = [word for word in words if word not in numbers]
    return [*other_words, "--", *numbers]


@dataclass(frozen=True)
class LocalSpark:
    """The Spark that a command starts if it needs one, with the settings of `--conf` and `--jars`."""

    conf: Sequence[str] = ()
    jars: str | None = None

    def start(self) -> AbstractContextManager[SparkSession]:
        """Start it; it ends with the block."""
        from metastore.spark.local_session import start_local_spark  # noqa: PLC0415 - not needed for --help

        return start_local_spark(self.settings())

    def settings(self) -> dict[str, str]:
        """Return the settings of both options.

        Raises:
            InvalidArgument: A setting without `=`.
        """
        settings = dict(split_pair("--conf", text, "KEY=VALUE") for text in self.conf)
        if self.jars:
            settings["spark.jars"] = self.jars
        return settings


def split_pair(option: str, text: str, form: str) -> tuple[str, str]:
    """Split the text of an option such as KEY=VALUE into name and value.

    Raises:
        InvalidArgument: It is not of that form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InvalidArgument(option, f"{name} is not of the form {form}")
    return name.strip(), value.strip()


def command(verb: Callable[..., None]) -> Callable[..., None]:
    """Make a verb a command: `--json` makes its `output`, `--conf` and `--jars` its `local` if it takes one."""
    hints = get_type_hints(verb, include_extras=True)
    takes_spark = "local" in hints

    def run(*, json: bool, **values: Any) -> None:
        if takes_spark:
            values["local"] = LocalSpark(values.pop("conf") or (), values.pop("jars"))
        with open_output(as_json=json) as output:
            verb(output=output, **values)

    arguments = dict(signature(verb).parameters)
    arguments.pop("output")
    arguments.pop("local", None)
    parameters = [argument.replace(annotation=hints[name]) for name, argument in arguments.items()]
    if takes_spark:
        parameters += [_make_option("conf", _Conf), _make_option("jars", _Jars)]
    parameters.append(_make_option("json", _Json, default=False))
    run.__name__ = verb.__name__
    run.__doc__ = verb.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # typer reads it
    return run


def _make_option(name: str, annotation: Any, *, default: object = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
