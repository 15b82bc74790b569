"""Exact ranks: which value stands at a place among all values of a column."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from metastore._format.columns import Column
    from metastore._format.manifest import RanksRef, Snapshot
    from metastore._store import Store


def ranked_columns(snapshot: Snapshot) -> tuple[Column, ...]:
    """The columns of a snapshot that have exact ranks."""
    held = sorted({ordinal for ref in snapshot.ranks for ordinal in ref.columns})
    return tuple(snapshot.columns[ordinal] for ordinal in held)


def exact_quantiles(
    store: Store, snapshot: Snapshot, column: Column, probabilities: Sequence[float]
) -> list[Any] | None:
    """Look up exact quantiles.

    The quantile of p among n values that are neither null nor NaN is the value of rank max(1, ceil(p n)).

    Args:
        store: Where the ranks are.
        snapshot: Of which snapshot.
        column: One of its columns.
        probabilities: Numbers from 0 to 1.

    Returns:
        A value as it is stored for each probability (None where the column has no values); None without ranks.

    Raises:
        DamagedObject: An object is not what was written.
    """
    parts = _parts(snapshot, column)
    if not parts:
        return None
    ordinal = snapshot.columns.index(column)
    last = _Part(store, parts[-1], ordinal, column)
    total = last.last
    if not total:
        return [None] * len(probabilities)
    ranks = [max(1, math.ceil(p * total)) for p in probabilities]
    starts = [ref.before(ordinal) for ref in parts]
    places = [int(np.searchsorted(starts, rank, side="left")) - 1 for rank in ranks]
    read = {place: last if place == len(parts) - 1 else _Part(store, parts[place], ordinal, column) for place in places}
    return [read[place].at(rank) for place, rank in zip(places, ranks, strict=True)]


def rank_rows(store: Store, snapshot: Snapshot, column: Column) -> Iterator[pa.Table]:
    """The distinct values of a column in order, each with its last rank: the columns of `table-ranks`.

    Raises:
        DamagedObject: An object is not what was written.
    """
    ordinal = snapshot.columns.index(column)
    for ref in _parts(snapshot, column):
        yield _rows(store, ref, ordinal)


def _parts(snapshot: Snapshot, column: Column) -> list[RanksRef]:
    ordinal = snapshot.columns.index(column)
    return sorted((ref for ref in snapshot.ranks if ordinal in ref.columns), key=lambda ref: ref.before(ordinal))


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
