"""Lists of values with their frequencies: how those of many data files become one."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.object_layout import find_run_starts
from metastore.kernel.binary_values import rank_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Longs = NDArray[np.int64]
    Batches = Sequence[pa.RecordBatch]

VALUE_ROWS = pa.schema(
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
_ROWS_TOGETHER = 1 << 18
ENCODINGS = ("long", "double", "binary")
_VALUES = tuple(f"value_{encoding}" for encoding in ENCODINGS)


def sum_value_rows(rows: pa.Table, wide: Collection[int] = ()) -> pa.Table:
    """Add up equal values of a column."""
    parts: dict[int, pa.Table] = {}
    for some in _together(split_by_column(rows), wide):
        parts |= _of_columns(some, wide=any(column in wide for column in some))
    return pa.concat_tables(parts[column] for column in sorted(parts)) if parts else VALUE_ROWS.empty_table()


def split_by_column(rows: pa.Table) -> dict[int, list[pa.RecordBatch]]:
    """The rows of each column, not copied as long as most of them stand together."""
    found: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for batch in filter(len, rows.to_batches()):
        columns = batch["column"].to_numpy()
        starts = find_run_starts(columns)
        if len(starts) > 2 * len(np.unique(columns[starts])):
            order = _stable(columns)
            batch, columns = batch.take(pa.array(order)), columns[order]  # noqa: PLW2901 - the same rows
            starts = find_run_starts(columns)
        ends = [*starts[1:].tolist(), len(columns)]
        for column, start, end in zip(columns[starts].tolist(), starts.tolist(), ends, strict=True):
            found[column].append(batch.slice(start, end - start))
    return found


def iterate_columns(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each column, as `split_by_column`."""
    for column, batches in split_by_column(rows).items():
        yield column, pa.Table.from_batches(batches)


def _together(by_column: Mapping[int, Batches], wide: Collection[int]) -> Iterator[dict[int, Batches]]:
    """Columns whose values are added up at once: short ones of one kind, for a call costs more than such a column."""
    waiting: dict[tuple[str, bool], dict[int, Batches]] = defaultdict(dict)
    held: Counter[tuple[str, bool]] = Counter()
    for column, batches in by_column.items():
        kind = _kind_of(batches), column in wide
        size = sum(batch.num_rows for batch in batches)
        if held[kind] + size > _ROWS_TOGETHER and waiting[kind]:
            yield waiting.pop(kind)
            held[kind] = 0
        waiting[kind][column] = batches
        held[kind] += size
    yield from waiting.values()


def _kind_of(batches: Batches) -> str:
    return next(name for name in _VALUES if not batches[0][name].null_count)


def _of_columns(columns: Mapping[int, Batches], *, wide: bool) -> dict[int, pa.Table]:
    """Each value of these columns once, ordered by decreasing frequency and value."""
    ordinals = np.array(list(columns), np.int32)
    lengths = [sum(batch.num_rows for batch in batches) for batches in columns.values()]
    every = [batch for batches in columns.values() for batch in batches]
    name = _kind_of(every)
    given = pa.Table.from_batches(every).select([name, "frequency", "listed"]).combine_chunks()
    values, *counts = (chunked.combine_chunks() for chunked in given.columns)
    lines = np.repeat(np.arange(len(lengths)), lengths)
    lines, values, (frequencies, listed) = _added_up(lines, values, [one.to_numpy() for one in counts])
    if wide and name == "value_binary":
        by_value = np.arange(len(values))
        by_value[_negative(values, by_value)] -= len(values)
        order = np.lexsort((by_value, -frequencies, lines))
    else:  # they are in the order of their values, and the sort is stable
        order = _order(lines, -frequencies)
    filled = {
        "column": pa.array(ordinals[lines]),  # lines stay in order
        name: values.take(pa.array(order)),
        "frequency": pa.array(frequencies[order]),
        "listed": pa.array(listed[order]),
    }
    table = pa.table([filled.get(one.name, pa.nulls(len(order), one.type)) for one in VALUE_ROWS], schema=VALUE_ROWS)
    starts = np.searchsorted(lines, np.arange(len(ordinals) + 1)).tolist()
    spans = zip(ordinals.tolist(), pairwise(starts), strict=True)
    return {column: table.slice(start, end - start) for column, (start, end) in spans}


def _added_up(lines: Longs, values: pa.Array, counts: Sequence[Longs]) -> tuple[Longs, pa.Array, list[Longs]]:
    """Each value of a line once, in the order of lines and keys, and the sums of its counts."""
    if pa.types.is_int64(values.type):
        longs = values.to_numpy()
        least = int(longs.min())
        span = int(longs.max()) - least + 1
        if span * (int(lines[-1]) + 1) <= max(2 * len(longs), _SMALL_SPAN):
            places = lines * span + (longs - least)
            present = np.zeros(span * (int(lines[-1]) + 1), np.bool_)
            present[places] = True
            found = np.flatnonzero(present)
            sums = [_sums(places, one, len(present))[found] for one in counts]
            return found // span, pa.array(found % span + least), sums
    keys, _ = make_equality_keys(values)
    order = _order(lines, keys)
    lines, keys = lines[order], keys[order]
    starts = find_pair_starts(keys, lines)
    return lines[starts], values.take(pa.array(order[starts])), [np.add.reduceat(one[order], starts) for one in counts]


def _sums(places: Longs, counts: Longs, span: int) -> Longs:
    if not counts.any():
        return np.zeros(span, np.int64)
    found: Longs = np.bincount(places, weights=counts, minlength=span).astype(np.int64)  # exact below 2^53
    return found


def _order(lines: Longs, numbers: Longs) -> Longs:
    """The stable order by line, ascending already, then by number."""
    if lines[-1] == 0:
        return _stable(numbers)
    least = int(numbers.min())
    span = int(numbers.max()) - least + 1
    if span * (int(lines[-1]) + 1) < 1 << _PACKED_BITS:
        return _stable(lines * span + (numbers - least))
    order = _stable(numbers)
    return order[_stable(lines[order])]


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


def find_pair_starts(first: NDArray[Any], second: NDArray[Any]) -> Longs:
    """Where each run of equal pairs begins, of one pair at least."""
    return np.flatnonzero(np.concatenate([[True], (first[1:] != first[:-1]) | (second[1:] != second[:-1])]))


def make_equality_keys(values: pa.Array) -> tuple[Longs, Longs]:
    """Numbers that are equal where the values are, and numbers that are ordered as the values are."""
    if pa.types.is_int64(values.type):
        longs = values.to_numpy()
        return longs, longs
    if pa.types.is_float64(values.type):
        doubles = values.to_numpy() + 0.0
        doubles[np.isnan(doubles)] = np.nan
        bits = doubles.view(np.int64)
        ordered = np.where(bits < 0, -(bits & _MAGNITUDE), bits)
        return ordered, ordered
    ranks, _ = rank_values(values)
    return ranks, ranks


def _negative(values: pa.Array, places: Any) -> Longs:
    first = pc.binary_slice(values.take(pa.array(places)), 0, 1)
    negative: Longs = places[pc.greater_equal(first, pa.scalar(b"\x80")).to_numpy(zero_copy_only=False)]
    return negative
