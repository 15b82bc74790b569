"""Which data files hold a given value: from lists of the table that tell where each value lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.table_column import Column, is_compatible
from metastore.format.value_postings import (
    POSTING_COLUMNS,
    STARTS_KEY,
    choose_part,
    decode_hash_starts,
    hash_column_values,
    read_postings,
)
from metastore.reading.candidates import CandidateFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metastore.format.hashing import UInt64Array
    from metastore.format.manifest import Snapshot, SummaryRef
    from metastore.format.object_part import ObjectPart
    from metastore.store import Store


def look_up_value(
    store: Store, snapshot: Snapshot, column: Column, value: Any, distinct: int | None, number: int | None
) -> CandidateFiles | None:
    """Find the data files that hold a value, and no others."""
    ordinal = next((i for i in snapshot.distribution if snapshot.columns[i].key == column.key), None)
    if ordinal is None or value is None or not is_compatible(snapshot.columns[ordinal], column):
        return None
    lists = [ref for ref in snapshot.frequencies if ordinal in ref.columns]
    if snapshot.placed is None:
        asked, told, expected = None, 0, distinct
    else:
        asked = hash_column_values(pa.table({f"value_{column.encoding}": _array(value, column)}), column)
        told, expected = _told(store.open_part(snapshot.placed), ordinal), number
        lists = [ref for ref in lists if ref.part is None or choose_part(asked, ref.part[1])[0] == ref.part[0]]
    places: list[np.ndarray] = []
    for ref in lists:
        part = store.open_part(ref.object)
        for group in _groups(part, ref, ordinal, asked):
            listed, found = _of_group(part, group, ordinal, column, value)
            told += listed if asked is None else 0
            places.append(found)
    if told != expected:
        return None
    files, counts = np.concatenate([np.empty((2, 0), np.int64), *places], axis=1)
    return CandidateFiles(files, counts)


def _told(part: ObjectPart, ordinal: int) -> int:
    """Of how many rows the lists of a column tell."""
    rows = part.read_rows(part.groups_of_column(ordinal), ["column", "rows"])
    return int(pc.sum(rows["rows"].filter(pc.equal(rows["column"], ordinal))).as_py() or 0)


def _groups(part: ObjectPart, ref: SummaryRef, ordinal: int, asked: UInt64Array | None) -> Iterator[int]:
    """The row groups that may have a value with a hash; without one all that have the column."""
    groups, text = part.groups_of_column(ordinal), part.footer_text(STARTS_KEY)
    if asked is None or text is None:
        yield from groups
        return
    try:
        starts = decode_hash_starts(text)[groups]
    except (ValueError, IndexError) as e:
        raise DamagedObject(ref.object.name, f"its footer does not say which values row groups have ({e})") from e
    behind = np.append(starts[1:], np.uint64(-1 & (1 << 64) - 1))
    yield from np.array(groups)[(starts <= asked[0]) & (asked[0] <= behind)].tolist()


def _of_group(part: ObjectPart, group: int, ordinal: int, column: Column, value: Any) -> tuple[int, np.ndarray]:
    """How many values of the column a row group lists; data files and frequencies of the one that is asked for."""
    name = f"value_{column.encoding}"
    rows = part.read_rows([group], ["column", name])
    mine = pc.equal(rows["column"], ordinal)
    is_nan = isinstance(value, float) and np.isnan(value)
    same = pc.is_nan(rows[name]) if is_nan else pc.equal(rows[name], _array(value, column)[0])
    hits = np.flatnonzero(np.asarray(pc.and_(mine, same.fill_null(False))))  # noqa: FBT003 - pyarrow's
    number = int(pc.sum(mine).as_py() or 0)
    if not len(hits):
        return number, np.empty((2, 0), np.int64)
    _, file, frequency = read_postings(part.read_rows([group], POSTING_COLUMNS).take(pa.array(hits)))
    return number, np.array([file, frequency])[:, frequency > 0]


def _array(value: Any, column: Column) -> pa.Array:
    return pa.array([value], ENCODED_TYPES[str(column.encoding)])
