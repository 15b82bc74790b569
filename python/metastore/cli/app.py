"""The table of contents of the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from metastore.cli import (
    analyze_command,
    demo_command,
    export_command,
    installation_commands,
    read_commands,
    report_command,
    store_commands,
)
from metastore.contract import read_contract

_EXIT_CODES = (f"{one['code']} {one['meaning']}" for one in read_contract("errors")["exit_codes"])

app = typer.Typer(
    name="metastore",
    epilog=f"Exit codes: {', '.join(_EXIT_CODES)}.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes longer to import than all the rest of --help
    add_completion=True,
    pretty_exceptions_show_locals=False,
)


@app.callback()
def program(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=installation_commands.print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Statistics of lakehouse tables on Spark: fewer files read, truer plans, answers at hand."""


app.command()(demo_command.demo)
app.command()(analyze_command.analyze)
app.command()(read_commands.summary)
app.command()(read_commands.frequencies)
app.command()(read_commands.histogram)
app.command()(read_commands.quantiles)
app.command()(read_commands.locate)
app.command()(read_commands.prune)
app.command()(read_commands.files)
app.command()(read_commands.columns)
app.command()(read_commands.layout)
app.command()(read_commands.snapshots)
app.command()(read_commands.diff)
app.command()(report_command.report)
app.command()(read_commands.tables)
app.command()(read_commands.filtered_summary)
app.command()(read_commands.explain)
app.command()(read_commands.whatif)
app.command()(read_commands.estimates)
app.command()(export_command.export)
app.command()(store_commands.verify)
app.command()(store_commands.gc)
app.command()(store_commands.compact)
app.command()(installation_commands.doctor)
app.command()(installation_commands.config)
app.command()(installation_commands.jar)
app.command()(installation_commands.version)
