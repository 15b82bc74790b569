"""The Arrow schemas of all kinds of objects, exactly as docs/format.md lists them."""

from __future__ import annotations

import pyarrow as pa

_MAP_TEXT = pa.map_(pa.string(), pa.string())
_MAP_BINARY = pa.map_(pa.string(), pa.binary())


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


FILES = pa.schema(
    [
        _required("file", pa.int32()),
        _required("path", pa.string()),
        _required("size", pa.int64()),
        pa.field("modified", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("partition", _MAP_TEXT),
        pa.field("sketches_name", pa.string()),
        pa.field("sketches_length", pa.int64()),
        pa.field("sketches_sha256", pa.string()),
        pa.field("sketches_footer_length", pa.int64()),
        pa.field("sketches_footer_sha256", pa.string()),
        pa.field("sketches_file", pa.int32()),
    ]
)

_STATISTICS = [
    pa.field("rows", pa.int64()),
    pa.field("nulls", pa.int64()),
    pa.field("nans", pa.int64()),
    pa.field("lo_long", pa.int64()),
    pa.field("hi_long", pa.int64()),
    pa.field("lo_double", pa.float64()),
    pa.field("hi_double", pa.float64()),
    pa.field("lo_binary", pa.binary()),
    pa.field("hi_binary", pa.binary()),
    pa.field("lo_exact", pa.bool_()),
    pa.field("hi_exact", pa.bool_()),
    pa.field("distinct", pa.int64()),
    pa.field("distinct_error", pa.float64()),
    pa.field("sum_exact", pa.decimal128(38, 0)),
    pa.field("sum", pa.float64()),
    pa.field("mean", pa.float64()),
    pa.field("m2", pa.float64()),
    pa.field("avg_len", pa.float64()),
    pa.field("max_len", pa.int64()),
    pa.field("trues", pa.int64()),
    pa.field("compressed_bytes", pa.int64()),
    pa.field("uncompressed_bytes", pa.int64()),
    pa.field("frequencies", pa.string()),
    pa.field("frequencies_floor", pa.int64()),
    pa.field("percentiles_long", pa.list_(pa.int64())),
    pa.field("percentiles_double", pa.list_(pa.float64())),
    pa.field("percentiles_binary", pa.list_(pa.binary())),
    pa.field("extra", _MAP_BINARY),
]

SUMMARY = pa.schema([_required("column", pa.int32()), _required("file", pa.int32()), *_STATISTICS])

SKETCHES = pa.schema([_required("column", pa.int32()), _required("file", pa.int32()), pa.field("theta", pa.binary())])

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
    ]
)

TABLE_SUMMARY = pa.schema([_required("column", pa.int32()), *_STATISTICS, pa.field("files", pa.int32())])

TABLE_SKETCHES = pa.schema([_required("column", pa.int32()), pa.field("theta", pa.binary())])

SCHEMAS: dict[str, pa.Schema] = {
    "files": FILES,
    "summary": SUMMARY,
    "sketches": SKETCHES,
    "table-files": TABLE_FILES,
    "table-summary": TABLE_SUMMARY,
    "table-sketches": TABLE_SKETCHES,
}
"""Schema by kind of object; the kind is the part of an object's name before its uuid."""
