"""The columns of the views: first those of the SQL functions, then the typed ones of docs/format.md."""

from __future__ import annotations

import pyarrow as pa

from metastore.format.object_schemas import TABLE_RANKS, TABLE_SUMMARY

_TIME = pa.timestamp("us", "UTC")
_TEXT, _LONG, _DOUBLE, _YES = pa.string(), pa.int64(), pa.float64(), pa.bool_()

SUMMARY = pa.schema(
    [
        ("column_name", _TEXT),
        ("column_type", _TEXT),
        ("min", _TEXT),
        ("max", _TEXT),
        ("approx_unique", _LONG),
        ("avg", _DOUBLE),
        ("std", _DOUBLE),
        ("q25", _TEXT),
        ("q50", _TEXT),
        ("q75", _TEXT),
        ("count", _LONG),
        ("null_percentage", _DOUBLE),
        ("null_count", _LONG),
        ("nan_count", _LONG),
        ("avg_len", _DOUBLE),
        ("max_len", _LONG),
        ("top_value", _TEXT),
        ("top_count", _LONG),
        ("size_bytes", _LONG),
        ("exact", _YES),
        ("distinct_error", _DOUBLE),
        ("files", _LONG),
        ("files_total", _LONG),
        ("snapshot", _TEXT),
        ("current", _YES),
        ("analyzed_at", _TIME),
        ("user_defined", pa.map_(_TEXT, _TEXT)),
    ]
)

FILES = pa.schema(
    [
        ("path", _TEXT),
        ("size", _LONG),
        ("rows", _LONG),
        ("deleted_rows", _LONG),
        ("partition", pa.map_(_TEXT, _TEXT)),
        ("analyzed", _YES),
        ("columns_analyzed", _LONG),
    ]
)

COLUMNS = pa.schema(
    [
        ("path", _TEXT),
        ("column_name", _TEXT),
        ("min", _TEXT),
        ("max", _TEXT),
        ("rows", _LONG),
        ("null_count", _LONG),
        ("nan_count", _LONG),
        ("distinct", _LONG),
        ("frequencies_kept", _TEXT),
    ]
)

SNAPSHOTS = pa.schema(
    [
        ("snapshot", _TEXT),
        ("analyzed_at", _TIME),
        ("files", _LONG),
        ("files_total", _LONG),
        ("rows", _LONG),
        ("columns", _LONG),
        ("current", _YES),
        ("size_bytes", _LONG),
        ("live_size_bytes", _LONG),
    ]
)

TABLES = pa.schema(
    [
        ("table", _TEXT),
        ("format", _TEXT),
        ("location", _TEXT),
        ("snapshot", _TEXT),
        ("current", _YES),
        ("analyzed_at", _TIME),
    ]
)

FREQUENCIES = pa.schema(
    [("value", _TEXT), ("frequency", _LONG), ("fraction", _DOUBLE), ("exact", _YES), ("error", _LONG)]
)

HISTOGRAM = pa.schema(
    [("bin", _LONG), ("lo", _TEXT), ("hi", _TEXT), ("count", _LONG), ("distinct", _LONG), ("exact", _YES)]
)

QUANTILES = pa.schema([("probability", _DOUBLE), ("value", _TEXT), ("exact", _YES), ("error", _DOUBLE)])

LOCATE = pa.schema([("path", _TEXT), ("frequency", _LONG), ("exact", _YES)])

_STORED = ("column", "file", "files", "frequencies")
STATISTICS = [field for field in TABLE_SUMMARY if field.name not in _STORED]
"""The typed fields of a row of statistics, as both views show them."""


def _with_statistics(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, *(field for field in STATISTICS if field.name not in schema.names)])


RANKS = pa.schema([("column_name", _TEXT), *(field for field in TABLE_RANKS if field.name != "column")])

FUNCTIONS = {
    "summary": SUMMARY,
    "frequencies": FREQUENCIES,
    "histogram": HISTOGRAM,
    "quantiles": QUANTILES,
    "locate": LOCATE,
    "files": FILES,
    "columns": COLUMNS,
    "snapshots": SNAPSHOTS,
    "tables": TABLES,
}
"""Schema by SQL function."""

NARROWED = {
    **dict.fromkeys(("summary", "columns", "frequencies", "histograms", "histograms_wide"), ("column", "file")),
    "ranks": ("column",),
}
"""Which options of the data source narrow a view."""

VIEWS = {
    "summary": _with_statistics(SUMMARY),
    "files": FILES,
    "columns": _with_statistics(COLUMNS),
    "frequencies": pa.schema(
        [
            ("column_name", _TEXT),
            *FREQUENCIES,
            ("value_long", _LONG),
            ("value_double", _DOUBLE),
            ("value_binary", pa.binary()),
            ("files", pa.map_(_TEXT, _LONG)),
        ]
    ),
    "histograms": pa.schema(
        [
            ("column_name", _TEXT),
            ("kind", _TEXT),
            ("bins", _LONG),
            ("edges_long", pa.list_(_LONG)),
            ("edges_double", pa.list_(_DOUBLE)),
            ("edges_binary", pa.list_(pa.binary())),
            ("counts", pa.list_(_LONG)),
            ("distincts", pa.list_(_LONG)),
            ("exact", _YES),
        ]
    ),
    "histograms_wide": pa.schema([("edge", _LONG)]),
    "snapshots": SNAPSHOTS,
    "ranks": RANKS,
}
"""Schema by view of the data source."""
