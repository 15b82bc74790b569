"""Postings: the data files of each value, which `table-frequencies` stores as a map or a list of frequencies.

Values are divided among objects and row groups by their hashes: a look-up reads one row group of one object.
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
"""The columns with the frequencies of a value by data file."""

STARTS_KEY = "metastore.hashes"
"""The footer key of the least hash of each row group."""

_STARTS = np.dtype(">u8")


def hash_column_values(rows: pa.Table, column: Column) -> UInt64Array:
    """Hash each value of a column as bloom filters do; lists are divided by these hashes."""
    return bloom_hashes(unify_doubles(rows[f"value_{column.encoding}"]))


def choose_part(hashes: UInt64Array, parts: int) -> Longs:
    """Choose the part of a divided list that has the values with these hashes."""
    return choose_hash_range(hashes, parts)


def encode_hash_starts(starts: UInt64Array) -> str:
    """Write the least hash of each row group for the footer."""
    return base64.b64encode(starts.astype(_STARTS).tobytes()).decode()


def decode_hash_starts(text: str) -> UInt64Array:
    """Read the text of `encode_hash_starts`."""
    starts: UInt64Array = np.frombuffer(base64.b64decode(text, validate=True), _STARTS).astype(np.uint64)
    return starts


def read_postings(rows: pa.Table) -> tuple[Longs, Longs, Longs]:
    """Read the row, the data file and the frequency of each posting: those of maps, then those of lists."""
    maps = rows["files_sparse"].combine_chunks()
    lists = rows["files_dense"].combine_chunks()
    map_lengths = _read_lengths(maps)
    list_lengths = _read_lengths(lists)
    row_numbers = np.arange(rows.num_rows)
    value_rows = np.concatenate([np.repeat(row_numbers, map_lengths), np.repeat(row_numbers, list_lengths)])
    # A list has a frequency for each data file, in the order of their ordinals.
    list_frequencies = pc.list_flatten(lists).to_numpy().astype(np.int64)
    list_starts = np.cumsum(list_lengths) - list_lengths
    list_files = np.arange(len(list_frequencies)) - np.repeat(list_starts, list_lengths)
    entries = pc.list_flatten(maps.cast(pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))))
    files = np.concatenate([_read_field(entries, 0), list_files])
    frequencies = np.concatenate([_read_field(entries, 1), list_frequencies])
    return value_rows, files, frequencies


def _read_lengths(lists: pa.Array) -> Longs:
    lengths = np.diff(lists.offsets.to_numpy())
    return np.where(np.asarray(lists.is_valid()), lengths, 0).astype(np.int64)


def _read_field(entries: pa.Array, index: int) -> Longs:
    values: Longs = pc.struct_field(entries, index).to_numpy(zero_copy_only=False).astype(np.int64)
    return values
