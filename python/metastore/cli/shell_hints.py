"""Hints of errors for a shell, made of the same facts as the hints for SQL and Python."""

from __future__ import annotations

import shlex

from metastore.errors import InvalidSetting, MetastoreError, NoStatistics, TableNotFound
from metastore.path_names import name_in_shell


def phrase_hint(error: MetastoreError) -> str:
    """Return the hint of an error with commands in place of statements and calls of Python.

    Example:
        >>> phrase_hint(NoStatistics("db.t", columns="a"))
        'Run: metastore analyze db.t --columns a'
    """
    if isinstance(error, NoStatistics):
        return _advise_analyze(error)
    if isinstance(error, TableNotFound):
        return _advise_name(error)
    if isinstance(error, InvalidSetting) and error.hint:
        return "metastore config shows what is in force."
    return error.hint


def _advise_analyze(error: NoStatistics) -> str:
    if error.analyzed or not error.in_statements:
        return error.hint
    return f"Run: {write_analyze(error.in_statements, error.columns)}"


def _advise_name(error: TableNotFound) -> str:
    if error.near or not error.verb:
        return error.hint
    return f"A location is expected here. By name, with Spark: {write_command(error.verb, error.table)}."


def write_analyze(table: str, columns: str = "") -> str:
    """Write the command that computes the statistics of a table."""
    command = write_command("analyze", table)
    return f"{command} --columns {shlex.quote(columns)}" if columns else command


def write_command(verb: str, table: str) -> str:
    """Write the command of a verb for a table."""
    return f"metastore {verb.replace('_', '-')} {name_in_shell(table)}"
