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
from metastore.cli.options import Command
from metastore.contract import read_contract

_EXIT_CODES = [f"{code['code']} {code['meaning']}" for code in read_contract("errors")["exit_codes"]]

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


_add = app.command(cls=Command)
_add(demo_command.demo)
_add(analyze_command.analyze)
_add(read_commands.summary)
_add(read_commands.frequencies)
_add(read_commands.histogram)
_add(read_commands.quantiles)
_add(read_commands.locate)
_add(read_commands.prune)
_add(read_commands.files)
_add(read_commands.columns)
_add(read_commands.layout)
_add(read_commands.snapshots)
_add(read_commands.diff)
_add(report_command.report)
_add(read_commands.tables)
_add(read_commands.filtered_summary)
_add(read_commands.explain)
_add(read_commands.whatif)
_add(read_commands.estimates)
_add(export_command.export)
_add(store_commands.verify)
_add(store_commands.gc)
_add(store_commands.compact)
_add(installation_commands.doctor)
_add(installation_commands.config)
_add(installation_commands.jar)
_add(installation_commands.version)
