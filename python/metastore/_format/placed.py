"""Where values live, as `table-frequencies` stores it: for each value a map or a list of frequencies by data file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Longs = NDArray[np.int64]


PLACES = ("files_sparse", "files_dense")
"""The columns that tell where a value lives."""


def pairs_of(rows: pa.Table) -> tuple[Longs, Longs, Longs]:
    """The data files of some values.

    Args:
        rows: With the columns `files_sparse` and `files_dense`.

    Returns:
        Row, data file and frequency of each pair; a list gives pairs of frequency 0 too.

    Example:
        >>> from metastore._format.schemas import TABLE_FREQUENCIES
        >>> values = [{"column": 0, "files_sparse": [(7, 2)]}, {"column": 0, "files_dense": [0, 3]}]
        >>> pairs_of(pa.Table.from_pylist(values, TABLE_FREQUENCIES))
        (array([0, 1, 1]), array([7, 0, 1]), array([2, 0, 3]))
    """
    maps, lists = (rows[name].combine_chunks() for name in ("files_sparse", "files_dense"))
    entries = pc.list_flatten(maps.cast(pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))))
    of_maps, of_lists = (_lengths(one) for one in (maps, lists))
    flat = pc.list_flatten(lists).to_numpy().astype(np.int64)
    places = np.arange(rows.num_rows)
    return (
        np.concatenate([np.repeat(places, of_maps), np.repeat(places, of_lists)]),
        np.concatenate(
            [_field(entries, 0), np.arange(len(flat)) - np.repeat(np.cumsum(of_lists) - of_lists, of_lists)]
        ),
        np.concatenate([_field(entries, 1), flat]),
    )


def _lengths(lists: pa.Array) -> Longs:
    offsets = lists.offsets.to_numpy()
    return np.where(np.asarray(lists.is_valid()), np.diff(offsets), 0).astype(np.int64)


def _field(entries: pa.Array, place: int) -> Longs:
    found: Longs = pc.struct_field(entries, place).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
