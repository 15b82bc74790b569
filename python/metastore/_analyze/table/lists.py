"""Lists of values with their frequencies: how those of many data files become one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]

TOP = 10
LISTED = pa.schema(
    [
        pa.field("column", pa.int32(), nullable=False),
        pa.field("value_long", pa.int64()),
        pa.field("value_double", pa.float64()),
        pa.field("value_binary", pa.binary()),
        pa.field("frequency", pa.int64()),
        pa.field("listed", pa.int64()),
    ]
)
"""Values of columns. `listed`: the sum of the floors of those cut lists that hold the value."""

_MAGNITUDE = np.int64((1 << 63) - 1)
_PACKED_BITS = 63
_VALUES = ("value_long", "value_double", "value_binary")


def merged(rows: pa.Table, wide: Collection[int] = ()) -> pa.Table:
    """Add up equal values of a column.

    Args:
        rows: Of the schema `LISTED`, in any order; a value may stand there any number of times.
        wide: Columns that hold decimals of more than 18 digits, which are ordered by sign.

    Returns:
        Each value of a column once, ordered by column, decreasing frequency and value.

    Example:
        >>> rows = [{"column": 0, "value_long": v, "frequency": 2, "listed": 0} for v in (7, 5, 7)]
        >>> found = merged(pa.Table.from_pylist(rows, LISTED))
        >>> list(zip(found["value_long"].to_pylist(), found["frequency"].to_pylist()))
        [(7, 4), (5, 2)]
    """
    parts = [_merged(rows, name, wide) for name in _VALUES]
    present = [part for part in parts if part.num_rows]
    if not present:
        return LISTED.empty_table()
    if len(present) == 1:
        return present[0]
    whole = pa.concat_tables(present)
    order = np.argsort(whole["column"].to_numpy(), kind="stable")
    return whole.take(pa.array(order))


def starts_of(columns: Longs) -> Longs:
    """Where each run of equal numbers begins.

    Example:
        >>> starts_of(np.array([4, 4, 7]))
        array([0, 2])
    """
    if len(columns) == 0:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], columns[1:] != columns[:-1]]))


def places(columns: Longs) -> Longs:
    """The place of each row within its run of equal numbers.

    Example:
        >>> places(np.array([4, 4, 7]))
        array([0, 1, 0])
    """
    starts = starts_of(columns)
    lengths = np.diff(starts, append=len(columns))
    return np.arange(len(columns)) - np.repeat(starts, lengths)


def heads_first(rows: pa.Table) -> tuple[pa.Table, int]:
    """Put the ten most frequent values of every column before all others.

    Args:
        rows: Ordered by column and decreasing frequency.

    Returns:
        The rows, and how many of them are among the ten most frequent.
    """
    heading = places(rows["column"].to_numpy()) < TOP
    mask = pa.array(heading)
    return pa.concat_tables([rows.filter(mask), rows.filter(pc.invert(mask))]), int(heading.sum())


def _merged(rows: pa.Table, name: str, wide: Collection[int]) -> pa.Table:
    rows = rows.select(["column", name, "frequency", "listed"])
    if rows[name].null_count:
        rows = rows.filter(pc.is_valid(rows[name]))
    if not rows.num_rows:
        return LISTED.empty_table()
    rows = rows.combine_chunks()
    columns = rows["column"].to_numpy()
    values = rows[name].combine_chunks() if isinstance(rows[name], pa.ChunkedArray) else rows[name]
    keys, ranks = keys_of(values)
    order, starts = _grouped(columns, keys)
    frequencies, listed = (np.add.reduceat(rows[one].to_numpy()[order], starts) for one in ("frequency", "listed"))
    first = order[starts]
    columns, by_value = columns[first], ranks[first]
    if wide and name == "value_binary":
        is_wide = np.isin(columns, list(wide))
        negative = is_wide & np.isin(first, _negative(values, first[is_wide]))
        by_value = np.where(negative, by_value - len(values) - 1, by_value)
        final = np.lexsort((by_value, -frequencies, columns))
    else:  # they are in the order of their values, and both sorts are stable
        final = _stable(-frequencies)
        final = final[_stable(columns[final])]
    filled = {
        "column": pa.array(columns[final], pa.int32()),
        name: values.take(pa.array(first[final])),
        "frequency": pa.array(frequencies[final]),
        "listed": pa.array(listed[final]),
    }
    size = len(final)
    return pa.table([filled.get(one.name, pa.nulls(size, one.type)) for one in LISTED], schema=LISTED)


def _grouped(columns: Longs, keys: Longs) -> tuple[Longs, Longs]:
    """The order by column and key, and where in it each new pair of them begins."""
    order = np.arange(len(columns)) if (columns == columns[0]).all() else _stable(columns)
    firsts = starts_of(columns[order])
    keys = keys[order]
    is_new = np.ones(len(keys), np.bool_)
    for start, end in zip(firsts.tolist(), [*firsts[1:].tolist(), len(keys)], strict=True):
        by_key = _stable(keys[start:end])
        order[start:end] = order[start:end][by_key]
        ordered = keys[start:end][by_key]
        np.not_equal(ordered[1:], ordered[:-1], out=is_new[start + 1 : end])
    return order, np.flatnonzero(is_new)


def _stable(numbers: Longs) -> Longs:
    """The stable order of numbers: where they leave room for it the place is sorted with them, three times as fast."""
    least, bits = int(numbers.min()), len(numbers).bit_length()
    if (int(numbers.max()) - least).bit_length() + bits > _PACKED_BITS:
        return np.argsort(numbers, kind="stable")
    packed = numbers.astype(np.int64) - least
    packed <<= bits
    packed |= np.arange(len(numbers))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def keys_of(values: pa.Array) -> tuple[Longs, Longs]:
    """Numbers that are equal where the values are, and numbers that are ordered as the values are.

    Example:
        >>> keys_of(pa.array([b"b", b"a", b"b"]))[0]
        array([1, 0, 1])
    """
    if pa.types.is_int64(values.type):
        longs = values.to_numpy()
        return longs, longs
    if pa.types.is_float64(values.type):
        doubles = values.to_numpy() + 0.0
        doubles[np.isnan(doubles)] = np.nan
        bits = doubles.view(np.int64)
        ordered = np.where(bits < 0, -(bits & _MAGNITUDE), bits)
        return ordered, ordered
    encoded = values.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    return ranks[codes], ranks[codes]


def _negative(values: pa.Array, places: Any) -> Longs:
    first = pc.binary_slice(values.take(pa.array(places)), 0, 1)
    negative: Longs = places[pc.greater_equal(first, pa.scalar(b"\x80")).to_numpy(zero_copy_only=False)]
    return negative
