"""Paths as Spark's `_metadata.file_path` spells them, and as Hadoop does."""

from __future__ import annotations

import re
from urllib.parse import unquote

_EMPTY_HOST = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):///")


def decoded(path: str) -> str:
    """A path of `_metadata.file_path` as Hadoop's `Path` shows it: decoded once, without an empty host.

    Example:
        >>> decoded("file:///t/p=a%2520b/part-0.parquet"), decoded("s3a://b/t/part%200")
        ('file:/t/p=a%20b/part-0.parquet', 's3a://b/t/part 0')
    """
    return _EMPTY_HOST.sub(r"\1:/", unquote(path))
