"""The value lists of groups of data files: as they are kept, and as tasks take them from there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore._analyze.nodes import digest_of_facts
from metastore._analyze.table.lists import VALUE_ROWS
from metastore._format.objects import decode_detail
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from metastore._analyze.place import ReadContent
    from metastore._analyze.stored_nodes import GroupRows
    from metastore._format.columns import Column
    from metastore._format.objects import ObjectRef

LIST_GROUP_KIND = "table-list-nodes"
MOST_GROUP_VALUES, MOST_GROUP_BYTES = 1 << 16, 4 << 20
"""A group of files keeps its list up to so many values and bytes."""
NOT_KEPT = -1

_MERGING = 1
"""Raised whenever groups would be merged to other lists than before: what is stored is of no use then."""
_ENCODINGS = ("long", "double", "binary")


def list_cache_key(column: Column) -> bytes:
    """Says what is kept of a group of a column's data files."""
    return digest_of_facts("list", _MERGING, column.key, column.type)


def encode_group_list(rows: pa.Table | None) -> pa.Table:
    """The row of `table-list-nodes` of a group, without its key; its list stays away where it is too long."""
    if rows is None or rows.num_rows > MOST_GROUP_VALUES or rows.nbytes > MOST_GROUP_BYTES:
        return pa.table({"number": pa.array([NOT_KEPT], pa.int64())})
    given = {"number": pa.array([rows.num_rows], pa.int64())}
    for name in _ENCODINGS:
        if rows.num_rows and not rows[f"value_{name}"].null_count:
            rows = rows.take(pc.sort_indices(rows[f"value_{name}"]))  # neighbours are stored as their difference
            given[f"values_{name}"] = _as_list(rows[f"value_{name}"])
    given["frequencies"] = _as_list(rows["frequency"])
    if pc.any(pc.not_equal(rows["listed"], 0)).as_py():
        given["listed"] = _as_list(rows["listed"])
    return pa.table(given)


def decode_group_list(ordinal: int, row: pa.Table) -> pa.Table | None:
    """The list of a group, as `LISTED`, of what `node_row` has put; None where it was too long."""
    lists = {name: row[name].combine_chunks().flatten() for name in row.column_names if name not in ("node", "number")}
    number = row["number"][0].as_py()
    if number < 0:
        return None
    values = {f"value_{name}": lists[f"values_{name}"] for name in _ENCODINGS if len(lists.get(f"values_{name}", ()))}
    lone = lists["listed"] if len(lists.get("listed", ())) else pa.array(np.zeros(number, np.int64))
    arrays = values | {"frequency": lists["frequencies"], "listed": lone}
    if len(values) != min(number, 1) or any(len(one) != number or one.null_count for one in arrays.values()):
        raise DamagedObject(LIST_GROUP_KIND, "a list that no writer of this format makes")
    arrays["column"] = pa.array(np.full(number, ordinal, np.int32))
    return pa.table([arrays.get(one.name, pa.nulls(number, one.type)) for one in VALUE_ROWS], schema=VALUE_ROWS)


@dataclass(frozen=True)
class GroupListSource:
    """Lists of groups in one object.

    Attributes:
        name: Of the object.
        length: Its length.
        sha256: Its digest.
        ordinals: For the wanted rows of the object the place of their column in the snapshot's schema.
    """

    name: str
    length: int
    sha256: str
    ordinals: Mapping[int, int]

    def rows(self, content: ReadContent) -> pa.Table:
        """The lists, as `LISTED`."""
        stored = decode_detail(self.name, self.sha256, content())
        lists = (decode_group_list(ordinal, stored.slice(row, 1)) for row, ordinal in self.ordinals.items())
        return pa.concat_tables([VALUE_ROWS.empty_table(), *(one for one in lists if one is not None)])


def find_group_sources(known: GroupRows, wanted: Mapping[int, Sequence[bytes]]) -> Iterator[GroupListSource]:
    """Where lists of groups are."""
    objects: dict[ObjectRef, dict[int, int]] = defaultdict(dict)
    for ordinal, keys in wanted.items():
        for key in keys:
            ref, row = known.place(key)
            objects[ref][row] = ordinal
    for ref, ordinals in objects.items():
        yield GroupListSource(ref.name, ref.length, ref.sha256, ordinals)


def _as_list(values: pa.ChunkedArray) -> pa.Array:
    flat = values.combine_chunks()
    return pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)
