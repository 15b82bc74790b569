"""Exact ranks: the position of each value among the ordered values of a column."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.adapters.identifiers import narrow_columns
from metastore.format.value_rendering import render_value
from metastore.reading.views import RANKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from metastore.format.manifest import RanksRef, Snapshot
    from metastore.format.table_column import Column
    from metastore.reading.snapshot import SnapshotAnswer
    from metastore.reading.summary_rows import Row
    from metastore.store import Store


def list_rank_columns(snapshot: Snapshot) -> tuple[Column, ...]:
    """List the columns of a snapshot that have exact ranks."""
    ordinals: set[int] = set()
    for ref in snapshot.ranks:
        ordinals.update(ref.columns)
    return tuple(snapshot.columns[ordinal] for ordinal in sorted(ordinals))


def build_ranks_view(store: Store, answer: SnapshotAnswer, column: str | None, table: str) -> pa.Table:
    """Build the view `ranks` of a table."""
    keys = {ranked.key for ranked in list_rank_columns(answer.snapshot)}
    columns = [candidate for candidate in answer.columns if candidate.key in keys]
    parts = [RANKS.empty_table()]
    for ranked in narrow_columns(columns, column, table):
        for rows in read_ranks(store, answer.snapshot, ranked):
            names = pa.array([ranked.name] * rows.num_rows, pa.string())
            named_rows = rows.set_column(0, RANKS.field(0), names)
            parts.append(named_rows.cast(RANKS))
    return pa.concat_tables(parts)


def build_exact_quantile_rows(
    store: Store, answer: SnapshotAnswer, column: Column, probabilities: Sequence[float], zone: str
) -> list[Row] | None:
    """Build the rows of `quantiles`, or None if the column has no ranks."""
    quantiles = read_exact_quantiles(store, answer.snapshot, column, probabilities)
    if quantiles is None:
        return None
    error = 0.0 if answer.is_requested else None
    rows = []
    for probability, value in zip(probabilities, quantiles, strict=True):
        row = {
            "probability": probability,
            "value": render_value(value, column, zone=zone),
            "exact": answer.is_requested,
            "error": error,
        }
        rows.append(row)
    return rows


def read_exact_quantiles(
    store: Store, snapshot: Snapshot, column: Column, probabilities: Sequence[float]
) -> list[Any] | None:
    """Look up exact quantiles.

    The quantile of p among n values that are neither null nor NaN is the value of rank max(1, ceil(p n)).
    """
    ranks = _ColumnRanks.find(store, snapshot, column)
    if ranks is None:
        return None
    total = ranks.count_values()
    if not total:
        return [None] * len(probabilities)
    return [ranks.look_up(max(1, math.ceil(probability * total))) for probability in probabilities]


def read_ranks(store: Store, snapshot: Snapshot, column: Column) -> Iterator[pa.Table]:
    """Read the distinct values of a column in order, each with its last rank: the columns of `table-ranks`."""
    ranks = _ColumnRanks.find(store, snapshot, column)
    if ranks is not None:
        for number in range(len(ranks.refs)):
            yield ranks.read_rows(number)


class _ColumnRanks:
    """The exact ranks of one column, in several objects.

    Attributes:
        refs: The objects in the order of their ranks.
    """

    def __init__(self, store: Store, refs: Sequence[RanksRef], ordinal: int, column: Column) -> None:
        self.refs = refs
        self._store = store
        self._ordinal = ordinal
        self._value_field = f"value_{column.encoding}"
        self._first_ranks = [ref.before(ordinal) for ref in refs]
        self._parts: dict[int, pa.Table] = {}

    @classmethod
    def find(cls, store: Store, snapshot: Snapshot, column: Column) -> _ColumnRanks | None:
        """Return the ranks of a column, or None if it has none."""
        ordinal = snapshot.find_ordinal(column)
        if ordinal is None:
            return None
        refs = [ref for ref in snapshot.ranks if ordinal in ref.columns]
        if not refs:
            return None
        refs.sort(key=lambda ref: ref.before(ordinal))
        return cls(store, refs, ordinal, column)

    def read_rows(self, number: int) -> pa.Table:
        """Read the column's rows of one object."""
        rows = self._store.get(self.refs[number].object)
        columns = rows.column("column").to_numpy()
        start, end = np.searchsorted(columns, [self._ordinal, self._ordinal + 1])
        return rows.slice(start, end - start)

    def _read_part(self, number: int) -> pa.Table:
        if number not in self._parts:
            self._parts[number] = self.read_rows(number)
        return self._parts[number]

    def count_values(self) -> int:
        """Return the last rank: the number of values that are neither null nor NaN."""
        ranks = self._read_part(len(self.refs) - 1).column("rank")
        return int(pc.max(ranks).as_py() or 0)

    def look_up(self, rank: int) -> Any:
        """Return the value of a rank, which begins at 1."""
        number = int(np.searchsorted(self._first_ranks, rank, side="left")) - 1
        part = self._read_part(number)
        ranks = part.column("rank").to_numpy()
        position = int(np.searchsorted(ranks, rank, side="left"))
        return part.column(self._value_field)[position].as_py()
