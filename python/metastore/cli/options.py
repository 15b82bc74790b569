"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from metastore.cli.completion import complete_column, complete_table
from metastore.errors import InvalidArgument

Table = Annotated[
    str,
    typer.Argument(
        help="A table's location (read without Spark), or its name in a catalog.",
        show_default=False,
        autocompletion=complete_table,
    ),
]
OfColumn = Annotated[str, typer.Argument(help="The column.", show_default=False, autocompletion=complete_column)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
At = Annotated[str | None, typer.Option(help="A snapshot id, version or instant.", show_default=False)]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", "-c", help="Spark setting KEY=VALUE, beside spark-defaults.conf.", show_default=False),
]
Jars = Annotated[str | None, typer.Option(help="Jars for Spark, with commas between.", show_default=False)]


def read_spark_conf(conf: list[str] | None, jars: str | None) -> dict[str, str]:
    """The settings of `--conf` and `--jars`.

    Raises:
        InvalidArgument: A setting without `=`.
    """
    pairs = [text.partition("=") for text in conf or ()]
    for key, equals, _ in pairs:
        if not equals or not key.strip():
            raise InvalidArgument("--conf", f"{key} is not of the form KEY=VALUE")
    found = {key.strip(): value.strip() for key, _, value in pairs}
    return {**found, "spark.jars": jars} if jars else found
