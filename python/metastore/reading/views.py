"""Views and SQL functions: their columns as the contract lists them, and rows of the views about distributions.

Typed values stand beside their texts, as docs/format.md stores them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.answers import to_arrow_table
from metastore.contract import read_contract
from metastore.format.object_schemas import SCHEMAS
from metastore.reading import distribution_rows
from metastore.reading.summary_rows import Row, render_edge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from metastore.format.table_column import Column
    from metastore.reading.column_details import ColumnDetails


_ARROW = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DECIMAL(38,0)": pa.decimal128(38, 0),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "MAP<STRING, STRING>": pa.map_(pa.string(), pa.string()),
    "MAP<STRING, BIGINT>": pa.map_(pa.string(), pa.int64()),
    "ARRAY<STRING>": pa.list_(pa.string()),
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


FUNCTIONS = {one["name"]: _schema(one["columns"]) for one in _CONTRACT["functions"]}
"""Schema by SQL function."""
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

FREQUENCIES, HISTOGRAMS, WIDE = "frequencies", "histograms", "histograms_wide"
NAMES = (FREQUENCIES, HISTOGRAMS, WIDE)


def build_view(name: str, rows: Iterable[Row], own_fields: Iterable[pa.Field] = ()) -> pa.Table:
    """The columns of a view, null where a row does not have them."""
    schema = pa.schema([*VIEWS[name], *own_fields])
    return to_arrow_table([{column: row.get(column) for column in schema.names} for row in rows], schema.names, schema)


def build_frequencies_view(found: Iterable[tuple[ColumnDetails, bool]], zone: str) -> pa.Table:
    """One row per column and value."""
    rows = []
    for details, exact in found:
        encoding = details.column.encoding
        typed = details.read_value_list(None)["value"].to_pylist() if details.has_value_list else []
        described = (
            distribution_rows.build_frequency_rows(details, None, zone, exact=exact) if details.has_value_list else []
        )
        files = [one and list(one.items()) for one in details.read_value_files()] if details.has_value_list else []
        rows += [
            {"column_name": details.column.name, **row, f"value_{encoding}": value, "files": holding}
            for row, value, holding in zip(described, typed, files, strict=True)
        ]
    return build_view(FREQUENCIES, rows)


def build_histograms_view(found: Iterable[tuple[ColumnDetails, bool]]) -> pa.Table:
    """One row per column, its edges and counts as lists."""
    rows = []
    for details, exact in found:
        bars = details.histogram()
        if bars is not None:
            rows.append(
                {
                    "column_name": details.column.name,
                    "kind": bars.kind,
                    "bins": len(bars.counts),
                    f"edges_{details.column.encoding}": list(bars.edges),
                    "counts": bars.counts.tolist(),
                    "distincts": None if bars.distincts is None else bars.distincts.tolist(),
                    "exact": exact and bool(bars.exact_bins.all()),
                }
            )
    return build_view(HISTOGRAMS, rows)


def build_wide_schema(columns: Iterable[Column]) -> pa.Schema:
    """The columns of `histograms_wide`: the number of an edge, and the edges of each column as texts."""
    return pa.schema([*VIEWS[WIDE], *(pa.field(one.name, pa.string()) for one in columns if one.encoding)])


def build_wide_view(found: Iterable[tuple[ColumnDetails, bool]], columns: Iterable[Column], zone: str) -> pa.Table:
    """One row per edge, one column per column of the table."""
    edges = {}
    for details, _ in found:
        bars = details.histogram()
        texts = [] if bars is None else [render_edge(details.column, details.summary, one, zone) for one in bars.edges]
        edges[details.column.name] = texts
    longest = max(map(len, edges.values()), default=0)
    schema = build_wide_schema(columns)
    filled = {name: [*edges.get(name, []), *[None] * (longest - len(edges.get(name, [])))] for name in schema.names[1:]}
    return pa.table({"edge": list(range(longest)), **filled}, schema=schema)
