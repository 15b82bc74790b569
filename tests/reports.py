"""A report of an ANALYZE, of which tests replace what they look at."""

from __future__ import annotations

from metastore.pipeline.report import AnalyzeReport

REPORT = AnalyzeReport(
    table="db.t",
    format="parquet",
    snapshot="1",
    files=1,
    files_read=1,
    files_total=1,
    rows=10,
    columns=3,
    bytes_read=100,
    objects=5,
    committed=True,
    refused=(),
    seconds=1.0,
)
