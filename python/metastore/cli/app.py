"""The table of contents of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from metastore.cli import about, analyze, demo, doctor, reading, upkeep

app = typer.Typer(
    name="metastore",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the answer is stale, 4 no statistics, 130 interrupted, "
    "143 terminated.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes longer to import than all the rest of --help
    add_completion=True,
    pretty_exceptions_show_locals=False,
)


@app.callback()
def program(
    *,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=about.print_version, help="Print the version.")
    ] = False,
) -> None:
    """Statistics of lakehouse tables on Spark: fewer files read, truer plans, answers at hand."""


app.command()(demo.demo)
app.command()(analyze.analyze)
app.command()(reading.summary)
app.command()(reading.frequencies)
app.command()(reading.histogram)
app.command()(reading.quantiles)
app.command()(reading.locate)
app.command()(reading.files)
app.command()(reading.columns)
app.command()(reading.snapshots)
app.command()(reading.tables)
app.command()(reading.explain)
app.command()(reading.estimates)
app.command()(upkeep.verify)
app.command()(upkeep.gc)
app.command()(upkeep.compact)
app.command()(doctor.doctor)
app.command()(about.config)
app.command()(about.jar)
app.command()(about.version)
