"""Detail objects of data files: rows of value lists and histograms."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.object_layout import histogram_fields
from metastore.format.object_schemas import (
    ENCODED_TYPES,
    FREQUENCIES,
    HISTOGRAMS,
    SKETCHES,
    SUMMARY,
    TABLE_SKETCHES,
    TABLE_SUMMARY,
    fill_schema,
)
from metastore.kernel.built_in_statistics import COMPUTED_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from metastore.kernel.column_statistics import ColumnStatistics

    Rows = Iterable[tuple[int, int, ColumnStatistics]]


_TYPED = ("lo", "hi", "percentiles")
_SUM_LIMIT = 10**38


def value_count_rows(rows: Rows) -> pa.Table:
    """Rows of the schema `frequencies`: each list by falling frequency, then value."""
    parts = [_list_of(*row) for row in rows if row[2].values is not None and len(row[2].values)]
    return pa.concat_tables([FREQUENCIES.empty_table(), *parts])


def file_histogram_rows(rows: Rows) -> pa.Table:
    """Rows of the schema `histograms`."""
    found = [(column, file, known.encoding, known.histogram) for column, file, known in rows if known.histogram]
    given = histogram_fields([row[2:] for row in found])
    given |= {name: pa.array([row[at] for row in found], pa.int32()) for at, name in enumerate(("column", "file"))}
    return fill_schema(HISTOGRAMS, given, len(found))


def _list_of(column: int, file: int, known: ColumnStatistics) -> pa.Table:
    assert known.values is not None  # noqa: S101 - chosen by the caller
    ranked = known.values.sort_by_count()
    number = len(ranked)
    places = {name: np.full(number, at, np.int32) for name, at in (("column", column), ("file", file))}
    given = {**places, f"value_{known.encoding}": ranked.values, "frequency": ranked.counts}
    return fill_schema(FREQUENCIES, given, number)


def block_rows(rows: Sequence[tuple[int, int, ColumnStatistics]]) -> dict[str, pa.Table]:
    """The rows of all objects that hold the same statistics, by their kind."""
    return {
        "summary": summary_rows(rows),
        "sketches": sketch_rows(rows),
        "frequencies": value_count_rows(rows),
        "histograms": file_histogram_rows(rows),
    }


def summary_rows(rows: Rows) -> pa.Table:
    """A table of the schema `summary`."""
    return _file_rows(SUMMARY, rows)


def partial_aggregate_row(known: ColumnStatistics, schema: pa.Schema) -> pa.Table:
    """One row with some fields of the schema `summary`."""
    return _table(schema, [known])


def sketch_rows(rows: Rows) -> pa.Table:
    """A table of the schema `sketches`: of the same rows, those that have a sketch or a filter."""
    return _file_rows(
        SKETCHES, (row for row in rows if (row[2].theta, row[2].registers, row[2].bloom) != (None, None, None))
    )


def table_summary_rows(rows: Iterable[tuple[int, ColumnStatistics, int]]) -> pa.Table:
    """A table of the schema `table-summary`."""
    ordered = sorted(rows, key=lambda row: row[0])
    files = [row[2] for row in ordered]
    return _table(TABLE_SUMMARY, [row[1] for row in ordered], column=[row[0] for row in ordered], files=files)


def table_sketch_rows(rows: Iterable[tuple[int, ColumnStatistics, int]]) -> pa.Table:
    """A table of the schema `table-sketches`: of the same rows, those that have a sketch."""
    ordered = sorted((row for row in rows if row[1].theta is not None), key=lambda row: row[0])
    return _table(TABLE_SKETCHES, [row[1] for row in ordered], column=[row[0] for row in ordered])


def _file_rows(schema: pa.Schema, rows: Rows) -> pa.Table:
    ordered = sorted(rows, key=lambda row: row[:2])
    ordinals = {"column": [row[0] for row in ordered], "file": [row[1] for row in ordered]}
    return _table(schema, [row[2] for row in ordered], **ordinals)


def _table(schema: pa.Schema, statistics: list[ColumnStatistics], **ordinals: list[int]) -> pa.Table:
    columns = (ordinals[name] if name in ordinals else _values(name, statistics) for name in schema.names)
    rows = [dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    # One array of rows costs half of what one for each field does.
    batch = pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct(list(schema))))
    return pa.Table.from_batches([batch])


def _values(field: str, statistics: list[ColumnStatistics]) -> list[Any]:
    """The values of a field of the schema `summary`."""
    name, _, encoding = field.rpartition("_")
    if name in _TYPED and encoding in ENCODED_TYPES:
        return [getattr(one, name) if one.encoding == encoding else None for one in statistics]
    if field in COMPUTED_NAMES:
        return [one.numbers.get(field) for one in statistics]
    found = [getattr(one, field) for one in statistics]
    if field == "bloom":
        return [one and bytes(one) for one in found]
    if field == "sum_exact":
        return [None if x is None or abs(x) >= _SUM_LIMIT else Decimal(x) for x in found]
    return [list(extra.items()) or None for extra in found] if field == "extra" else found
