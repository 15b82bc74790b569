"""How the rows of detail objects are laid out: what is asked for together stands together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from metastore._format.layout import size_row_groups

HEADS = 10
"""So many of the most frequent values of each column stand in the first row group."""

_ROW_GROUPS = 16


def lay_out_sketches(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay sketches out: ordered by column, then file, whole columns a row group."""
    ordered = rows.sort_by([("column", "ascending"), ("file", "ascending")])
    columns = ordered.column("column")
    return ordered, size_row_groups(columns, max(-(-len(columns.unique()) // _ROW_GROUPS), 1))


def lay_out_value_lists(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay value lists out: the ten most frequent values of every column and file make the first row group."""
    if rows.num_rows == 0:
        return rows, []
    columns, files = (rows.column(name).to_numpy().astype(np.int64) for name in ("column", "file"))
    lists = (columns << 32) | files
    starts = np.flatnonzero(np.concatenate([[True], lists[1:] != lists[:-1]]))
    places = np.arange(len(lists)) - np.repeat(starts, np.diff(starts, append=len(lists)))
    order = np.lexsort((places, lists, places >= HEADS))
    heads = int(np.count_nonzero(places < HEADS))
    return rows.take(pa.array(order)), [heads, *split_evenly(len(lists) - heads, _ROW_GROUPS - 1)]


def lay_out_histograms(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay histograms out: ordered by column, then file."""
    ordered = rows.sort_by([("column", "ascending"), ("file", "ascending"), ("kind", "ascending")])
    return ordered, split_evenly(rows.num_rows, _ROW_GROUPS)


def split_evenly(rows: int, most: int) -> list[int]:
    """Row groups of equal size: a reader chooses them by their range of columns."""
    size = max(-(-rows // most), 1)
    return [min(size, rows - at) for at in range(0, rows, size)]
