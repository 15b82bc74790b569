"""The Arrow schemas of all kinds of objects, exactly as docs/format.md lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.contract import read_contract

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAP_TEXT = pa.map_(pa.string(), pa.string())
_MAP_BINARY = pa.map_(pa.string(), pa.binary())


ENCODED_TYPES = {"long": pa.int64(), "double": pa.float64(), "binary": pa.binary()}


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


DETAILS = ("sketches", "frequencies", "histograms")
"""The kinds of detail objects, which the rows of `files` name."""


def list_detail_fields(kind: str) -> list[pa.Field]:
    """List the fields of `files` about details of a kind."""
    return [
        pa.field(f"{kind}_name", pa.string()),
        pa.field(f"{kind}_length", pa.int64()),
        pa.field(f"{kind}_sha256", pa.string()),
        pa.field(f"{kind}_footer_length", pa.int64()),
        pa.field(f"{kind}_footer_sha256", pa.string()),
        pa.field(f"{kind}_file", pa.int32()),
    ]


FILES = pa.schema(
    [
        _required("file", pa.int32()),
        _required("path", pa.string()),
        _required("size", pa.int64()),
        pa.field("modified", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("partition", _MAP_TEXT),
        *(field for kind in DETAILS for field in list_detail_fields(kind)),
    ]
)

_TYPES = {
    "text": pa.string(),
    "boolean": pa.bool_(),
    "decimal(38,0)": pa.decimal128(38, 0),
    "map<text,binary>": _MAP_BINARY,
    **ENCODED_TYPES,
    **{f"list<{name}>": pa.list_(kind) for name, kind in ENCODED_TYPES.items()},
}
_BUILT_IN = read_contract("statistics")
_STATISTICS = [pa.field(statistic["name"], _TYPES[statistic["type"]]) for statistic in _BUILT_IN]
_NAMES = [statistic["name"] for statistic in _BUILT_IN]

_VALUE_LISTS = [
    pa.field("value_long", pa.int64()),
    pa.field("value_double", pa.float64()),
    pa.field("value_binary", pa.binary()),
    pa.field("frequency", pa.int64()),
]

_BINS = [
    pa.field("kind", pa.string()),
    pa.field("edges_long", pa.list_(pa.int64())),
    pa.field("edges_double", pa.list_(pa.float64())),
    pa.field("edges_binary", pa.list_(pa.binary())),
    pa.field("counts", pa.list_(pa.int64())),
    pa.field("distincts", pa.list_(pa.int64())),
]

SUMMARY = pa.schema([_required("column", pa.int32()), _required("file", pa.int32()), *_STATISTICS])

ZONES = pa.schema(
    [
        _required("column", pa.int32()),
        _required("zone", pa.int32()),
        *_STATISTICS[: _NAMES.index("lo_exact")],
    ]
)

SKETCHES = pa.schema(
    [
        _required("column", pa.int32()),
        _required("file", pa.int32()),
        pa.field("theta", pa.binary()),
        pa.field("bloom", pa.binary()),
        pa.field("registers", pa.binary()),
    ]
)

FREQUENCIES = pa.schema([_required("column", pa.int32()), _required("file", pa.int32()), *_VALUE_LISTS])

HISTOGRAMS = pa.schema([_required("column", pa.int32()), _required("file", pa.int32()), *_BINS])

TABLE_FILES = pa.schema(
    [
        pa.field("block", pa.string()),
        pa.field("file", pa.int32()),
        _required("path", pa.string()),
        _required("size", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("deletes", pa.string()),
        pa.field("deleted_rows", pa.int64()),
        pa.field("log_files", pa.int32()),
        pa.field("modified", pa.int64()),
        pa.field("delete_files", pa.string()),
    ]
)

_FIRST_ADDED = _NAMES.index("singles") + 1  # columns are added at the end alone
TABLE_SUMMARY = pa.schema(
    [
        _required("column", pa.int32()),
        *_STATISTICS[:_FIRST_ADDED],
        pa.field("files", pa.int32()),
        pa.field("frequencies_algorithm", pa.string()),
        *_STATISTICS[_FIRST_ADDED:],
    ]
)

TABLE_SKETCHES = pa.schema([_required("column", pa.int32()), pa.field("theta", pa.binary())])

TABLE_FREQUENCIES = pa.schema(
    [
        _required("column", pa.int32()),
        *_VALUE_LISTS,
        pa.field("error", pa.int64()),
        pa.field("files_sparse", pa.map_(pa.int32(), pa.int64())),
        pa.field("files_dense", pa.list_(pa.int64())),
    ]
)

_EDGE_ERRORS = pa.field("errors", pa.list_(pa.int64()))

TABLE_HISTOGRAMS = pa.schema([_required("column", pa.int32()), *_BINS, _EDGE_ERRORS])

TABLE_RANKS = pa.schema(
    [
        _required("column", pa.int32()),
        *_VALUE_LISTS[:3],
        _required("rank", pa.int64()),
    ]
)

TABLE_PLACED = pa.schema(
    [
        _required("column", pa.int32()),
        _required("file", pa.int32()),
        _required("rows", pa.int64()),
    ]
)

_NOT_IN_GROUPS = {statistic["name"] for statistic in _BUILT_IN if statistic["merge"] == "not in groups"}

TABLE_NODES = pa.schema(
    [
        _required("node", pa.binary()),
        *(field for field in _STATISTICS if field.name not in _NOT_IN_GROUPS),
        pa.field("theta", pa.binary()),
        pa.field("registers", pa.binary()),
    ]
)

TABLE_HISTOGRAM_NODES = pa.schema([_required("node", pa.binary()), *_BINS, _EDGE_ERRORS])

TABLE_LIST_NODES = pa.schema(
    [
        _required("node", pa.binary()),
        _required("number", pa.int64()),
        *(pa.field(f"values_{name}", pa.list_(kind)) for name, kind in ENCODED_TYPES.items()),
        pa.field("frequencies", pa.list_(pa.int64())),
        pa.field("listed", pa.list_(pa.int64())),
    ]
)

SCHEMAS: dict[str, pa.Schema] = {
    "files": FILES,
    "summary": SUMMARY,
    "zones": ZONES,
    "sketches": SKETCHES,
    "frequencies": FREQUENCIES,
    "histograms": HISTOGRAMS,
    "table-files": TABLE_FILES,
    "table-summary": TABLE_SUMMARY,
    "table-sketches": TABLE_SKETCHES,
    "table-frequencies": TABLE_FREQUENCIES,
    "table-histograms": TABLE_HISTOGRAMS,
    "table-ranks": TABLE_RANKS,
    "table-placed": TABLE_PLACED,
    "table-nodes": TABLE_NODES,
    "table-histogram-nodes": TABLE_HISTOGRAM_NODES,
    "table-list-nodes": TABLE_LIST_NODES,
}
"""Schema by kind of object; the kind is the part of an object's name before its uuid."""


def fill_schema(schema: pa.Schema, columns: Mapping[str, Any], rows: int) -> pa.Table:
    """Make a table of so many rows; the other columns of the schema are null."""
    arrays = []
    for field in schema:
        array = columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
        arrays.append(array)
    return pa.table(arrays, schema=schema)
