"""How statements name a table whose location is known."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_FORMS = "parquet.`{0}`, delta.`{0}` or hudi.`{0}`, an Iceberg table by the name in its catalog"
_UNKNOWN = "<its name>"


def is_location(text: str) -> bool:
    """Whether a text is a path or URI and not the name of a table."""
    return "`" not in text and ("/" in text or text.startswith("."))


def name_in_statements(table: str) -> str:
    """A name as it is; of a local folder its format and path, or `<its name>` where these are no name.

    Example:
        >>> name_in_statements("db.sales"), name_in_statements("/nowhere/sales")
        ('db.sales', '<its name>')
    """
    return name_folder(table) or _UNKNOWN if is_location(table) else table


def name_in_shell(table: str) -> str:
    """The same as an argument of a command."""
    name = name_in_statements(table)
    return name if name == _UNKNOWN else shlex.quote(name)


def phrase_names(location: str) -> str:
    """How a hint says by which name statements and commands take a location.

    Example:
        >>> phrase_names("/t")
        'Name it parquet.`/t`, delta.`/t` or hudi.`/t`, an Iceberg table by the name in its catalog.'
    """
    if recognize_folder(Path(_absolute(location))) == "iceberg":
        return "It is an Iceberg table: name it as its catalog does."
    known = name_folder(location)
    return f"Name it {shlex.quote(known) if known else _FORMS.format(_absolute(location))}."


def name_folder(location: str) -> str | None:
    """The format and path of the table in a local folder; None where these are no name."""
    path = _absolute(location)
    found = recognize_folder(Path(path))
    return f"{found}.`{path}`" if found not in (None, "iceberg") else None


def recognize_folder(path: Path) -> str | None:
    """The format of the table in a local folder, by the names of what lies in it; None where they tell of none."""
    try:
        names = sorted(one.name for one in path.iterdir())
        if "_delta_log" in names:
            return "delta"
        if ".hoodie" in names:
            return "hudi"
        if "metadata" in names and any((path / "metadata").glob("*.metadata.json")):
            return "iceberg"
    except OSError:
        return None
    shown = [name for name in names if not name.startswith((".", "_"))]
    if any(name.endswith(".parquet") for name in shown):
        return "parquet"
    partition = next((name for name in shown if "=" in name), None)
    return recognize_folder(path / partition) if partition else None


def _absolute(location: str) -> str:
    path = location.removeprefix("file://").removeprefix("file:")
    return location if "://" in path else os.path.normpath(Path(path).absolute())
