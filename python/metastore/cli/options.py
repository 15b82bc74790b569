"""What several commands share: arguments, and the options that `command` adds."""

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
    from collections.abc import Callable, Mapping, Sequence
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
    """A command that takes a negative number for a value, and says of a wrong value nothing but what is wrong."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override] # of its own click
        """Reads the words of a command line."""
        has_value = any(one.name == "value" for one in self.params)
        if has_value and "--" not in args and (numbers := [one for one in args if _NEGATIVE.match(one)]):
            args = [*(one for one in args if one not in numbers), "--", *numbers]
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


@dataclass(frozen=True)
class LocalSpark:
    """The Spark that a command starts where it needs one, as `--conf` and `--jars` say."""

    conf: Sequence[str] = ()
    jars: str | None = None

    def start(self) -> AbstractContextManager[SparkSession]:
        """Starts it; it ends with the block."""
        from metastore.spark.local_session import start_local_spark  # noqa: PLC0415 - not needed for --help

        return start_local_spark(self.settings())

    def settings(self) -> dict[str, str]:
        """The settings of both options.

        Raises:
            InvalidArgument: A setting without `=`.
        """
        pairs = [text.partition("=") for text in self.conf]
        for key, equals, _ in pairs:
            if not equals or not key.strip():
                raise InvalidArgument("--conf", f"{key} is not of the form KEY=VALUE")
        found = {key.strip(): value.strip() for key, _, value in pairs}
        return {**found, "spark.jars": self.jars} if self.jars else found


def command(verb: Callable[..., None]) -> Callable[..., None]:
    """Makes a verb a command: `--json` makes its `output`, `--conf` and `--jars` its `local` if it takes one."""
    hints = get_type_hints(verb, include_extras=True)
    shared: Mapping[str, Any] = {"conf": _Conf, "jars": _Jars} if "local" in hints else {}

    def run(*, json: bool, **given: Any) -> None:
        if "local" in hints:
            given["local"] = LocalSpark(given.pop("conf") or (), given.pop("jars"))
        with open_output(as_json=json) as output:
            verb(output=output, **given)

    own = [one.replace(annotation=hints[one.name]) for one in signature(verb).parameters.values()]
    options = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=one) for name, one in shared.items()]
    options.append(Parameter("json", Parameter.KEYWORD_ONLY, default=False, annotation=_Json))
    listed = [*(one for one in own if one.name not in ("output", "local")), *options]
    run.__name__, run.__doc__ = verb.__name__, verb.__doc__
    run.__annotations__ = {one.name: one.annotation for one in listed}
    run.__signature__ = Signature(listed)  # type: ignore[attr-defined] # typer reads it
    return run
