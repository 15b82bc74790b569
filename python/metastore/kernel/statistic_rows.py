"""Detail objects of data files: rows of value lists and histograms."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.format.object_schemas import FREQUENCIES, HISTOGRAMS, SKETCHES, SUMMARY, TABLE_SKETCHES, TABLE_SUMMARY
from metastore.kernel.built_in_statistics import COMPUTED_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from metastore.kernel.column_statistics import ColumnStatistics

    Rows = Iterable[tuple[int, int, ColumnStatistics]]


_LONG, _DOUBLE, _BINARY = "long", "double", "binary"


def value_count_rows(rows: Rows) -> pa.Table:
    """Rows of the schema `frequencies`: each list by falling frequency, then value."""
    parts = [_list_of(*row) for row in rows if row[2].values is not None and len(row[2].values)]
    return pa.concat_tables([FREQUENCIES.empty_table(), *parts])


def file_histogram_rows(rows: Rows) -> pa.Table:
    """Rows of the schema `histograms`."""
    found = [(column, file, known.encoding, known.histogram) for column, file, known in rows if known.histogram]
    columns = {
        "column": pa.array([row[0] for row in found], pa.int32()),
        "file": pa.array([row[1] for row in found], pa.int32()),
        "kind": pa.array([row[3].kind for row in found], pa.string()),
        "counts": _lists([row[3].counts for row in found], pa.int64()),
        "distincts": _lists([row[3].distincts for row in found], pa.int64()),
    }
    for encoding, kind in ((_LONG, pa.int64()), (_DOUBLE, pa.float64()), (_BINARY, pa.binary())):
        edges = [row[3].edges if row[2] == encoding else None for row in found]
        columns[f"edges_{encoding}"] = _lists(edges, kind)
    return pa.table([columns[name] for name in HISTOGRAMS.names], schema=HISTOGRAMS)


def _lists(lists: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Lists as one array, a step in Python for each list and not for each value."""
    arrays = [one if isinstance(one, pa.Array) else pa.array(one, kind) for one in lists if one is not None]
    offsets = np.cumsum([0, *(0 if one is None else len(one) for one in lists)])
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.concat_arrays([pa.array([], kind), *arrays]),
        mask=pa.array([one is None for one in lists], pa.bool_()),
    )


def _list_of(column: int, file: int, known: ColumnStatistics) -> pa.Table:
    assert known.values is not None  # noqa: S101 - chosen by the caller
    ranked = known.values.sort_by_count()
    number = len(ranked)
    nothing: Sequence[pa.Array] = [pa.nulls(number, FREQUENCIES.field(name).type) for name in FREQUENCIES.names[2:5]]
    place = (_LONG, _DOUBLE, _BINARY).index(known.encoding or "")
    values = [*nothing[:place], ranked.values, *nothing[place + 1 :]]
    return pa.table([_all(column, number), _all(file, number), *values, pa.array(ranked.counts)], schema=FREQUENCIES)


def _all(ordinal: int, number: int) -> NDArray[np.int32]:
    return np.full(number, ordinal, np.int32)


_TYPED = ("lo", "hi", "percentiles")
_ENCODINGS = ("long", "double", "binary")
_SUM_LIMIT = 10**38


def summary_rows(rows: Iterable[tuple[int, int, ColumnStatistics]]) -> pa.Table:
    """A table of the schema `summary`."""
    ordered = sorted(rows, key=lambda row: row[:2])
    return _table(
        SUMMARY, [row[2] for row in ordered], column=[row[0] for row in ordered], file=[row[1] for row in ordered]
    )


def partial_aggregate_row(known: ColumnStatistics, schema: pa.Schema) -> pa.Table:
    """One row with some fields of the schema `summary`."""
    return _table(schema, [known])


def sketch_rows(rows: Iterable[tuple[int, int, ColumnStatistics]]) -> pa.Table:
    """A table of the schema `sketches`: of the same rows, those that have a sketch or a filter."""
    kept = (row for row in rows if (row[2].theta, row[2].registers, row[2].bloom) != (None, None, None))
    ordered = sorted(kept, key=lambda row: row[:2])
    values = zip(
        *(
            (column, file, known.theta, known.bloom and bytes(known.bloom), known.registers)
            for column, file, known in ordered
        ),
        strict=True,
    )
    columns = list(values) or [()] * len(SKETCHES)
    return pa.table([pa.array(v, kind.type) for v, kind in zip(columns, SKETCHES, strict=True)], schema=SKETCHES)


def table_summary_rows(rows: Iterable[tuple[int, ColumnStatistics, int]]) -> pa.Table:
    """A table of the schema `table-summary`."""
    ordered = sorted(rows, key=lambda row: row[0])
    return _table(
        TABLE_SUMMARY,
        [row[1] for row in ordered],
        column=[row[0] for row in ordered],
        files=[row[2] for row in ordered],
    )


def table_sketch_rows(rows: Iterable[tuple[int, ColumnStatistics, int]]) -> pa.Table:
    """A table of the schema `table-sketches`: of the same rows, those that have a sketch."""
    ordered = sorted((row for row in rows if row[1].theta is not None), key=lambda row: row[0])
    values = ([row[0] for row in ordered], [row[1].theta for row in ordered])
    return pa.table(
        [pa.array(v, kind.type) for v, kind in zip(values, TABLE_SKETCHES, strict=True)], schema=TABLE_SKETCHES
    )


def _table(schema: pa.Schema, statistics: list[ColumnStatistics], **ordinals: list[int]) -> pa.Table:
    columns = (ordinals[name] if name in ordinals else _values(name, statistics) for name in schema.names)
    rows = [dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    # One array of rows costs half of what one for each field does.
    batch = pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct(list(schema))))
    return pa.Table.from_batches([batch])


def _values(field: str, statistics: list[ColumnStatistics]) -> list[Any]:
    """The values of a field of the schema `summary`."""
    name, _, encoding = field.rpartition("_")
    if name in _TYPED and encoding in _ENCODINGS:
        return [getattr(one, name) if one.encoding == encoding else None for one in statistics]
    if field in COMPUTED_NAMES:
        return [one.numbers.get(field) for one in statistics]
    found = [getattr(one, field) for one in statistics]
    if field == "sum_exact":
        return [None if x is None or abs(x) >= _SUM_LIMIT else Decimal(x) for x in found]
    return [list(extra.items()) or None for extra in found] if field == "extra" else found
