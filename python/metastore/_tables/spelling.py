"""Paths of data files as Spark spells them and wants them spelled."""

from __future__ import annotations

_GLOB = str.maketrans({character: f"\\{character}" for character in r"\*?[]{}"})

LOCATION = r"regexp_replace(url_decode(replace(_metadata.file_path, '+', '%2B')), '^([A-Za-z0-9+.-]+):///', '$1:/')"
"""SQL of a row's data file as Hadoop's `Path` shows it, `DataFile.location`.

Spark's column is a URI, with an empty host where there is none; plus signs mean themselves.
"""


def literal(path: str) -> str:
    r"""A path for `spark.read`, which takes paths for patterns.

    Example:
        >>> print(literal("/t/p={a}/part-0.parquet"))
        /t/p=\{a\}/part-0.parquet
    """
    return path.translate(_GLOB)
