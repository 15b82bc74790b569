"""Which data files hold given values: from lists of the table that tell where each value lives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore._format.columns import serves
from metastore._format.placed import PLACES, pairs_of
from metastore._read.locating import Located

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore._format.columns import Column
    from metastore._format.manifest import Snapshot
    from metastore._format.partial import Partial
    from metastore._store import Store


def placed(
    store: Store, snapshot: Snapshot, column: Column, values: Sequence[Any], distinct: int | None
) -> Located | None:
    """Find the data files that hold values, and no others.

    Args:
        store: Where the statistics are.
        snapshot: The snapshot.
        column: The column.
        values: As the format stores them.
        distinct: How many distinct values the column has; lists of another number prove nothing.

    Returns:
        None where the lists do not tell it: the column has no distribution, or null is asked for.

    Example:
        >>> placed(store, snapshot, column, [42], 1000).frequencies  # doctest: +SKIP
        array([3])
    """
    ordinal = next((i for i in snapshot.distribution if snapshot.columns[i].key == column.key), None)
    if ordinal is None or None in values or not serves(snapshot.columns[ordinal], column):
        return None
    listed, found = 0, []
    for ref in snapshot.frequencies:
        if ordinal in ref.columns:
            part = store.part(ref.object)
            for group in part.holding(ordinal):
                number, located = _of_group(part, group, ordinal, column, values)
                listed += number
                found.append(located)
    if listed != distinct:
        return None
    return Located(*(np.concatenate([one[place] for one in found] or [_NONE]) for place in range(3)))


_NONE = np.empty(0, np.int64)


def _of_group(part: Partial, group: int, ordinal: int, column: Column, values: Sequence[Any]) -> tuple[int, Any]:
    """How many values of the column a row group lists, and those that are asked for: value, file, frequency."""
    name = f"value_{column.encoding}"
    rows = part.rows([group], ["column", name])
    mine = pc.equal(rows["column"], ordinal)
    asked = _places(rows[name], values)
    hits = np.flatnonzero(np.asarray(mine) & (asked >= 0))
    number = int(pc.sum(mine).as_py() or 0)
    if not len(hits):
        return number, (_NONE, _NONE, _NONE)
    row, file, frequency = pairs_of(part.rows([group], PLACES).take(pa.array(hits)))
    keep = frequency > 0
    return number, (asked[hits][row[keep]], file[keep], frequency[keep])


def _places(listed: pa.ChunkedArray, values: Sequence[Any]) -> Any:
    """For each listed value its place among those that are asked for, or -1."""
    nans = [place for place, value in enumerate(values) if isinstance(value, float) and math.isnan(value)]
    found = pc.index_in(listed, value_set=pa.array(values, listed.type)).fill_null(-1).to_numpy()
    if nans:
        found = np.where(np.asarray(pc.is_nan(listed).fill_null(False)), nans[0], found)  # noqa: FBT003 - pyarrow's
    return found.astype(np.int64)
