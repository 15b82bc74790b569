"""The first algorithm where the lists of all columns together are too much for the driver: every column in a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore._analyze.table.details import Part
from metastore._analyze.table.lists import LISTED, heads_first, merged, tables_by_column
from metastore._analyze.table.objects import ROW_GROUPS
from metastore._analyze.table.pieces import packed, stored_rows, unpacked
from metastore._analyze.table.reduction import Listed, reduced
from metastore._format.detail_layout import even_groups
from metastore._format.schemas import TABLE_FREQUENCIES
from metastore._store.damaged import DamagedBlock
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark import SparkContext

    from metastore._analyze.place import Content, Place
    from metastore._analyze.table.cuts import Lists
    from metastore._analyze.table.list_nodes import FromNodes
    from metastore._format.objects import ObjectRef


@dataclass(frozen=True)
class Apart:
    """What tasks made of the lists of columns.

    Attributes:
        objects: What they wrote, each with the columns that it holds.
        listed: What is known of each list, by the column's place in the snapshot's schema.
        heads: The most frequent values, as rows of `table-frequencies`.
        damaged: The failure, where an object is not what is named.
    """

    objects: tuple[tuple[ObjectRef, tuple[int, ...]], ...]
    listed: dict[int, Listed]
    heads: pa.Table
    damaged: DamagedBlock | DamagedObject | None


def reduce_apart(
    context: SparkContext, store: Place, parts: Sequence[Part | FromNodes], columns: Sequence[Lists], top: int
) -> Apart:
    """Reduce lists, every column in one task."""
    tasks = min(len(columns), 4 * context.defaultParallelism)
    shared = context.broadcast({lists.ordinal: lists for lists in columns})

    def send(some: Iterable[tuple[Part | FromNodes, Content]]) -> Iterator[tuple[int, Any]]:
        for part, content in some:
            try:
                rows = merged(stored_rows(part, content))
            except DamagedObject as damage:
                yield 0, (part.block if isinstance(part, Part) else None, part.name, damage.reason)
                continue
            yield from ((ordinal % tasks, packed(of_column)) for ordinal, of_column in tables_by_column(rows))

    def reduce(task: int, sent: Iterable[tuple[int, Any]]) -> Iterator[Any]:
        mine = [lists for ordinal, lists in sorted(shared.value.items()) if ordinal % tasks == task]
        yield _reduced(store, mine, [content for _, content in sent], top)

    slices = min(len(parts), 8 * context.defaultParallelism)
    spread = store.with_content(context, parts, slices, lambda part: part.name).mapPartitions(send)
    found = store.collect(spread.partitionBy(tasks, int).mapPartitionsWithIndex(reduce))
    shared.unpersist()
    heads = [unpacked(one[2]) for one in found if one[0] is not None]
    whole = pa.concat_tables(heads) if heads else TABLE_FREQUENCIES.empty_table()
    return Apart(
        tuple((one[0], tuple(unpacked(one[2])["column"].unique().to_pylist())) for one in found if one[0] is not None),
        {ordinal: known for one in found for ordinal, known in one[1].items()},
        whole,
        next((_failure(*one[3]) for one in found if one[3]), None),
    )


def _failure(block: str | None, name: str, reason: str) -> DamagedBlock | DamagedObject:
    damage = DamagedObject(name, reason)
    return damage if block is None else DamagedBlock(block, str(damage))


def _reduced(store: Place, columns: Sequence[Lists], sent: Sequence[Any], top: int) -> Any:
    damaged = next((content for content in sent if isinstance(content, tuple)), None)
    tables = [unpacked(content) for content in sent if isinstance(content, bytes)]
    table, known = reduced(pa.concat_tables(tables) if tables else LISTED.empty_table(), columns, top)
    if damaged or not table.num_rows:
        return None, known, None, damaged
    ref = store.write("table-frequencies", table, even_groups(table.num_rows, ROW_GROUPS))
    ordered, heads = heads_first(table)
    return ref, known, packed(ordered.slice(0, heads)), None
