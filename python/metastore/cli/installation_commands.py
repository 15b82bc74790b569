"""Verbs about the installation: is everything in place, where the jar is, which version, which settings."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from metastore.cli.options import command
from metastore.cli.output import FAILED, PlainOutput, error_exit_code


@command
def jar(output: PlainOutput) -> None:
    """Print the path of the jar, for spark-submit --jars "$(metastore jar)"."""
    from metastore import jars  # noqa: PLC0415 - not needed for --help

    output.text("jar", str(jars.shim()))


@command
def version(output: PlainOutput) -> None:
    """Print the versions of the Metastore and of the libraries it uses."""
    from metastore import __version__  # noqa: PLC0415 - as above

    libraries = ("pyspark", "pyarrow", "obstore")
    versions: dict[str, str | None] = {"metastore": __version__}
    for library in libraries:
        versions[library] = _version(library)
    output.facts("version", versions)


def print_version(is_set: bool) -> None:  # noqa: FBT001 - typer calls it
    """Answer the option --version and end.

    Raises:
        typer.Exit: The option is set.
    """
    if is_set:
        from metastore import __version__  # noqa: PLC0415 - as above

        typer.echo(f"metastore {__version__}")
        raise typer.Exit


@command
def config(output: PlainOutput) -> None:
    """One line per setting: its value here, where that comes from, and what is wrong with what is set."""
    import metastore  # noqa: PLC0415 - as above
    from metastore import configuration  # noqa: PLC0415 - as above
    from metastore.errors import InvalidArgument, InvalidSetting  # noqa: PLC0415 - as above

    settings = metastore.settings()
    output.answer(settings)
    files = {row["file"] for row in settings}
    for file in sorted(filter(None, files)):
        output.note(f"Settings are taken from {file}.")
    try:
        configuration.resolve()
    except (InvalidArgument, InvalidSetting) as error:
        output.note(f"error: {error}")
        raise typer.Exit(error_exit_code(error)) from error


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


Location = Annotated[
    str | None,
    typer.Argument(help="A table's location, to look at its statistics and properties, and whether it can be written."),
]
Spark = Annotated[bool, typer.Option("--spark", help="Also start a Spark and ask it for the extension (some seconds).")]


@command
def doctor(output: PlainOutput, location: Location = None, *, spark: Spark = False) -> None:
    """Check the installation; one line to fix each problem, exit code 1 if there is one."""
    from metastore.cli import doctor_checks, doctor_store_checks  # noqa: PLC0415 - not needed for --help

    results = [check() for check in doctor_checks.QUICK]
    results += doctor_store_checks.check_location(location)
    if spark:
        results += doctor_checks.check_spark()
    output.findings(results)
    if any(result.state == doctor_checks.BROKEN for result in results):
        raise typer.Exit(FAILED)
