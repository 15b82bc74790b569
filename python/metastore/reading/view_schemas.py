"""The columns of functions and views, as the contract lists them, then the typed ones of docs/format.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.contract import read_contract
from metastore.format.object_schemas import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_ARROW = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "MAP<STRING, STRING>": pa.map_(pa.string(), pa.string()),
    "MAP<STRING, BIGINT>": pa.map_(pa.string(), pa.int64()),
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
    "ARRAY<DOUBLE>": pa.list_(pa.float64()),
    "ARRAY<BINARY>": pa.list_(pa.binary()),
}
_CONTRACT = read_contract("functions")

_UNSHOWN = ("column", "files", "frequencies")
"""Stored fields that a text of the same row says better."""


def _schema(columns: Iterable[str]) -> pa.Schema:
    pairs = (column.split(" ", 1) for column in columns)
    return pa.schema([(name, _ARROW[kind]) for name, kind in pairs])


FUNCTIONS = {one["name"]: _schema(one["columns"]) for one in _CONTRACT["functions"] if one.get("without_spark")}
"""Schema by SQL function that Python answers, too."""
SUMMARY, COLUMNS = FUNCTIONS["summary"], FUNCTIONS["columns"]

NARROWED = {one["name"]: tuple(one["narrowed_by"]) for one in _CONTRACT["views"] if "narrowed_by" in one}
"""Which options of the data source narrow a view."""


def _view(declared: Mapping[str, Any]) -> pa.Schema:
    told = FUNCTIONS[declared["function"]] if "function" in declared else _schema(declared["columns"])
    stored = SCHEMAS[declared["object"]] if "object" in declared else ()
    return pa.schema([*told, *(field for field in stored if field.name not in (*_UNSHOWN, *told.names))])


VIEWS = {one["name"]: _view(one) for one in _CONTRACT["views"]}
"""Schema by view of the data source."""
RANKS = VIEWS["ranks"]
