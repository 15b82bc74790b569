"""Makes the rows of a block's objects: summaries, sketches, value lists and histograms."""

from __future__ import annotations

from decimal import Decimal
from operator import attrgetter, itemgetter
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
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from metastore.kernel.column_bloom import LazyBloomFilter
    from metastore.kernel.column_statistics import ColumnStatistics

    Row = tuple[int, int, ColumnStatistics]
    """The ordinals of a column and of a data file, and the statistics of the column in the file."""
    TableRow = tuple[int, ColumnStatistics, int]
    """The ordinal of a column, its statistics in the table, and the number of data files."""


_TYPED = ("lo", "hi", "percentiles")
"""Attributes that have a field for each encoding."""
_SUM_LIMIT = 10**38


def block_rows(rows: Sequence[Row]) -> dict[str, pa.Table]:
    """Return the rows of all objects that hold the same statistics, by their kind."""
    return {
        "summary": summary_rows(rows),
        "sketches": sketch_rows(rows),
        "frequencies": value_count_rows(rows),
        "histograms": file_histogram_rows(rows),
    }


def summary_rows(rows: Iterable[Row]) -> pa.Table:
    """Return a table of the schema `summary`."""
    return _file_rows(SUMMARY, rows)


def sketch_rows(rows: Iterable[Row]) -> pa.Table:
    """Return a table of the schema `sketches`, with the rows that have a sketch or a filter."""
    return _file_rows(SKETCHES, [row for row in rows if _has_sketch(row[2])])


def value_count_rows(rows: Iterable[Row]) -> pa.Table:
    """Return rows of the schema `frequencies`: each list by falling frequency, then value."""
    tables = [FREQUENCIES.empty_table()]
    for column, file, statistics in rows:
        values = statistics.values
        if values is None or len(values) == 0:
            continue
        ranked = values.sort_by_count()
        fields = {
            "column": np.full(len(values), column, np.int32),
            "file": np.full(len(values), file, np.int32),
            f"value_{statistics.encoding}": ranked.values,
            "frequency": ranked.counts,
        }
        tables.append(fill_schema(FREQUENCIES, fields, len(values)))
    return pa.concat_tables(tables)


def file_histogram_rows(rows: Iterable[Row]) -> pa.Table:
    """Return rows of the schema `histograms`."""
    columns = []
    files = []
    histograms = []
    for column, file, statistics in rows:
        if statistics.histogram is not None:
            columns.append(column)
            files.append(file)
            histograms.append((statistics.encoding, statistics.histogram))
    fields = histogram_fields(histograms)
    fields["column"] = pa.array(columns, pa.int32())
    fields["file"] = pa.array(files, pa.int32())
    return fill_schema(HISTOGRAMS, fields, len(histograms))


def partial_aggregate_row(statistics: ColumnStatistics, schema: pa.Schema) -> pa.Table:
    """Return one row with some fields of the schema `summary`."""
    return _table(schema, [statistics])


def table_summary_rows(rows: Iterable[TableRow]) -> pa.Table:
    """Return a table of the schema `table-summary`."""
    ordered = sorted(rows, key=itemgetter(0))
    columns, statistics, files = _transpose(ordered)
    return _table(TABLE_SUMMARY, statistics, column=columns, files=files)


def table_sketch_rows(rows: Iterable[TableRow]) -> pa.Table:
    """Return a table of the schema `table-sketches`, with the rows that have a sketch."""
    with_sketch = [row for row in rows if row[1].theta is not None]
    ordered = sorted(with_sketch, key=itemgetter(0))
    columns, statistics, _ = _transpose(ordered)
    return _table(TABLE_SKETCHES, statistics, column=columns)


def _has_sketch(statistics: ColumnStatistics) -> bool:
    sketches = (statistics.theta, statistics.registers, statistics.bloom)
    return sketches != (None, None, None)


def _file_rows(schema: pa.Schema, rows: Iterable[Row]) -> pa.Table:
    ordered = sorted(rows, key=itemgetter(0, 1))
    columns, files, statistics = _transpose(ordered)
    return _table(schema, statistics, column=columns, file=files)


def _transpose(rows: Sequence[tuple[Any, Any, Any]]) -> tuple[list[Any], list[Any], list[Any]]:
    """Turn rows of three fields into three lists."""
    first, second, third = (list(map(itemgetter(number), rows)) for number in range(3))
    return first, second, third


def _table(schema: pa.Schema, statistics: Sequence[ColumnStatistics], **ordinals: list[int]) -> pa.Table:
    columns = [_list_values(field, statistics, ordinals) for field in schema.names]
    rows = [dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    # Making one array of rows takes half the time of making an array for each field.
    batch = pa.RecordBatch.from_struct_array(pa.array(rows, pa.struct(list(schema))))
    return pa.Table.from_batches([batch])


def _list_values(
    field: str, statistics: Sequence[ColumnStatistics], ordinals: Mapping[str, list[int]]
) -> Sequence[Any]:
    """Return the values of a field of the schema `summary`."""
    if field in ordinals:
        return ordinals[field]
    name, _, encoding = field.rpartition("_")
    if name in _TYPED and encoding in ENCODED_TYPES:
        return _list_typed_values(name, encoding, statistics)
    if field in COMPUTED_NAMES:
        return [column.numbers.get(field) for column in statistics]
    values = map(attrgetter(field), statistics)
    if field in _CONVERSIONS:
        values = map(_CONVERSIONS[field], values)
    return list(values)


def _list_typed_values(name: str, encoding: str, statistics: Sequence[ColumnStatistics]) -> list[Any]:
    """Return the values of the columns with an encoding; None for other columns."""
    values: list[Any] = [None] * len(statistics)
    for number, column in enumerate(statistics):
        if column.encoding == encoding:
            values[number] = getattr(column, name)
    return values


def _bloom_to_bytes(bloom: bytes | LazyBloomFilter | None) -> bytes | None:
    if bloom is None:
        return None
    return bytes(bloom)


def _sum_to_decimal(total: int | None) -> Decimal | None:
    if total is None or abs(total) >= _SUM_LIMIT:
        return None
    return Decimal(total)


def _extra_to_map(extra: Mapping[str, bytes]) -> list[tuple[str, bytes]] | None:
    return list(extra.items()) or None


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "bloom": _bloom_to_bytes,
    "sum_exact": _sum_to_decimal,
    "extra": _extra_to_map,
}
