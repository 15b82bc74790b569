"""The command `metastore`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; the entry point of the installed program."""
    from metastore.cli import termination  # noqa: PLC0415 - an import of the package alone costs nothing

    termination.listen_for_signals()
    try:
        from metastore.cli.app import app  # noqa: PLC0415 - as above

        app()
    except KeyboardInterrupt as stop:  # before a command has begun
        sys.stderr.write(f"{termination.describe_stop(stop)}\n")
        sys.exit(termination.stop_exit_code(stop))
