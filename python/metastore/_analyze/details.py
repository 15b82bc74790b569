"""Detail objects of data files: rows of value lists and histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore._format.schemas import FREQUENCIES, HISTOGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from metastore._analyze.kernel import ColumnStatistics

    Rows = Iterable[tuple[int, int, ColumnStatistics]]

_LONG, _DOUBLE, _BINARY = "long", "double", "binary"


def value_count_rows(rows: Rows) -> pa.Table:
    """Rows of the schema `frequencies`: each list by falling frequency, then value."""
    parts = [_list_of(*row) for row in rows if row[2].values is not None and len(row[2].values)]
    return pa.concat_tables([FREQUENCIES.empty_table(), *parts])


def file_histogram_rows(rows: Rows) -> pa.Table:
    """Rows of the schema `histograms`."""
    found = [(column, file, known.encoding, known.histogram) for column, file, known in rows if known.histogram]
    columns = {
        "column": pa.array([row[0] for row in found], pa.int32()),
        "file": pa.array([row[1] for row in found], pa.int32()),
        "kind": pa.array([row[3].kind for row in found], pa.string()),
        "counts": _lists([row[3].counts for row in found], pa.int64()),
        "distincts": _lists([row[3].distincts for row in found], pa.int64()),
    }
    for encoding, kind in ((_LONG, pa.int64()), (_DOUBLE, pa.float64()), (_BINARY, pa.binary())):
        edges = [row[3].edges if row[2] == encoding else None for row in found]
        columns[f"edges_{encoding}"] = _lists(edges, kind)
    return pa.table([columns[name] for name in HISTOGRAMS.names], schema=HISTOGRAMS)


def _lists(lists: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Lists as one array, a step in Python for each list and not for each value."""
    arrays = [one if isinstance(one, pa.Array) else pa.array(one, kind) for one in lists if one is not None]
    offsets = np.cumsum([0, *(0 if one is None else len(one) for one in lists)])
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        pa.concat_arrays([pa.array([], kind), *arrays]),
        mask=pa.array([one is None for one in lists], pa.bool_()),
    )


def _list_of(column: int, file: int, known: ColumnStatistics) -> pa.Table:
    assert known.values is not None  # noqa: S101 - chosen by the caller
    ranked = known.values.ranked()
    number = len(ranked)
    nothing: Sequence[pa.Array] = [pa.nulls(number, FREQUENCIES.field(name).type) for name in FREQUENCIES.names[2:5]]
    place = (_LONG, _DOUBLE, _BINARY).index(known.encoding or "")
    values = [*nothing[:place], ranked.values, *nothing[place + 1 :]]
    return pa.table([_all(column, number), _all(file, number), *values, pa.array(ranked.counts)], schema=FREQUENCIES)


def _all(ordinal: int, number: int) -> NDArray[np.int32]:
    return np.full(number, ordinal, np.int32)
