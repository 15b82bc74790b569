"""`metastore doctor`: is everything in place, and if not, what to do."""

from __future__ import annotations

from typing import Annotated

import typer

from metastore.cli.options import command
from metastore.cli.output import FAILED, PlainOutput

Location = Annotated[
    str | None, typer.Argument(help="A table's location, to see whether its statistics can be written.")
]
Spark = Annotated[bool, typer.Option("--spark", help="Also start a Spark and ask it for the extension (some seconds).")]


@command
def doctor(output: PlainOutput, location: Location = None, *, spark: Spark = False) -> None:
    """Check the installation; one line to fix each problem, exit code 1 if there is one."""
    from metastore.cli import doctor_checks  # noqa: PLC0415 - not needed for --help

    found = [check() for check in doctor_checks.QUICK]
    found.append(doctor_checks.check_store(location))
    if spark:
        found += doctor_checks.check_spark()
    output.findings(found)
    if any(one.state == doctor_checks.BROKEN for one in found):
        raise typer.Exit(FAILED)
