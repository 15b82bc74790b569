"""Adds up the frequencies of equal values in the lists of many data files."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.object_layout import find_run_starts
from metastore.format.object_schemas import ENCODED_TYPES, fill_schema
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
ENCODINGS = tuple(ENCODED_TYPES)
_VALUES = tuple(f"value_{encoding}" for encoding in ENCODINGS)


def sum_value_rows(rows: pa.Table, wide: Collection[int] = ()) -> pa.Table:
    """Add up equal values of a column.

    Arrow's `group_by` and a sort take three to five times as long for numbers (of a million values 0.12 s here and
    0.55 s there), and two thirds of the time for texts.
    """
    parts: dict[int, pa.Table] = {}
    for columns in _group_columns(split_by_column(rows), wide):
        is_wide = not columns.keys().isdisjoint(wide)
        parts |= _sum_columns(columns, wide=is_wide)
    if not parts:
        return VALUE_ROWS.empty_table()
    return pa.concat_tables(parts[column] for column in sorted(parts))


def split_by_column(rows: pa.Table) -> dict[int, list[pa.RecordBatch]]:
    """Return the rows of each column, without a copy if most of a column's rows are consecutive."""
    by_column: dict[int, list[pa.RecordBatch]] = defaultdict(list)
    for batch in filter(len, rows.to_batches()):
        columns = batch["column"].to_numpy()
        starts = find_run_starts(columns)
        if len(starts) > 2 * len(np.unique(columns[starts])):
            order = _sort_stably(columns)
            batch, columns = batch.take(pa.array(order)), columns[order]  # noqa: PLW2901 - the same rows
            starts = find_run_starts(columns)
        ends = [*starts[1:].tolist(), len(columns)]
        for column, start, end in zip(columns[starts].tolist(), starts.tolist(), ends, strict=True):
            by_column[column].append(batch.slice(start, end - start))
    return by_column


def iterate_columns(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each column as a table, in the order of `split_by_column`."""
    for column, batches in split_by_column(rows).items():
        yield column, pa.Table.from_batches(batches)


def _group_columns(by_column: Mapping[int, Batches], wide: Collection[int]) -> Iterator[dict[int, Batches]]:
    """Group short columns of one kind to add them up at once: a call costs more than a short column."""
    groups: dict[tuple[str, bool], dict[int, Batches]] = defaultdict(dict)
    sizes: Counter[tuple[str, bool]] = Counter()
    for column, batches in by_column.items():
        kind = (_find_value_field(batches), column in wide)
        size = _count_rows(batches)
        if sizes[kind] + size > _ROWS_TOGETHER and groups[kind]:
            yield groups.pop(kind)
            sizes[kind] = 0
        groups[kind][column] = batches
        sizes[kind] += size
    yield from groups.values()


def _find_value_field(batches: Batches) -> str:
    return next(name for name in _VALUES if not batches[0][name].null_count)


def _count_rows(batches: Batches) -> int:
    return sum(batch.num_rows for batch in batches)


def _sum_columns(columns: Mapping[int, Batches], *, wide: bool) -> dict[int, pa.Table]:
    """Return each value of these columns once, ordered by decreasing frequency and value."""
    ordinals = np.array(list(columns), np.int32)
    lines = np.repeat(np.arange(len(columns)), list(map(_count_rows, columns.values())))
    batches = list(chain.from_iterable(columns.values()))
    name = _find_value_field(batches)
    rows = pa.Table.from_batches(batches).select([name, "frequency", "listed"]).combine_chunks()
    values, frequencies, floor_sums = (chunked.combine_chunks() for chunked in rows.columns)
    counts = [frequencies.to_numpy(), floor_sums.to_numpy()]
    lines, values, (frequencies, floor_sums) = _add_up(lines, values, counts)
    if wide and name == "value_binary":
        by_value = np.arange(len(values))
        by_value[_find_negative(values, by_value)] -= len(values)
        order = np.lexsort((by_value, -frequencies, lines))
    else:  # they are in the order of their values, and the sort is stable
        order = _sort_lines(lines, -frequencies)
    fields = {
        "column": pa.array(ordinals[lines]),  # lines stay in order
        name: values.take(pa.array(order)),
        "frequency": pa.array(frequencies[order]),
        "listed": pa.array(floor_sums[order]),
    }
    table = fill_schema(VALUE_ROWS, fields, len(order))
    starts = np.searchsorted(lines, np.arange(len(ordinals) + 1)).tolist()
    spans = zip(ordinals.tolist(), pairwise(starts), strict=True)
    return {column: table.slice(start, end - start) for column, (start, end) in spans}


def _add_up(lines: Longs, values: pa.Array, counts: Sequence[Longs]) -> tuple[Longs, pa.Array, list[Longs]]:
    """Return each value of a line once, in the order of lines and keys, and the sums of its counts."""
    if pa.types.is_int64(values.type):
        longs = values.to_numpy()
        least = int(longs.min())
        span = int(longs.max()) - least + 1
        if span * (int(lines[-1]) + 1) <= max(2 * len(longs), _SMALL_SPAN):
            codes = lines * span + (longs - least)
            codes, sums = _add_up_codes(codes, counts, span * (int(lines[-1]) + 1))
            return codes // span, pa.array(codes % span + least), sums
    keys = make_keys(values)
    order = _sort_lines(lines, keys)
    lines = lines[order]
    keys = keys[order]
    starts = find_pair_starts(keys, lines)
    sums = [np.add.reduceat(of_values[order], starts) for of_values in counts]
    return lines[starts], values.take(pa.array(order[starts])), sums


def _add_up_codes(codes: Longs, counts: Sequence[Longs], span: int) -> tuple[Longs, list[Longs]]:
    """Return each code once, ascending, and the sums of its counts; codes are below the span."""
    is_present = np.zeros(span, np.bool_)
    is_present[codes] = True
    present = np.flatnonzero(is_present)
    return present, [_sum_by_code(codes, of_values, span)[present] for of_values in counts]


def _sum_by_code(codes: Longs, counts: Longs, span: int) -> Longs:
    if not counts.any():
        return np.zeros(span, np.int64)
    sums: Longs = np.bincount(codes, weights=counts, minlength=span).astype(np.int64)  # exact below 2^53
    return sums


def _sort_lines(lines: Longs, numbers: Longs) -> Longs:
    """Return the stable order by line, ascending already, then by number."""
    if lines[-1] == 0:
        return _sort_stably(numbers)
    least = int(numbers.min())
    span = int(numbers.max()) - least + 1
    if span * (int(lines[-1]) + 1) < 1 << _PACKED_BITS:
        return _sort_stably(lines * span + (numbers - least))
    order = _sort_stably(numbers)
    return order[_sort_stably(lines[order])]


def _sort_stably(numbers: Longs) -> Longs:
    """Sort numbers stably; positions are packed into the sorted numbers if they fit, three times as fast."""
    least = int(numbers.min())
    bits = len(numbers).bit_length()
    if (int(numbers.max()) - least).bit_length() + bits > _PACKED_BITS:
        return np.argsort(numbers, kind="stable")
    packed = numbers.astype(np.int64) - least
    packed <<= bits
    packed |= np.arange(len(numbers))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def find_pair_starts(first: NDArray[Any], second: NDArray[Any]) -> Longs:
    """Return the start of each run of equal pairs; there is at least one pair."""
    is_new = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return np.flatnonzero(np.concatenate([[True], is_new]))


def make_keys(values: pa.Array) -> Longs:
    """Make numbers that are equal if and only if the values are, and have their order."""
    if pa.types.is_int64(values.type):
        longs: Longs = values.to_numpy()
        return longs
    if pa.types.is_float64(values.type):
        doubles = values.to_numpy() + 0.0
        doubles[np.isnan(doubles)] = np.nan
        bits = doubles.view(np.int64)
        ordered: Longs = np.where(bits < 0, -(bits & _MAGNITUDE), bits)
        return ordered
    ranks, _ = rank_values(values)
    return ranks


def _find_negative(values: pa.Array, positions: Longs) -> Longs:
    """Return the positions of negative decimals: their first bit is set."""
    first = pc.binary_slice(values.take(pa.array(positions)), 0, 1)
    is_negative = pc.greater_equal(first, pa.scalar(b"\x80"))
    negative: Longs = positions[is_negative.to_numpy(zero_copy_only=False)]
    return negative
