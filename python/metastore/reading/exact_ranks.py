"""Exact ranks: which value stands at a place among all values of a column."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.adapters.identifiers import find_column
from metastore.format.table_column import Column, is_compatible
from metastore.format.value_rendering import render_value
from metastore.reading.views import RANKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from metastore.format.manifest import RanksRef, Snapshot
    from metastore.reading.snapshot import SnapshotAnswer
    from metastore.reading.summary_rows import Row
    from metastore.store import Store


def list_rank_columns(snapshot: Snapshot) -> tuple[Column, ...]:
    """The columns of a snapshot that have exact ranks."""
    held = sorted({ordinal for ref in snapshot.ranks for ordinal in ref.columns})
    return tuple(snapshot.columns[ordinal] for ordinal in held)


def build_ranks_view(store: Store, shown: SnapshotAnswer, column: str | None, table: str) -> pa.Table:
    """The view `ranks` of a table."""
    keys = {one.key for one in list_rank_columns(shown.snapshot)}
    held = [one for one in shown.columns if one.key in keys]
    parts = [RANKS.empty_table()]
    for one in [find_column(held, column, table)] if column else held:
        for rows in read_ranks(store, shown.snapshot, one):
            names = pa.array([one.name] * rows.num_rows, pa.string())
            parts.append(rows.set_column(0, RANKS.field(0), names).cast(RANKS))
    return pa.concat_tables(parts)


def build_exact_quantile_rows(
    store: Store, shown: SnapshotAnswer, column: Column, probabilities: Sequence[float], zone: str
) -> list[Row] | None:
    """The rows of `quantiles`, None where the column has no ranks."""
    found = read_exact_quantiles(store, shown.snapshot, column, probabilities)
    if found is None:
        return None
    return [
        {
            "probability": probability,
            "value": render_value(value, column, zone=zone),
            "exact": shown.is_requested,
            "error": 0.0 if shown.is_requested else None,
        }
        for probability, value in zip(probabilities, found, strict=True)
    ]


def read_exact_quantiles(
    store: Store, snapshot: Snapshot, column: Column, probabilities: Sequence[float]
) -> list[Any] | None:
    """Look up exact quantiles.

    The quantile of p among n values that are neither null nor NaN is the value of rank max(1, ceil(p n)).
    """
    ordinal, parts = _parts(snapshot, column)
    if not parts:
        return None
    last = _Part(store, parts[-1], ordinal, column)
    total = last.last
    if not total:
        return [None] * len(probabilities)
    ranks = [max(1, math.ceil(p * total)) for p in probabilities]
    starts = [ref.before(ordinal) for ref in parts]
    places = [int(np.searchsorted(starts, rank, side="left")) - 1 for rank in ranks]
    read = {place: last if place == len(parts) - 1 else _Part(store, parts[place], ordinal, column) for place in places}
    return [read[place].at(rank) for place, rank in zip(places, ranks, strict=True)]


def read_ranks(store: Store, snapshot: Snapshot, column: Column) -> Iterator[pa.Table]:
    """The distinct values of a column in order, each with its last rank: the columns of `table-ranks`."""
    ordinal, parts = _parts(snapshot, column)
    for ref in parts:
        yield _rows(store, ref, ordinal)


def _parts(snapshot: Snapshot, column: Column) -> tuple[int, list[RanksRef]]:
    """The column's place in the snapshot, and what holds its ranks, in order."""
    ordinal = next((i for i, one in enumerate(snapshot.columns) if is_compatible(one, column)), -1)
    parts = (ref for ref in snapshot.ranks if ordinal in ref.columns)
    return ordinal, sorted(parts, key=lambda ref: ref.before(ordinal))


def _rows(store: Store, ref: RanksRef, ordinal: int) -> pa.Table:
    rows = store.get(ref.object)
    start, end = np.searchsorted(rows.column("column").to_numpy(), [ordinal, ordinal + 1])
    return rows.slice(start, end - start)


class _Part:
    def __init__(self, store: Store, ref: RanksRef, ordinal: int, column: Column) -> None:
        rows = _rows(store, ref, ordinal)
        self._values = rows.column(f"value_{column.encoding}")
        self._ranks = rows.column("rank").to_numpy()

    @property
    def last(self) -> int:
        return int(self._ranks[-1]) if len(self._ranks) else 0

    def at(self, rank: int) -> Any:
        return self._values[int(np.searchsorted(self._ranks, rank, side="left"))].as_py()
