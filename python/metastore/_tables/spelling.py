"""Paths of data files as Spark spells them and wants them spelled."""

from __future__ import annotations

_GLOB = str.maketrans({character: f"\\{character}" for character in r"\*?[]{}"})


def location_sql(uri: str) -> str:
    """SQL of a data file as Hadoop's `Path` shows it, `DataFile.location`."""
    return f"regexp_replace(url_decode(replace({uri}, '+', '%2B')), '^([A-Za-z0-9+.-]+):///', '$1:/')"


LOCATION = location_sql("_metadata.file_path")
"""SQL of a row's data file, `DataFile.location`."""


def escape_glob(path: str) -> str:
    r"""A path for `spark.read`, which takes paths for patterns."""
    return path.translate(_GLOB)
