"""Reasons that reports show for columns, data files and parts that ANALYZE leaves out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


ONLY_COUNTS = {
    "array": "lists have row and null counts only",
    "map": "maps have row and null counts only",
    "variant": "variants have row and null counts only",
    "void": "a column of unknown type has row and null counts only",
    "time": "times have row and null counts only",
    "geometry": "geometries have row and null counts only",
    "geography": "geographies have row and null counts only",
}
"""Types whose values are not read."""
_FAMILY = re.compile(r"[a-z]+(?=[<( ]|\Z)")
"""The name of a type without its parameters."""

COLLATION = "strings of a collation other than UTF8_BINARY have row and null counts only"
NESTED_DEFAULT = "a default of a nested field applies only where its struct is present: unknown in this file"
REPLACED = "it was replaced while it was being read"
NO_ROWS_FOUND = "Spark found no row in it: it left the table meanwhile, or is damaged"
ROWS_DIFFER = "the rows read are not the number of rows that the table's metadata states"
NOT_PARQUET = "it is not a Parquet file"
ENCRYPTED = "it is encrypted"
UNSETTLED = "it was modified less than 2 seconds ago: analyze again when it rests"
HAS_LOG_FILES = "its log files change its rows"
MERGED = f"{HAS_LOG_FILES}: expressions are computed when they are compacted"
READERS_DIFFER = "it lacks a column of the expression, or has it in another type: Hudi's readers differ"
REMOTE = "its file system is reached through Spark alone"
"""Reasons that name one data file, or one column of it."""

NOTHING = "nothing is known"
ONLY_BOUNDS = "only counts and bounds are known"
"""What is known about values that readers cast; doubles made of floats have bounds."""

NOT_DISTRIBUTED = "some data file has not been analyzed, or keeps only some of its values and only Spark can read it"
"""A reason that names a column for which a distribution was requested."""

DAMAGED = "its statistics are damaged, and only FOR ALL COLUMNS computes them again"
"""A reason that names a block of the store."""

SNAPSHOT_DAMAGED = "its list of data files was damaged: it is left out"
"""A reason that names an earlier snapshot."""

EARLIER = "earlier snapshots"
"""The subject for data files and columns that the table no longer has, and that cannot be read again."""

_PARTS = {
    "summary": "summary",
    "sketches": "sketches",
    "frequencies": "lists of values",
    "histograms": "histograms",
    "placed": "numbers of listed rows",
    "ranks": "ranks of some columns",
}


def describe_lost_parts(parts: Sequence[str]) -> str:
    """Describe the statistics of an earlier snapshot that are lost."""
    return f"its {_name_parts(parts)} were damaged, and its data files may be gone: these are left out"


def describe_lost_files(paths: Sequence[str] | None, columns: Sequence[str]) -> str:
    """Describe the statistics of data files that are lost."""
    if paths is None:
        return "a list of data files was damaged: what it listed of earlier snapshots alone is left out"
    statistics = f"the statistics of {', '.join(columns)}"
    return f"{_count_files(paths)}, such as {paths[0]}: {statistics} were damaged and are left out"


def _count_files(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return "1 data file"
    return f"{len(paths)} data files"


def _name_parts(parts: Sequence[str]) -> str:
    return ", ".join(_PARTS[part] for part in parts)


def describe_other_type(file_type: str, table_type: str, paths: Sequence[str], knowledge: str = NOTHING) -> str:
    """Describe that data files have a column in another type, which readers cast."""
    verb = "holds" if len(paths) == 1 else "hold"
    holding = f"{_count_files(paths)}, such as {paths[0]}, {verb} it as {file_type}"
    return f"{holding}: {knowledge} of the {table_type} that is read"


def reason_for_counts_only(spark_type: str) -> str | None:
    """Return the reason why a type has counts only, or None."""
    if " collate " in spark_type:
        return COLLATION
    family = _FAMILY.match(spark_type)
    if family is None:
        return None
    return ONLY_COUNTS.get(family[0])
