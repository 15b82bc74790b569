"""Reads the properties of a Delta table from its log, without Spark."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from metastore.reading.folder import Folder

_LOG = get_logger(__name__)
_COMMIT_OR_CHECKPOINT = re.compile(r"\d{20}(\.json|\.checkpoint(\.[0-9a-f.-]+)?\.(json|parquet))")
_CONFIGURATION = "metaData.configuration"


def read_properties(table: Folder) -> Mapping[str, str] | None:
    """Return the table properties of the newest version, or None if the log cannot be read or has none."""
    log = table / "_delta_log"
    names = [name for name in log.names() if _COMMIT_OR_CHECKPOINT.fullmatch(name)]
    # Names begin with the version. The commit of a version comes before its checkpoint, which is larger.
    for name in sorted(names, reverse=True):
        try:
            properties = _find_properties(name, log.read(name))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _LOG.info("%s of %s cannot be read, the table's properties are unknown: %s", name, log.uri, error)
            return None
        if properties is not None:
            return properties
    return None


def _find_properties(name: str, data: bytes | None) -> dict[str, str] | None:
    """Return the table properties that a file of the log sets, or None."""
    if data is None:
        return None
    actions = _read_checkpoint(data) if name.endswith(".parquet") else map(json.loads, data.splitlines())
    for action in actions:
        metadata = action.get("metaData")
        if metadata is not None:
            return dict(metadata.get("configuration") or {})
    return None


def _read_checkpoint(data: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.ParquetFile(pa.BufferReader(data)).read([_CONFIGURATION]).to_pylist()
    return rows
