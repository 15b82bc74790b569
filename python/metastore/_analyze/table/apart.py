"""The first algorithm where the lists of all columns together are too much for the driver: every column in a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore._analyze.table.details import DetailSlice
from metastore._analyze.table.lists import VALUE_ROWS, iterate_columns, put_most_frequent_first, sum_value_rows
from metastore._analyze.table.objects import ROW_GROUPS
from metastore._analyze.table.pieces import read_stored_values, rows_from_ipc, rows_to_ipc
from metastore._analyze.table.reduction import ListFacts, reduce_lists
from metastore._format.detail_layout import split_evenly
from metastore._format.schemas import TABLE_FREQUENCIES
from metastore._store.damaged import BlockDamageError
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark import SparkContext

    from metastore._analyze.place import ReadContent, TaskStore
    from metastore._analyze.table.cuts import FileValueCounts
    from metastore._analyze.table.list_nodes import GroupListSource
    from metastore._format.objects import ObjectRef


@dataclass(frozen=True)
class ReduceJobResult:
    """What tasks made of the lists of columns.

    Attributes:
        objects: What they wrote, each with the columns that it holds.
        listed: What is known of each list, by the column's place in the snapshot's schema.
        heads: The most frequent values, as rows of `table-frequencies`.
        damaged: The failure, where an object is not what is named.
    """

    objects: tuple[tuple[ObjectRef, tuple[int, ...]], ...]
    listed: dict[int, ListFacts]
    heads: pa.Table
    damaged: BlockDamageError | DamagedObject | None


def run_reduce_job(
    context: SparkContext,
    store: TaskStore,
    parts: Sequence[DetailSlice | GroupListSource],
    columns: Sequence[FileValueCounts],
    top: int,
) -> ReduceJobResult:
    """Reduce lists, every column in one task."""
    tasks = min(len(columns), 4 * context.defaultParallelism)
    shared = context.broadcast({lists.ordinal: lists for lists in columns})

    def send(some: Iterable[tuple[DetailSlice | GroupListSource, ReadContent]]) -> Iterator[tuple[int, Any]]:
        for part, content in some:
            try:
                rows = sum_value_rows(read_stored_values(part, content))
            except DamagedObject as damage:
                yield 0, (part.block if isinstance(part, DetailSlice) else None, part.name, damage.reason)
                continue
            yield from ((ordinal % tasks, rows_to_ipc(of_column)) for ordinal, of_column in iterate_columns(rows))

    def reduce(task: int, sent: Iterable[tuple[int, Any]]) -> Iterator[Any]:
        mine = [lists for ordinal, lists in sorted(shared.value.items()) if ordinal % tasks == task]
        yield _reduced(store, mine, [content for _, content in sent], top)

    slices = min(len(parts), 8 * context.defaultParallelism)
    spread = store.with_content(context, parts, slices, lambda part: part.name).mapPartitions(send)
    found = store.collect(spread.partitionBy(tasks, int).mapPartitionsWithIndex(reduce))
    shared.unpersist()
    heads = [rows_from_ipc(one[2]) for one in found if one[0] is not None]
    whole = pa.concat_tables(heads) if heads else TABLE_FREQUENCIES.empty_table()
    return ReduceJobResult(
        tuple(
            (one[0], tuple(rows_from_ipc(one[2])["column"].unique().to_pylist())) for one in found if one[0] is not None
        ),
        {ordinal: known for one in found for ordinal, known in one[1].items()},
        whole,
        next((_failure(*one[3]) for one in found if one[3]), None),
    )


def _failure(block: str | None, name: str, reason: str) -> BlockDamageError | DamagedObject:
    damage = DamagedObject(name, reason)
    return damage if block is None else BlockDamageError(block, str(damage))


def _reduced(store: TaskStore, columns: Sequence[FileValueCounts], sent: Sequence[Any], top: int) -> Any:
    damaged = next((content for content in sent if isinstance(content, tuple)), None)
    tables = [rows_from_ipc(content) for content in sent if isinstance(content, bytes)]
    table, known = reduce_lists(pa.concat_tables(tables) if tables else VALUE_ROWS.empty_table(), columns, top)
    if damaged or not table.num_rows:
        return None, known, None, damaged
    ref = store.write("table-frequencies", table, split_evenly(table.num_rows, ROW_GROUPS))
    ordered, heads = put_most_frequent_first(table)
    return ref, known, rows_to_ipc(ordered.slice(0, heads)), None
