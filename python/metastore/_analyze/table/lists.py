"""Lists of values with their frequencies: how those of many data files become one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

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
_SMALL_SPAN = 1 << 16
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
    parts = [_of_column(column, batches, column in wide) for column, batches in sorted(_by_column(rows).items())]
    return pa.concat_tables(parts) if parts else LISTED.empty_table()


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


def _by_column(rows: pa.Table) -> dict[int, list[pa.RecordBatch]]:
    """The rows of each column, not copied as long as most of them stand together."""
    found: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for batch in rows.to_batches():
        columns = batch["column"].to_numpy()
        starts = starts_of(columns)
        if len(starts) > 2 * len(np.unique(columns[starts])):
            order = _stable(columns)
            batch, columns = batch.take(pa.array(order)), columns[order]  # noqa: PLW2901 - the same rows
            starts = starts_of(columns)
        ends = [*starts[1:].tolist(), len(columns)]
        for column, start, end in zip(columns[starts].tolist(), starts.tolist(), ends, strict=True):
            found[column].append(batch.slice(start, end - start))
    return found


def _of_column(column: int, batches: Sequence[pa.RecordBatch], wide: bool) -> pa.Table:  # noqa: FBT001 - of the column
    name = next(name for name in _VALUES if not batches[0][name].null_count)
    given = pa.concat_arrays([batch[name] for batch in batches])
    counts = [np.concatenate([batch[one].to_numpy() for batch in batches]) for one in ("frequency", "listed")]
    values, (frequencies, listed) = _added_up(given, counts)
    if wide and name == "value_binary":
        by_value = np.arange(len(values))
        by_value[_negative(values, by_value)] -= len(values)
        order = np.lexsort((by_value, -frequencies))
    else:  # they are in the order of their values, and the sort is stable
        order = _stable(-frequencies)
    filled = {
        "column": pa.array(np.full(len(order), column, np.int32)),
        name: values.take(pa.array(order)),
        "frequency": pa.array(frequencies[order]),
        "listed": pa.array(listed[order]),
    }
    return pa.table([filled.get(one.name, pa.nulls(len(order), one.type)) for one in LISTED], schema=LISTED)


def _added_up(values: pa.Array, counts: Sequence[Longs]) -> tuple[pa.Array, list[Longs]]:
    """Each value once, in the order of keys, and the sums of its counts."""
    if pa.types.is_int64(values.type):
        longs = values.to_numpy()
        least = int(longs.min())
        span = int(longs.max()) - least + 1
        if span <= max(2 * len(longs), _SMALL_SPAN):
            places = longs - least
            present = np.zeros(span, np.bool_)
            present[places] = True
            found = np.flatnonzero(present)
            return pa.array(found + least), [_sums(places, one, span)[found] for one in counts]
    keys, _ = keys_of(values)
    order = _stable(keys)
    starts = starts_of(keys[order])
    return values.take(pa.array(order[starts])), [np.add.reduceat(one[order], starts) for one in counts]


def _sums(places: Longs, counts: Longs, span: int) -> Longs:
    if not counts.any():
        return np.zeros(span, np.int64)
    found: Longs = np.bincount(places, weights=counts, minlength=span).astype(np.int64)  # exact below 2^53
    return found


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
