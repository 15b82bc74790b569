"""A Spark job that makes value indexes: lists of a table's values with their frequency in each data file.

Tasks read the values, a shuffle by hash brings equal values together, and tasks write the lists. No list is ever in
one place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.object_layout import ROW_GROUPS, find_run_starts
from metastore.format.object_schemas import TABLE_FREQUENCIES, TABLE_PLACED, fill_schema
from metastore.format.objects import ObjectRef, decode_object
from metastore.format.sortable_values import is_wide_decimal, make_comparison_key
from metastore.format.value_postings import (
    STARTS_KEY,
    choose_part,
    encode_hash_starts,
    hash_column_values,
    read_postings,
)
from metastore.table_level.count_jobs import ROWS_PER_PARTITION, CountTarget, gather_results
from metastore.table_level.shuffle_job import (
    JobResult,
    PartitionCounts,
    PartitionResult,
    RoutedRows,
    ShuffleStrategy,
    TaskFacts,
    distribute_sources,
    run_shuffle,
    write_lists,
)
from metastore.table_level.value_rows import VALUE_ROWS, find_pair_starts, iterate_columns, make_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark import SparkContext

    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent, TaskStore
    from metastore.table_level.value_sources import ValueSource

    Longs = NDArray[np.int64]


@dataclass(frozen=True)
class EarlierIndex:
    """An object of the value index of an earlier snapshot; it covers the data files that are still live.

    Attributes:
        ordinals: The ordinals of columns in that snapshot, to their ordinals now.
        files: For each data file of that snapshot its position now, or -1 if it is gone.
    """

    object: ObjectRef
    ordinals: Mapping[int, int]
    files: Longs

    is_summed: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.object.name

    @property
    def columns(self) -> frozenset[int]:
        return frozenset(self.ordinals.values())

    def read_values(self, content: ReadContent) -> Iterator[pa.Table]:
        yield self.carry_over(decode_object(self.object, content()))

    def carry_over(self, rows: pa.Table) -> pa.Table:
        """Return the frequencies of values in live files as `VALUE_ROWS`, with the files' positions in `listed`."""
        stored_ordinals = list(self.ordinals)
        is_carried = pc.is_in(rows["column"], pa.array(stored_ordinals, pa.int32()))
        has_files = pc.or_(pc.is_valid(rows["files_sparse"]), pc.is_valid(rows["files_dense"]))
        rows = rows.filter(pc.and_(is_carried, has_files))
        ordinals = np.zeros(max(stored_ordinals) + 1, np.int32)
        ordinals[stored_ordinals] = list(self.ordinals.values())
        row, file, count = read_postings(rows)
        position = self.files[file]
        is_live = (position >= 0) & (count > 0)
        live_rows = rows.take(pa.array(row[is_live]))
        fields = {name: live_rows[name] for name in VALUE_ROWS.names[1:4]}
        fields["column"] = pa.array(ordinals[live_rows["column"].to_numpy()])
        fields["frequency"] = pa.array(count[is_live])
        fields["listed"] = pa.array(position[is_live], pa.int64())
        return fill_schema(VALUE_ROWS, fields, live_rows.num_rows)


def run_index_job(
    context: SparkContext,
    store: TaskStore,
    sources: Sequence[ValueSource],
    targets: Mapping[int, CountTarget],
    files: int,
) -> JobResult:
    """Make value indexes; the number of a source's values is the position of their data file."""
    partitions = choose_object_count(sum(target.number for target in targets.values()), ROWS_PER_PARTITION)
    distributed = distribute_sources(context, store, sources, max(4 * context.defaultParallelism, partitions))
    strategy = ValueIndexing({ordinal: target.column for ordinal, target in targets.items()}, partitions, files)
    results = run_shuffle(store, distributed, strategy)
    indexed = {ordinal: np.zeros(files, np.int64) for ordinal in targets}
    for result in results:
        for ordinal, rows in result.indexed_rows.items():
            indexed[ordinal] += rows.astype(np.int64)
    return replace(gather_results(results, targets), indexed_rows=indexed)


@dataclass(frozen=True)
class ValueIndexing(ShuffleStrategy["Column"]):
    """The indexing of values: equal values meet in one partition, by their hash, with the positions of their files.

    Attributes:
        files: The number of data files of the snapshot.
    """

    files: int

    sums_values: ClassVar[bool] = False

    def route(self, ordinal: int, rows: pa.Table) -> RoutedRows:
        return RoutedRows(rows, choose_part(hash_column_values(rows, self.columns[ordinal]), self.partitions))

    def finish(self, store: TaskStore, partition: int, rows: Sequence[pa.Table], facts: TaskFacts) -> PartitionResult:
        by_column = dict(iterate_columns(pa.concat_tables([VALUE_ROWS.empty_table(), *rows])))
        if not by_column:
            return PartitionResult(facts=facts)
        lists = {}
        counts = {}
        indexed = {}
        for ordinal, column_rows in sorted(by_column.items()):
            postings = make_postings(column_rows, self.columns[ordinal], self.files)
            singles = int((postings["frequency"].to_numpy() == 1).sum())
            lists[ordinal] = postings
            counts[ordinal] = PartitionCounts(postings.num_rows, singles)
            indexed[ordinal] = _narrow(count_indexed_rows(postings, self.files))
        layout = lay_out_postings(list(lists.values()), [self.columns[ordinal] for ordinal in lists])
        ref, heads = write_lists(store, pa.concat_tables(lists.values()), layout, (partition, self.partitions))
        return PartitionResult(facts=facts, object=ref, heads=heads, counts=counts, indexed_rows=indexed)


def make_postings(rows: pa.Table, column: Column, files: int) -> pa.Table:
    """Return the list of a column, each value once; `listed` of the rows is the position of their data file."""
    values = rows[f"value_{column.encoding}"].combine_chunks()
    keys = make_keys(values)
    positions = rows["listed"].to_numpy()
    order = np.lexsort((positions, keys))
    pairs = find_pair_starts(keys[order], positions[order])
    counts = np.add.reduceat(rows["frequency"].to_numpy()[order], pairs)
    positions = positions[order][pairs]
    first = order[pairs]
    starts = find_run_starts(keys[first])
    lengths = np.diff(starts, append=len(first))
    totals = np.add.reduceat(counts, starts)
    distinct_values = values.take(pa.array(first[starts]))
    ranked = np.lexsort((rank_by_value(distinct_values, column), -totals))
    is_dense = 2 * lengths >= files
    fields: dict[str, pa.Array] = {
        "column": pa.array(np.full(len(starts), rows["column"][0].as_py(), np.int32)),
        f"value_{column.encoding}": distinct_values,
        "frequency": pa.array(totals),
        "files_sparse": _make_maps(positions, counts, lengths, is_dense),
        "files_dense": _make_lists(positions, counts, lengths, is_dense, files),
    }
    return fill_schema(TABLE_FREQUENCIES, fields, len(starts)).take(pa.array(ranked))


def _make_maps(positions: NDArray[Any], counts: Longs, lengths: Longs, is_dense: Any) -> pa.Array:
    """Return the files of values in few files, as maps of their positions to the counts."""
    in_maps = np.repeat(~is_dense, lengths)
    offsets = _make_offsets(np.where(is_dense, 0, lengths), is_dense)
    maps = pa.MapArray.from_arrays(offsets, pa.array(positions[in_maps], pa.int32()), pa.array(counts[in_maps]))
    return maps.cast(TABLE_FREQUENCIES.field("files_sparse").type)


def _make_lists(positions: NDArray[Any], counts: Longs, lengths: Longs, is_dense: Any, files: int) -> pa.Array:
    """Return the files of values in many files, as lists of the counts in all files."""
    lines = np.repeat(np.cumsum(is_dense) - 1, lengths)
    in_lists = np.repeat(is_dense, lengths)
    matrix = np.zeros((int(is_dense.sum()), files), np.int64)
    matrix[lines[in_lists], positions[in_lists]] = counts[in_lists]
    offsets = _make_offsets(np.where(is_dense, files, 0), ~is_dense)
    return pa.ListArray.from_arrays(offsets, pa.array(matrix.reshape(-1)))


def _make_offsets(lengths: Longs, is_null: Any) -> pa.Array:
    """Return the offsets of lists; a null list begins with a null offset."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.array(offsets, pa.int32(), mask=np.append(is_null, False))


def _narrow(counts: Longs) -> NDArray[Any]:
    """Encode counts in as few bytes as possible, for their way to the driver."""
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))


_VALUES_OF_AN_OBJECT = 1 << 18
_MOST_OBJECTS = 64
_VALUES_OF_A_GROUP = 1 << 14


def choose_object_count(values: int, most_values: int) -> int:
    """Return the number of objects for lists: small objects, as long as a manifest can name all of them."""
    small_objects = -(-values // _VALUES_OF_AN_OBJECT)
    return max(1, -(-values // most_values), min(_MOST_OBJECTS, small_objects))


def lay_out_postings(
    lists: Sequence[pa.Table], columns: Sequence[Column]
) -> tuple[pa.Table, list[int], dict[str, str]]:
    """Lay lists out in one object; return its rows, row groups and footer."""
    most_groups = max(ROW_GROUPS // len(lists), 1)
    tables = []
    sizes = []
    starts = []
    for rows, column in zip(lists, columns, strict=True):
        column_rows, column_sizes, column_starts = _lay_out_column(rows, column, most_groups)
        tables.append(column_rows)
        sizes += column_sizes
        starts.append(column_starts)
    return pa.concat_tables(tables), sizes, {STARTS_KEY: encode_hash_starts(np.concatenate(starts))}


def _lay_out_column(rows: pa.Table, column: Column, most_groups: int) -> tuple[pa.Table, list[int], NDArray[np.uint64]]:
    """Order a list by row groups of consecutive hashes; return it with their sizes and first hashes."""
    hashes = hash_column_values(rows, column)
    number = len(hashes)
    groups = min(most_groups, -(-number // _VALUES_OF_A_GROUP))
    size = -(-number // groups)
    ranked = np.argsort(hashes, kind="stable")
    group = np.empty(number, np.int64)
    group[ranked] = np.arange(number) // size
    by_group = np.lexsort((rank_by_value(rows[f"value_{column.encoding}"].combine_chunks(), column), group))
    sizes = [min(size, number - start) for start in range(0, number, size)]
    return rows.take(pa.array(by_group)), sizes, hashes[ranked[::size]]


def rank_by_value(values: pa.Array, column: Column) -> Longs:
    """Make numbers with the order of the values of a column."""
    if is_wide_decimal(column):
        ranks = np.empty(len(values), np.int64)
        numbers = list(map(make_comparison_key(column), values.to_pylist()))
        ranks[sorted(range(len(numbers)), key=numbers.__getitem__)] = np.arange(len(numbers))
        return ranks
    return make_keys(values)


def count_indexed_rows(rows: pa.Table, files: int) -> Longs:
    """Return the number of rows of each data file that a list covers."""
    covered = np.zeros(files, np.int64)
    _, file, count = read_postings(rows)
    np.add.at(covered, file, count)
    return covered


def index_coverage_rows(indexed: Mapping[int, Longs]) -> tuple[pa.Table, list[int]]:
    """Return rows of `table-placed`, and their row groups."""
    tables = []
    for ordinal, rows in sorted(indexed.items()):
        ordinals = np.full(len(rows), ordinal, np.int32)
        files = np.arange(len(rows), dtype=np.int32)
        tables.append(pa.table([ordinals, files, rows], schema=TABLE_PLACED))
    sizes = [table.num_rows for table in tables]
    if len(sizes) > ROW_GROUPS:
        each = -(-len(sizes) // ROW_GROUPS)
        sizes = [sum(sizes[start : start + each]) for start in range(0, len(sizes), each)]
    return pa.concat_tables(tables), sizes
