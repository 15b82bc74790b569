"""The command `metastore`."""

from __future__ import annotations


def main() -> None:
    """Runs the command line; the entry point of the installed program."""
    from metastore.cli.app import app  # noqa: PLC0415 - an import of the package alone costs nothing

    app()
