"""Where values live, as `table-frequencies` stores it: for each value a map or a list of frequencies by data file.

Objects and their row groups are cut by the values' hashes: a value is looked for in one row group of one object.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.bloom_filter import bloom_hashes, choose_hash_range
from metastore.format.sortable_values import unify_doubles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from metastore.format.hashing import UInt64Array
    from metastore.format.table_column import Column

    Longs = NDArray[np.int64]


POSTING_COLUMNS = ("files_sparse", "files_dense")
"""The columns that tell where a value lives."""

STARTS_KEY = "metastore.hashes"
"""The footer key that tells the least hash of each row group."""

_STARTS = np.dtype(">u8")


def hash_column_values(rows: pa.Table, column: Column) -> UInt64Array:
    """The hash of each value of a column, by which its list is cut: that of bloom filters."""
    return bloom_hashes(unify_doubles(rows[f"value_{column.encoding}"]))


def choose_part(hashes: UInt64Array, parts: int) -> Longs:
    """Which of so many parts has the values with these hashes."""
    return choose_hash_range(hashes, parts)


def encode_hash_starts(starts: UInt64Array) -> str:
    """The least hash of each row group, as the footer has it."""
    return base64.b64encode(starts.astype(_STARTS).tobytes()).decode()


def decode_hash_starts(text: str) -> UInt64Array:
    """What `starts_text` wrote."""
    found: UInt64Array = np.frombuffer(base64.b64decode(text, validate=True), _STARTS).astype(np.uint64)
    return found


def read_postings(rows: pa.Table) -> tuple[Longs, Longs, Longs]:
    """The data files of some values."""
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
