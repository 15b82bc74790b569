"""The column that a user names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.suggestions import find_similar_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from metastore.format.table_column import Column


_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def split_name(text: str) -> tuple[str, ...]:
    """Split a multi-part SQL identifier at its dots."""
    parts: list[str] = []
    position = 0
    while True:
        found = _PART.match(text, position)
        if found is None:
            raise InvalidArgument("name", f"{text!r} is not a name", "Quote odd parts with back-ticks.")
        quoted, plain = found.groups()
        parts.append(plain.strip() if quoted is None else quoted.replace("``", "`"))
        position = found.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise InvalidArgument("name", f"{text!r} is not a name", "Quote odd parts with back-ticks.")
        position += 1


def quote_name(parts: Iterable[str]) -> str:
    """Write name parts as SQL, every part quoted."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def find_column(columns: Sequence[Column], name: str, table: str) -> Column:
    """The column of that name, as Spark finds it: case does not matter where that leaves one."""
    if "." not in name and "`" not in name:  # the usual case, without writing out a thousand names
        top = next((column for column in columns if column.path == (name,)), None)
        if top is not None:
            return top
    parts = split_leniently(name)
    exact = next((column for column in columns if name == column.name or parts == column.path), None)
    if exact is not None:
        return exact
    written, path = name.lower(), _lower(parts)
    folded = [column for column in columns if _lower(column.path) == path or column.name.lower() == written]
    if len(folded) == 1:
        return folded[0]
    fields = (column for column in columns if _lower(column.path[: len(path)]) == path != _lower(column.path))
    field = next(fields, None)
    if field is not None:
        raise InvalidArgument("column", f"{name} is a struct", f"Name a field of it, such as {field.name}.")
    names = [column.name for column in columns]
    raise ColumnNotFound(name, table, near=find_similar_names(name, names), known=names)


def split_leniently(name: str) -> tuple[str, ...]:
    """The parts of a name; what is none is one part."""
    try:
        return split_name(name)
    except InvalidArgument:
        return (name,)


def _lower(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


_GLOB = str.maketrans({character: f"\\{character}" for character in r"\*?[]{}"})


def location_sql(uri: str) -> str:
    """SQL of a data file as Hadoop's `Path` shows it, `DataFile.location`."""
    return f"regexp_replace(url_decode(replace({uri}, '+', '%2B')), '^([A-Za-z0-9+.-]+):///', '$1:/')"


LOCATION = location_sql("_metadata.file_path")
"""SQL of a row's data file, `DataFile.location`."""


def escape_glob(path: str) -> str:
    r"""A path for `spark.read`, which takes paths for patterns."""
    return path.translate(_GLOB)
