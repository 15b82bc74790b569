"""Reads the properties of a Delta table from its log, without Spark."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from metastore.store.folder import Folder

_LOG = get_logger(__name__)
_COMMIT_OR_CHECKPOINT = re.compile(r"\d{20}(\.json|\.checkpoint(\.[0-9a-f.-]+)?\.(json|parquet))")
_CONFIGURATION = "metaData.configuration"


def read_properties(table: Folder) -> Mapping[str, str] | None:
    """Return the table properties of the newest version, or None if the log cannot be read or has none."""
    log = table / "_delta_log"
    names = filter(_COMMIT_OR_CHECKPOINT.fullmatch, log.names())
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
    for action in _read_actions(name, data):
        metadata = action.get("metaData")
        if metadata is not None:
            return dict(metadata.get("configuration") or {})
    return None


def _read_actions(name: str, data: bytes) -> Iterable[dict[str, Any]]:
    """Read the actions of a commit or a checkpoint; those of a checkpoint only have the configuration."""
    if not name.endswith(".parquet"):
        return map(json.loads, data.splitlines())
    checkpoint = pq.ParquetFile(pa.BufferReader(data))
    actions: list[dict[str, Any]] = checkpoint.read([_CONFIGURATION]).to_pylist()
    return actions
