"""Layout of the rows of objects: rows that are read together stand together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.contract import read_contract
from metastore.format.object_schemas import ENCODED_TYPES, TABLE_HISTOGRAMS, fill_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from metastore.format.histogram_bins import Histogram
    from metastore.format.table_column import Column

    Longs = NDArray[np.int64]


HEADS: int = read_contract("limits")["heads"]
"""Number of most frequent values of each column in the first row group."""
ROW_GROUPS = 16
HISTOGRAM_KIND = "equi_height"
HISTOGRAM_GROUPS = 64


def find_run_starts(values: NDArray[Any]) -> Longs:
    """Find the first position of each run of equal values."""
    if len(values) == 0:
        return np.empty(0, np.int64)
    is_start = np.concatenate([[True], values[1:] != values[:-1]])
    return np.flatnonzero(is_start)


def number_in_runs(columns: Longs) -> Longs:
    """Number the rows within each run of equal numbers, from 0."""
    starts = find_run_starts(columns)
    lengths = np.diff(starts, append=len(columns))
    return np.arange(len(columns)) - np.repeat(starts, lengths)


def put_most_frequent_first(rows: pa.Table) -> tuple[pa.Table, int]:
    """Put the ten most frequent values of every column before all others."""
    is_head = pa.array(number_in_runs(rows["column"].to_numpy()) < HEADS)
    heads = rows.filter(is_head)
    tail = rows.filter(pc.invert(is_head))
    return pa.concat_tables([heads, tail]), heads.num_rows


MANY_FILES = 1_000
ZONED_FILES = 100_000
"""Blocks of more data files have zones, unless a writer has another limit."""
ZONE_FILES: int = read_contract("limits")["zone_files"]
"""Number of consecutive data files of a zone."""
ZONED_COLUMNS = 16
"""Number of columns that share an object of zones."""

_MOST_PAGES = 100  # of a column: with their digests, a footer of four columns stays below 64 kB


def columns_per_object(files: int, zoned: int = ZONED_FILES) -> int:
    """Return the most columns of one summary object of a block."""
    if files > zoned:
        return 4
    return 16 if files > MANY_FILES else 64


def columns_per_row_group(files: int, zoned: int = ZONED_FILES) -> int:
    """Return the most columns of one row group of a summary object of a block."""
    return 1 if files > min(zoned, MANY_FILES) else 16


def page_rows(files: int, zoned: int = ZONED_FILES) -> int:
    """Return the rows of a page of a block's summary: those of complete zones; 0 if Parquet cuts the pages."""
    if files <= zoned:
        return 0
    return ZONE_FILES * -(-files // (_MOST_PAGES * ZONE_FILES))


def size_row_groups(columns: Iterable[int], per_group: int) -> list[int]:
    """Count the rows of the row groups of a table ordered by column, with so many columns a group."""
    counts = np.unique(np.asarray(columns), return_counts=True)[1]
    sizes = []
    for first in range(0, len(counts), per_group):
        size = counts[first : first + per_group].sum()
        sizes.append(int(size))
    return sizes


def lay_out_sketches(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay sketches out: ordered by column, then file, and each column in one row group."""
    ordered = rows.sort_by([("column", "ascending"), ("file", "ascending")])
    columns = ordered.column("column")
    columns_per_group = max(-(-len(columns.unique()) // ROW_GROUPS), 1)
    return ordered, size_row_groups(columns, columns_per_group)


def lay_out_value_lists(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay value lists out: the ten most frequent values of every column and file make the first row group."""
    if rows.num_rows == 0:
        return rows, []
    columns = rows.column("column").to_numpy().astype(np.int64)
    files = rows.column("file").to_numpy().astype(np.int64)
    lists = (columns << 32) | files
    numbers = number_in_runs(lists)
    order = np.lexsort((numbers, lists, numbers >= HEADS))
    heads = int(np.count_nonzero(numbers < HEADS))
    row_groups = [heads, *split_evenly(len(lists) - heads, ROW_GROUPS - 1)]
    return rows.take(pa.array(order)), row_groups


def lay_out_histograms(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay histograms out: ordered by column, then file."""
    ordered = rows.sort_by([("column", "ascending"), ("file", "ascending"), ("kind", "ascending")])
    return ordered, split_evenly(rows.num_rows, ROW_GROUPS)


DETAIL_LAYOUTS = {"sketches": lay_out_sketches, "frequencies": lay_out_value_lists, "histograms": lay_out_histograms}
"""Functions that lay rows out, by the kind of detail object."""


def split_evenly(rows: int, most: int) -> list[int]:
    """Split rows into at most so many row groups of equal size: a reader chooses them by their range of columns."""
    size = max(-(-rows // most), 1)
    return [min(size, rows - first) for first in range(0, rows, size)]


def table_lists_layout(rows: pa.Table, more_heads: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay out value lists: the ten most frequent values of every column make the first row group."""
    ordered, number = put_most_frequent_first(rows)
    heads = pa.concat_tables([ordered.slice(0, number), more_heads])
    order = np.argsort(heads["column"].to_numpy(), kind="stable")
    heads = heads.take(pa.array(order))
    tail = ordered.slice(number)
    row_groups = []
    if heads.num_rows:
        row_groups = [heads.num_rows, *split_evenly(tail.num_rows, ROW_GROUPS - 1)]
    return pa.concat_tables([heads, tail]), row_groups


def table_histogram_rows(histograms: Iterable[tuple[int, Column, Histogram]]) -> pa.Table:
    """Make the rows of `table-histograms`."""
    ordinals = []
    encoded = []
    for ordinal, column, histogram in histograms:
        ordinals.append(ordinal)
        encoded.append((column.encoding, histogram))
    arrays = histogram_fields(encoded)
    arrays["column"] = pa.array(ordinals, pa.int32())
    return fill_schema(TABLE_HISTOGRAMS, arrays, len(ordinals))


def histogram_fields(histograms: Sequence[tuple[str | None, Histogram]]) -> dict[str, pa.Array]:
    """Make the fields of histograms, each of which comes with the encoding of its column's values."""
    fields = {"kind": pa.array([HISTOGRAM_KIND] * len(histograms), pa.string())}
    for name, kind in ENCODED_TYPES.items():
        edges = [histogram.edges if encoding == name else None for encoding, histogram in histograms]
        fields[f"edges_{name}"] = _make_list_array(edges, kind)
    for name in ("counts", "distincts", "errors"):
        lists = [getattr(histogram, name) for _, histogram in histograms]
        fields[name] = _make_list_array(lists, pa.int64())
    return fields


def _make_list_array(lists: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Make one array of lists, with a step in Python for each list and not for each value."""
    parts = [pa.array([], kind)]
    lengths = []
    for values in lists:
        if values is None:
            lengths.append(0)
            continue
        parts.append(values if isinstance(values, pa.Array) else pa.array(values, kind))
        lengths.append(len(values))
    return pa.ListArray.from_arrays(
        pa.array(np.cumsum([0, *lengths]), pa.int32()),
        pa.concat_arrays(parts),
        mask=pa.array([values is None for values in lists], pa.bool_()),
    )
