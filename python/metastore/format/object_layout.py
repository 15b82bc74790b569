"""How the rows of detail objects are laid out: what is asked for together stands together."""

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
"""So many of the most frequent values of each column stand in the first row group."""
ROW_GROUPS = 16
HISTOGRAM_GROUPS = 64


def find_run_starts(values: NDArray[Any]) -> Longs:
    """Where each run of equal values begins."""
    if len(values) == 0:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))


def find_run_places(columns: Longs) -> Longs:
    """The place of each row within its run of equal numbers."""
    starts = find_run_starts(columns)
    lengths = np.diff(starts, append=len(columns))
    return np.arange(len(columns)) - np.repeat(starts, lengths)


def put_most_frequent_first(rows: pa.Table) -> tuple[pa.Table, int]:
    """Put the ten most frequent values of every column before all others."""
    heading = find_run_places(rows["column"].to_numpy()) < HEADS
    mask = pa.array(heading)
    return pa.concat_tables([rows.filter(mask), rows.filter(pc.invert(mask))]), int(heading.sum())


MANY_FILES = 1_000
ZONED_FILES = 100_000
"""Blocks of more data files have zones, unless a writer is told otherwise."""
ZONE_FILES: int = read_contract("limits")["zone_files"]
"""So many consecutive data files make a zone."""
ZONED_COLUMNS = 16
"""So many columns share an object of zones."""

_MOST_PAGES = 100  # of a column: with their digests, a footer of four columns stays below 64 kB


def columns_per_object(files: int, zoned: int = ZONED_FILES) -> int:
    """How many columns one summary object of a block holds at most."""
    if files > zoned:
        return 4
    return 16 if files > MANY_FILES else 64


def columns_per_row_group(files: int, zoned: int = ZONED_FILES) -> int:
    """How many columns one row group of a summary object of a block holds at most."""
    return 1 if files > min(zoned, MANY_FILES) else 16


def page_rows(files: int, zoned: int = ZONED_FILES) -> int:
    """How many rows a page of a summary of a block has: whole zones; 0 where pages are left to Parquet."""
    if files <= zoned:
        return 0
    return ZONE_FILES * -(-files // (_MOST_PAGES * ZONE_FILES))


def size_row_groups(columns: Iterable[int], per_group: int) -> list[int]:
    """Row counts of the row groups of a table ordered by column, with so many columns a group."""
    counts = np.unique(np.asarray(columns), return_counts=True)[1]
    return [int(counts[i : i + per_group].sum()) for i in range(0, len(counts), per_group)]


def lay_out_sketches(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay sketches out: ordered by column, then file, whole columns a row group."""
    ordered = rows.sort_by([("column", "ascending"), ("file", "ascending")])
    columns = ordered.column("column")
    return ordered, size_row_groups(columns, max(-(-len(columns.unique()) // ROW_GROUPS), 1))


def lay_out_value_lists(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay value lists out: the ten most frequent values of every column and file make the first row group."""
    if rows.num_rows == 0:
        return rows, []
    columns, files = (rows.column(name).to_numpy().astype(np.int64) for name in ("column", "file"))
    lists = (columns << 32) | files
    places = find_run_places(lists)
    order = np.lexsort((places, lists, places >= HEADS))
    heads = int(np.count_nonzero(places < HEADS))
    return rows.take(pa.array(order)), [heads, *split_evenly(len(lists) - heads, ROW_GROUPS - 1)]


def lay_out_histograms(rows: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay histograms out: ordered by column, then file."""
    ordered = rows.sort_by([("column", "ascending"), ("file", "ascending"), ("kind", "ascending")])
    return ordered, split_evenly(rows.num_rows, ROW_GROUPS)


DETAIL_LAYOUTS = {"sketches": lay_out_sketches, "frequencies": lay_out_value_lists, "histograms": lay_out_histograms}
"""How rows are laid out, by the kind of detail object."""


def split_evenly(rows: int, most: int) -> list[int]:
    """Row groups of equal size: a reader chooses them by their range of columns."""
    size = max(-(-rows // most), 1)
    return [min(size, rows - at) for at in range(0, rows, size)]


def table_lists_layout(rows: pa.Table, others: pa.Table) -> tuple[pa.Table, list[int]]:
    """Lay out value lists: the ten most frequent values of every column make the first row group."""
    ordered, number = put_most_frequent_first(rows)
    heads = pa.concat_tables([ordered.slice(0, number), others])
    heads = heads.take(pa.array(np.argsort(heads["column"].to_numpy(), kind="stable")))
    rest = ordered.slice(number)
    groups = [heads.num_rows, *split_evenly(rest.num_rows, ROW_GROUPS - 1)] if heads.num_rows else []
    return pa.concat_tables([heads, rest]), groups


def table_histogram_rows(histograms: Iterable[tuple[int, Column, Histogram]]) -> pa.Table:
    """Rows of `table-histograms`."""
    rows = list(histograms)
    given = histogram_fields([(column.encoding, one) for _, column, one in rows])
    given["column"] = pa.array([ordinal for ordinal, _, _ in rows], pa.int32())
    return fill_schema(TABLE_HISTOGRAMS, given, len(rows))


def histogram_fields(histograms: Sequence[tuple[str | None, Histogram]]) -> dict[str, pa.Array]:
    """The fields that say what histograms are, each with the encoding of its column's values."""
    found = {"kind": pa.array([one.kind for _, one in histograms], pa.string())}
    for name, kind in ENCODED_TYPES.items():
        found[f"edges_{name}"] = _lists([one.edges if encoding == name else None for encoding, one in histograms], kind)
    for name in ("counts", "distincts", "errors"):
        found[name] = _lists([getattr(one, name) for _, one in histograms], pa.int64())
    return found


def _lists(lists: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Lists as one array, a step in Python for each list and not for each value."""
    arrays = [one if isinstance(one, pa.Array) else pa.array(one, kind) for one in lists if one is not None]
    offsets = np.cumsum([0, *(0 if one is None else len(one) for one in lists)])
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.concat_arrays([pa.array([], kind), *arrays]),
        mask=pa.array([one is None for one in lists], pa.bool_()),
    )
