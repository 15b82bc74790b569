"""`metastore export`: writes statistics where others look for them."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from metastore.cli.completion import complete_table
from metastore.cli.options import LocalSpark, command
from metastore.cli.output import PlainOutput

Name = Annotated[
    str,
    typer.Argument(
        help="A table's name in Spark's session catalog.", show_default=False, autocompletion=complete_table
    ),
]
To = Annotated[Literal["hive"], typer.Option(help="Spark's session catalog, which may be a Hive metastore.")]


@command
def export(output: PlainOutput, local: LocalSpark, table: Name, *, to: To = "hive") -> None:
    """Write what is known of a table into the session catalog, for engines that read statistics there."""
    import metastore  # noqa: PLC0415 - not needed for --help
    from metastore.api.export_functions import refuse_location  # noqa: PLC0415 - as above

    refuse_location(table)
    with local.start() as spark:
        output.facts("export", metastore.export(spark, table, to=to))
