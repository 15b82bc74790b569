"""Paths of data files as Spark spells them and wants them spelled."""

from __future__ import annotations

_GLOB = str.maketrans({character: f"\\{character}" for character in r"\*?[]{}"})


def location_of(uri: str) -> str:
    """SQL of a data file as Hadoop's `Path` shows it, `DataFile.location`.

    Args:
        uri: SQL of the URI that Spark shows. It has an empty host where there is none; plus signs mean themselves.

    Example:
        >>> location_of("file")
        "regexp_replace(url_decode(replace(file, '+', '%2B')), '^([A-Za-z0-9+.-]+):///', '$1:/')"
    """
    return f"regexp_replace(url_decode(replace({uri}, '+', '%2B')), '^([A-Za-z0-9+.-]+):///', '$1:/')"


LOCATION = location_of("_metadata.file_path")
"""SQL of a row's data file, `DataFile.location`."""


def literal(path: str) -> str:
    r"""A path for `spark.read`, which takes paths for patterns.

    Example:
        >>> print(literal("/t/p={a}/part-0.parquet"))
        /t/p=\{a\}/part-0.parquet
    """
    return path.translate(_GLOB)
