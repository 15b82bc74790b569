"""What errors advise, in the words of a shell: errors are built for SQL and Python, too."""

from __future__ import annotations

import re
import shlex

_ANALYZE = re.compile(
    r"ANALYZE TABLE (?P<table>.+?) COMPUTE STATISTICS(?: FOR (?:ALL COLUMNS|COLUMNS (?P<columns>.+)))?$",
    re.MULTILINE,
)
_OF_SPARK = re.compile(r": ANALYZE TABLE by its name is Spark's own until \S+ has \w+")
"""`metastore analyze` takes a table of any format."""
_SETTINGS = "metastore.settings()"
_BY_NAME = re.compile(r"(?:With Spark, by name: )?metastore\.(?P<verb>[a-z_]+)\(spark, '(?P<table>[^']+)'\)")
_PLACEHOLDER = "<its name>"


def phrase_for_shell(text: str) -> str:
    """Replace statements and calls by the commands that do the same.

    Example:
        >>> phrase_for_shell("Run: ANALYZE TABLE db.t COMPUTE STATISTICS FOR COLUMNS a")
        'Run: metastore analyze db.t --columns a'
    """
    text = _OF_SPARK.sub("", text)
    text = _ANALYZE.sub(_write_analyze, text)
    text = _BY_NAME.sub(_write_call, text)
    return text.replace(_SETTINGS, "metastore config")


def write_analyze(table: str, columns: str | None = None) -> str:
    """The command that computes the statistics of a table."""
    name = table if table == _PLACEHOLDER else shlex.quote(table)
    return f"metastore analyze {name}" + (f" --columns {shlex.quote(columns)}" if columns else "")


def _write_analyze(match: re.Match[str]) -> str:
    return write_analyze(match["table"], match["columns"])


def _write_call(match: re.Match[str]) -> str:
    verb = match["verb"].replace("_", "-")
    return f"By name, with Spark: metastore {verb} {shlex.quote(match['table'])}"
