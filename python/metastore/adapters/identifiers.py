"""SQL names: split, quoted, and resolved to columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.suggestions import find_similar_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from metastore.errors import MetastoreError
    from metastore.format.table_column import Column


_NEEDS_QUOTES = re.compile(r"[.`]")
_PART = re.compile(r"(`(?:[^`]|``)*`)|([^.`]+)")
_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")


def split_name(text: str) -> tuple[str, ...]:
    """Split a multi-part SQL identifier at its dots."""
    if not _NAME.fullmatch(text):
        raise InvalidArgument("name", f"{text!r} is not a name", "Quote odd parts with back-ticks.")
    parts = []
    for quoted, plain in _PART.findall(text):
        part = quoted[1:-1].replace("``", "`") if quoted else plain.strip()
        parts.append(part)
    return tuple(parts)


def quote_name(parts: Iterable[str]) -> str:
    """Write name parts as SQL, every part quoted."""
    quoted = ["`" + part.replace("`", "``") + "`" for part in parts]
    return ".".join(quoted)


def find_column(columns: Sequence[Column], name: str, table: str) -> Column:
    """Find the column of a name as Spark does: in the same case, or in another case if only one column matches."""
    exact = _find_exactly(columns, name)
    if exact is not None:
        return exact
    in_any_case = _find_in_any_case(columns, name)
    if len(in_any_case) == 1:
        return in_any_case[0]
    raise _explain_missing(columns, name, table)


def _explain_missing(columns: Sequence[Column], name: str, table: str) -> MetastoreError:
    """Make the error for a name that is no column: it may be a struct."""
    field = _find_field(columns, name)
    if field is not None:
        return InvalidArgument("column", f"{name} is a struct", f"Name a field of it, such as {field.name}.")
    names = [column.name for column in columns]
    return ColumnNotFound(name, table, near=find_similar_names(name, names), known=names)


def narrow_columns(columns: Sequence[Column], name: str | None, table: str) -> Sequence[Column]:
    """Find the column of a name, or all columns without a name."""
    if not name:
        return columns
    return [find_column(columns, name, table)]


def _find_exactly(columns: Sequence[Column], name: str) -> Column | None:
    # Most names are those of top-level columns, whose paths are compared first: making all names takes longer.
    if not _NEEDS_QUOTES.search(name):
        for column in columns:
            if column.path == (name,):
                return column
    path = split_leniently(name)
    for column in columns:
        if column.path == path or column.name == name:
            return column
    return None


def _find_in_any_case(columns: Sequence[Column], name: str) -> list[Column]:
    path = _to_lower(split_leniently(name))
    lower_name = name.lower()

    def has_name(column: Column) -> bool:
        return _to_lower(column.path) == path or column.name.lower() == lower_name

    return list(filter(has_name, columns))


def _find_field(columns: Sequence[Column], name: str) -> Column | None:
    """Find a field of the struct of that name, in any case."""
    path = _to_lower(split_leniently(name))
    for column in columns:
        *parents, _ = _to_lower(column.path)
        if tuple(parents[: len(path)]) == path:
            return column
    return None


def split_leniently(name: str) -> tuple[str, ...]:
    """Split a name into its parts; a text that is not a name is one part."""
    try:
        return split_name(name)
    except InvalidArgument:
        return (name,)


def _to_lower(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


_GLOB = str.maketrans({character: f"\\{character}" for character in r"\*?[]{}"})


def location_sql(uri: str) -> str:
    """Write SQL of a data file as Hadoop's `Path` shows it, `DataFile.location`."""
    return f"regexp_replace(url_decode(replace({uri}, '+', '%2B')), '^([A-Za-z0-9+.-]+):///', '$1:/')"


LOCATION = location_sql("_metadata.file_path")
"""SQL of a row's data file, `DataFile.location`."""


def escape_glob(path: str) -> str:
    r"""Escape a path for `spark.read`, which treats paths as patterns."""
    return path.translate(_GLOB)
