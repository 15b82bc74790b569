"""Where each value lives: a Spark job that makes lists of a table's values with their frequency in each data file.

Tasks read the values, a shuffle by hash brings equal ones together, tasks write the lists: none is ever in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.manifest_references import SummaryRef
from metastore.format.object_layout import find_run_starts, put_most_frequent_first
from metastore.format.object_schemas import TABLE_FREQUENCIES
from metastore.format.objects import decode_object
from metastore.format.value_postings import choose_part, hash_column_values, read_postings
from metastore.table_level.count_jobs import READ_BUDGET, ROWS_PER_PARTITION, JobResult, PartitionCounts, gather_results
from metastore.table_level.detail_selection import DetailSlice, read_detail_object, read_listed_values
from metastore.table_level.value_index_layout import (
    choose_object_count,
    count_indexed_rows,
    lay_out_postings,
    rank_by_value,
)
from metastore.table_level.value_rows import iterate_columns, make_equality_keys
from metastore.table_level.value_sources import (
    DataFileSource,
    UnreadableColumns,
    read_source_values,
    rows_from_ipc,
    rows_to_ipc,
    split_by_partition,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from pyspark import SparkContext

    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.spark_jobs.task_store import ReadContent, TaskStore
    from metastore.table_level.count_jobs import CountTarget

    Longs = NDArray[np.int64]


POSTING_ROWS = pa.schema(
    [
        pa.field("column", pa.int32(), nullable=False),
        pa.field("value_long", pa.int64()),
        pa.field("value_double", pa.float64()),
        pa.field("value_binary", pa.binary()),
        pa.field("frequency", pa.int64()),
        pa.field("file", pa.int32()),
    ]
)
"""Values of columns in a data file."""


@dataclass(frozen=True)
class EarlierIndex:
    """An object of the lists of an earlier snapshot: of files that are still there it tells all.

    Attributes:
        object: The object.
        ordinals: Place of a column then, to its place now.
        files: For each data file of then its place now; -1: it is gone.
    """

    object: ObjectRef
    ordinals: Mapping[int, int]
    files: Longs


@dataclass(frozen=True)
class IndexFileSource:
    """Columns of a data file that are read again, and the file's place in the snapshot's list."""

    place: int
    values: DataFileSource


IndexSource = DetailSlice | IndexFileSource | EarlierIndex


def run_index_job(
    context: SparkContext,
    store: TaskStore,
    pieces: Sequence[IndexSource],
    targets: Mapping[int, CountTarget],
    files: int,
) -> JobResult:
    """Make the lists."""
    whole = sum(target.number for target in targets.values())
    parts = choose_object_count(whole, ROWS_PER_PARTITION)
    columns = {ordinal: target.column for ordinal, target in targets.items()}

    def scatter(some: Iterable[tuple[IndexSource, ReadContent]]) -> Iterator[tuple[int, Any]]:
        return _scattered(some, columns, parts)

    def reduce(part: int, sent: Iterable[tuple[int, Any]]) -> Iterator[Any]:
        yield _written(store, columns, [content for _, content in sent], files, (part, parts))

    slices = max(1, min(len(pieces), max(4 * context.defaultParallelism, parts)))
    scattered = (
        store.distribute_with_content(context, pieces, slices, _object_of)
        .mapPartitions(scatter)
        .partitionBy(parts, int)
    )
    found = store.collect(scattered.mapPartitionsWithIndex(reduce))
    told = {ordinal: np.zeros(files, np.int64) for ordinal in targets}
    for *_, of_part in found:
        for ordinal, rows in of_part.items():
            told[ordinal] += rows.astype(np.int64)
    return replace(gather_results([one for *one, _ in found]), indexed_rows=told)


def _object_of(piece: IndexSource) -> str | None:
    if isinstance(piece, IndexFileSource):
        return None
    return piece.object.name if isinstance(piece, EarlierIndex) else piece.name


def make_postings(rows: pa.Table, column: Column, files: int) -> pa.Table:
    """The list of a column, each value once."""
    values = rows[f"value_{column.encoding}"].combine_chunks()
    keys, _ = make_equality_keys(values)
    where, counts = rows["file"].to_numpy(), rows["frequency"].to_numpy()
    order = np.lexsort((where, keys))
    pairs = _changes(keys[order], where[order])
    counts, where, first = np.add.reduceat(counts[order], pairs), where[order][pairs], order[pairs]
    starts = find_run_starts(keys[first])
    lengths = np.diff(starts, append=len(first))
    totals = np.add.reduceat(counts, starts)
    kept = values.take(pa.array(first[starts]))
    ranked = np.lexsort((rank_by_value(kept, column), -totals))
    dense = 2 * lengths >= files
    filled: dict[str, pa.Array] = {
        "column": pa.array(np.full(len(starts), rows["column"][0].as_py(), np.int32)),
        f"value_{column.encoding}": kept,
        "frequency": pa.array(totals),
        "files_sparse": _sparse(where, counts, np.where(dense, 0, lengths), np.repeat(~dense, lengths), dense),
        "files_dense": _dense(where, counts, lengths, dense, files),
    }
    arrays = [filled.get(one.name, pa.nulls(len(starts), one.type)) for one in TABLE_FREQUENCIES]
    return pa.table(arrays, schema=TABLE_FREQUENCIES).take(pa.array(ranked))


def _changes(keys: Longs, where: NDArray[Any]) -> Longs:
    changed = (keys[1:] != keys[:-1]) | (where[1:] != where[:-1])
    return np.flatnonzero(np.concatenate([[True], changed]))


def _sparse(where: NDArray[Any], counts: Longs, lengths: Longs, of_maps: Any, absent: Any) -> pa.Array:
    kind = TABLE_FREQUENCIES.field("files_sparse").type
    maps = pa.MapArray.from_arrays(
        _offsets(lengths, absent), pa.array(where[of_maps], pa.int32()), pa.array(counts[of_maps])
    )
    return maps.cast(kind)


def _dense(where: NDArray[Any], counts: Longs, lengths: Longs, dense: Any, files: int) -> pa.Array:
    line = np.cumsum(dense) - 1
    matrix = np.zeros((int(dense.sum()), files), np.int64)
    of_lists = np.repeat(dense, lengths)
    matrix[np.repeat(line, lengths)[of_lists], where[of_lists]] = counts[of_lists]
    return pa.ListArray.from_arrays(_offsets(np.where(dense, files, 0), ~dense), pa.array(matrix.reshape(-1)))


def _offsets(lengths: Longs, absent: Any) -> pa.Array:
    """Offsets of lists; those that are absent begin with null."""
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32(), mask=np.append(absent, False))


def _scattered(
    pieces: Iterable[tuple[IndexSource, ReadContent]], columns: Mapping[int, Column], parts: int
) -> Iterator[tuple[int, Any]]:
    unreadable: set[int] = set()
    for piece, content in pieces:
        for values in _placed(piece, content):
            if isinstance(values, UnreadableColumns):
                unreadable |= values.columns
                continue
            for ordinal, rows in iterate_columns(values):
                yield from split_by_partition(
                    rows, choose_part(hash_column_values(rows, columns[ordinal]), parts), parts
                )
    yield 0, frozenset(unreadable)


def _placed(piece: IndexSource, content: ReadContent) -> Iterator[pa.Table | UnreadableColumns]:
    if isinstance(piece, IndexFileSource):
        for values in read_source_values(piece.values, content, READ_BUDGET):
            if isinstance(values, UnreadableColumns):
                yield values
            else:
                yield _of_schema(values, pa.array(np.full(values.num_rows, piece.place, np.int32)))
        return
    try:
        if isinstance(piece, EarlierIndex):
            yield _carried(piece, decode_object(piece.object, content()))
        else:
            rows = read_listed_values(piece, read_detail_object(piece, content))
            yield _of_schema(rows, rows["listed"].cast(pa.int32()))
    except DamagedObject:
        ordinals = (
            piece.ordinals.values() if isinstance(piece, EarlierIndex) else piece.ordinals[piece.ordinals >= 0].tolist()
        )
        yield UnreadableColumns(frozenset(ordinals))


def _carried(piece: EarlierIndex, rows: pa.Table) -> pa.Table:
    """What an earlier list says of files that are still there."""
    there = pa.array(list(piece.ordinals), pa.int32())
    has_files = pc.or_(pc.is_valid(rows["files_sparse"]), pc.is_valid(rows["files_dense"]))
    rows = rows.filter(pc.and_(pc.is_in(rows["column"], there), has_files))
    now = np.zeros(max(piece.ordinals) + 1, np.int32)
    now[list(piece.ordinals)] = list(piece.ordinals.values())
    row, file, count = read_postings(rows)
    place = piece.files[file]
    keep = (place >= 0) & (count > 0)
    row, place, count = row[keep], place[keep], count[keep]
    chosen = rows.take(pa.array(row))
    chosen = chosen.set_column(0, "column", pa.array(now[chosen["column"].to_numpy()]))
    chosen = chosen.set_column(chosen.schema.get_field_index("frequency"), "frequency", pa.array(count))
    return _of_schema(chosen, pa.array(place, pa.int32()))


def _of_schema(rows: pa.Table, files: pa.Array) -> pa.Table:
    arrays = [files if one.name == "file" else rows[one.name] for one in POSTING_ROWS]
    return pa.table(arrays, schema=POSTING_ROWS)


def _written(
    store: TaskStore, columns: Mapping[int, Column], sent: Sequence[Any], files: int, part: tuple[int, int]
) -> Any:
    tables = [rows_from_ipc(content) for content in sent if isinstance(content, bytes)]
    unreadable = frozenset[int]().union(*(content for content in sent if isinstance(content, frozenset)))
    rows = pa.concat_tables([POSTING_ROWS.empty_table(), *tables])
    kept = {
        ordinal: make_postings(of_column, columns[ordinal], files)
        for ordinal, of_column in sorted(iterate_columns(rows), key=lambda one: one[0])
    }
    if not kept:
        return None, {}, None, unreadable, {}
    found = {
        ordinal: PartitionCounts(one.num_rows, int((one["frequency"].to_numpy() == 1).sum()))
        for ordinal, one in kept.items()
    }
    told = {ordinal: _small(count_indexed_rows(one, files)) for ordinal, one in kept.items()}
    ref = store.write(
        "table-frequencies", *lay_out_postings(list(kept.values()), [columns[ordinal] for ordinal in kept])
    )
    ordered, heads = put_most_frequent_first(pa.concat_tables(list(kept.values())))
    return SummaryRef(ref, tuple(kept), part), found, rows_to_ipc(ordered.slice(0, heads)), unreadable, told


def _small(counts: Longs) -> NDArray[Any]:
    """Counts in as few bytes as they need on their way to the driver."""
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))
