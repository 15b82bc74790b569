"""Views and SQL functions: their columns by the contract, and the rows of views about distributions.

Views have each value as a text and in its stored type (docs/format.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.answers import to_arrow_table
from metastore.contract import read_contract
from metastore.format.object_layout import HISTOGRAM_KIND
from metastore.format.object_schemas import SCHEMAS
from metastore.reading import distribution_rows
from metastore.reading.summary_rows import Row, render_edge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.format.table_column import Column
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.column_distributions import ColumnDistribution


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

_LEFT_OUT = ("column", "files", "frequencies")
"""Stored fields for which the view has a more readable column."""


def _make_schema(columns: Iterable[str]) -> pa.Schema:
    """Return the schema of columns such as `path STRING`."""
    fields = []
    for column in columns:
        name, kind = column.split(" ", 1)
        fields.append((name, _ARROW[kind]))
    return pa.schema(fields)


FUNCTIONS = {function["name"]: _make_schema(function["columns"]) for function in _CONTRACT["functions"]}
"""Schema by SQL function."""
SUMMARY = FUNCTIONS["summary"]
COLUMNS = FUNCTIONS["columns"]

NARROWED = {view["name"]: tuple(view["narrowed_by"]) for view in _CONTRACT["views"] if "narrowed_by" in view}
"""Options of the data source that narrow a view, by view."""


def _make_view_schema(view: Mapping[str, Any]) -> pa.Schema:
    """Return the columns of a view: those of its function, then the typed ones of its object."""
    schema = FUNCTIONS.get(view.get("function", ""), _make_schema(view.get("columns", ())))
    stored = SCHEMAS.get(view.get("object", ""), ())
    left_out = {*_LEFT_OUT, *schema.names}
    return pa.schema([*schema, *(field for field in stored if field.name not in left_out)])


VIEWS = {view["name"]: _make_view_schema(view) for view in _CONTRACT["views"]}
"""Schema by view of the data source."""
RANKS = VIEWS["ranks"]

FREQUENCIES = "frequencies"
HISTOGRAMS = "histograms"
WIDE = "histograms_wide"
NAMES = (FREQUENCIES, HISTOGRAMS, WIDE)


def build_view(name: str, rows: Iterable[Row], fields: Iterable[pa.Field] = ()) -> pa.Table:
    """Build a view with more fields; a column is null if a row does not have it."""
    schema = pa.schema([*VIEWS[name], *fields])
    selected = [{column: row.get(column) for column in schema.names} for row in rows]
    return to_arrow_table(selected, schema.names, schema)


def build_distribution_view(
    name: str, distributions: Sequence[ColumnDistribution], columns: Iterable[Column], zone: str
) -> pa.Table:
    """Build `frequencies`, `histograms` or `histograms_wide` of columns."""
    if name == FREQUENCIES:
        return _build_frequencies(distributions, zone)
    if name == HISTOGRAMS:
        return _build_histograms(distributions)
    return _build_wide_histograms(distributions, columns, zone)


def _build_frequencies(distributions: Iterable[ColumnDistribution], zone: str) -> pa.Table:
    """Return one row per column and value."""
    rows = []
    for distribution in distributions:
        if distribution.details.has_value_list:
            rows += _list_frequencies(distribution, zone)
    return build_view(FREQUENCIES, rows)


def _list_frequencies(distribution: ColumnDistribution, zone: str) -> list[Row]:
    details = distribution.details
    column = details.column
    values = details.read_value_list(None)["value"].to_pylist()
    frequencies = distribution_rows.build_frequency_rows(details, None, zone, exact=distribution.exact)
    rows = []
    for row, value, files in zip(frequencies, values, details.read_value_files(), strict=True):
        row["column_name"] = column.name
        row[f"value_{column.encoding}"] = value
        row["files"] = list(files.items()) if files else None
        rows.append(row)
    return rows


def _build_histograms(distributions: Iterable[ColumnDistribution]) -> pa.Table:
    """Return one row per column, its edges and counts as lists."""
    rows = []
    for distribution in distributions:
        column = distribution.details.column
        histogram = distribution.details.histogram()
        if histogram is None:
            continue
        row = {
            "column_name": column.name,
            "kind": HISTOGRAM_KIND,
            "bins": len(histogram.counts),
            f"edges_{column.encoding}": list(histogram.edges),
            "counts": histogram.counts.tolist(),
            "distincts": histogram.list_distincts(),
            "exact": distribution.exact and bool(histogram.exact_bins.all()),
        }
        rows.append(row)
    return build_view(HISTOGRAMS, rows)


def make_wide_schema(columns: Iterable[Column]) -> pa.Schema:
    """Make the columns of `histograms_wide`: the number of an edge, and the edges of each column as texts."""
    fields = [pa.field(column.name, pa.string()) for column in columns if column.encoding]
    return pa.schema([*VIEWS[WIDE], *fields])


def _build_wide_histograms(
    distributions: Iterable[ColumnDistribution], columns: Iterable[Column], zone: str
) -> pa.Table:
    """Return one row per edge, one column per column of the table."""
    edges = {}
    for distribution in distributions:
        details = distribution.details
        edges[details.column.name] = _render_edges(details, zone)
    rows = max(map(len, edges.values()), default=0)
    schema = make_wide_schema(columns)
    table: dict[str, Sequence[Any]] = {"edge": range(rows)}
    for name in schema.names[1:]:
        texts = edges.get(name, [])
        table[name] = texts + [None] * (rows - len(texts))
    return pa.table(table, schema=schema)


def _render_edges(details: ColumnDetails, zone: str) -> list[str | None]:
    histogram = details.histogram()
    if histogram is None:
        return []
    return [render_edge(details.column, details.summary, edge, zone) for edge in histogram.edges]
