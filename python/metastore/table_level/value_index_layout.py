"""How lists that tell where values live are laid out: a value is found by its hash in one small part of one object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from metastore.format.object_layout import ROW_GROUPS
from metastore.format.object_schemas import TABLE_PLACED
from metastore.format.sortable_values import is_wide_decimal, make_comparison_key
from metastore.format.value_postings import STARTS_KEY, encode_hash_starts, hash_column_values, read_postings
from metastore.table_level.value_rows import make_equality_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column

    Longs = NDArray[np.int64]


_VALUES_OF_AN_OBJECT = 1 << 18
_MOST_OBJECTS = 64
_VALUES_OF_A_GROUP = 1 << 14


def choose_object_count(values: int, most_values: int) -> int:
    """Into how many objects lists are cut: into small ones, while these are not too many for a manifest."""
    return max(1, -(-values // most_values), min(_MOST_OBJECTS, -(-values // _VALUES_OF_AN_OBJECT)))


def lay_out_postings(
    lists: Sequence[pa.Table], columns: Sequence[Column]
) -> tuple[pa.Table, list[int], dict[str, str]]:
    """Lay lists out in one object."""
    most = max(ROW_GROUPS // len(lists), 1)
    cut = [_of_column(rows, column, most) for rows, column in zip(lists, columns, strict=True)]
    starts = np.concatenate([one[2] for one in cut])
    return (
        pa.concat_tables([one[0] for one in cut]),
        [n for one in cut for n in one[1]],
        {STARTS_KEY: encode_hash_starts(starts)},
    )


def _of_column(rows: pa.Table, column: Column, most: int) -> tuple[pa.Table, list[int], NDArray[np.uint64]]:
    hashes = hash_column_values(rows, column)
    number = len(hashes)
    size = -(-number // min(most, -(-number // _VALUES_OF_A_GROUP)))
    ranked = np.argsort(hashes, kind="stable")
    group = np.empty(number, np.int64)
    group[ranked] = np.arange(number) // size
    by_group = np.lexsort((rank_by_value(rows[f"value_{column.encoding}"].combine_chunks(), column), group))
    sizes = [min(size, number - at) for at in range(0, number, size)]
    return rows.take(pa.array(by_group)), sizes, hashes[ranked[::size]]


def rank_by_value(values: pa.Array, column: Column) -> Longs:
    """Numbers that are ordered as the values of a column are."""
    if is_wide_decimal(column):
        ranks = np.empty(len(values), np.int64)
        numbers = list(map(make_comparison_key(column), values.to_pylist()))
        ranks[sorted(range(len(numbers)), key=numbers.__getitem__)] = np.arange(len(numbers))
        return ranks
    return make_equality_keys(values)[1]


def count_indexed_rows(rows: pa.Table, files: int) -> Longs:
    """Of how many rows of each data file a list tells."""
    told = np.zeros(files, np.int64)
    _, file, count = read_postings(rows)
    np.add.at(told, file, count)
    return told


def index_coverage_rows(told: Mapping[int, Longs]) -> tuple[pa.Table, list[int]]:
    """Rows of `table-placed`, and their row groups."""
    tables = []
    for ordinal, rows in sorted(told.items()):
        ordinals, files = np.full(len(rows), ordinal, np.int32), np.arange(len(rows), dtype=np.int32)
        tables.append(pa.table([ordinals, files, rows], schema=TABLE_PLACED))
    sizes = [table.num_rows for table in tables]
    if len(sizes) > ROW_GROUPS:
        each = -(-len(sizes) // ROW_GROUPS)
        sizes = [sum(sizes[at : at + each]) for at in range(0, len(sizes), each)]
    return pa.concat_tables(tables), sizes
