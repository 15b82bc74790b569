"""What the statistics say of columns in each data file, as arrays that tasks are sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.data_files import find_detail_files
from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.sortable_values import is_text, is_wide_decimal, stored_to_sortable
from metastore.format.value_rendering import CUT_BYTES
from metastore.reading.snapshot_files import read_column_rows
from metastore.store.contradictions import find_contradictory_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.manifest import Block
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.reading.lookup_keys import Mask, Places
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store


UNKNOWN = -1
_NOWHERE = -1
_LISTED = ("top", "duplicates", "complete")
_BOUNDS = [f"{end}_{encoding}" for end in ("lo", "hi") for encoding in ENCODED_TYPES]
_FIELDS = [
    *("column", "file", "rows", "nulls", "nans", "lo_exact", "hi_exact", "distinct", "frequencies"),
    *_BOUNDS,
]


@dataclass(frozen=True)
class DetailObjects:
    """Where the value lists, or the filters, of a column are.

    Attributes:
        objects: The objects.
        which: For each data file the place of its object, -1 where there is none.
        file: Its ordinal in that object.
        column: The column's ordinal there.
    """

    objects: tuple[ObjectRef, ...]
    which: Places
    file: Places
    column: Places

    def take(self, files: Places) -> DetailObjects:
        """The same for some files."""
        return DetailObjects(self.objects, self.which[files], self.file[files], self.column[files])


@dataclass(frozen=True)
class ColumnEvidence:
    """What is known of a column in every data file.

    Attributes:
        known: Whether anything is: elsewhere every key may be.
        rows: Physical rows, -1 where neither the table nor its statistics tell.
        nulls: Null values, -1 where not known.
        nans: NaN values, -1 where not known.
        empty: Whether all values are null or NaN.
        lo: Lower bounds in the form of `KeyColumn.values`; the lowest of all where there is none.
        hi: Upper bounds, likewise.
        has_lo: Whether there is a lower bound.
        has_hi: Whether there is an upper bound.
        lo_exact: Whether the lower bound is a value of the file, and all of it stands in `lo`.
        hi_exact: Whether the upper bound is, likewise.
        distinct: How many values there are, about, or exactly where the list is complete; -1 where not known.
        complete: Whether the list of values is complete.
        lists: Where value lists are.
        filters: Where bloom filters are.
    """

    column: Column
    known: Mask
    rows: Places
    nulls: Places
    nans: Places
    empty: Mask
    lo: NDArray[Any]
    hi: NDArray[Any]
    has_lo: Mask
    has_hi: Mask
    lo_exact: Mask
    hi_exact: Mask
    distinct: Places
    complete: Mask
    lists: DetailObjects
    filters: DetailObjects

    def take(self, files: Places) -> ColumnEvidence:
        """The same for some files."""
        fields = self.__dict__
        return ColumnEvidence(self.column, *(fields[name].take(files) for name in list(fields)[1:]))


@dataclass(frozen=True)
class BlockEvidence:
    """What one block says of a column.

    Attributes:
        ordinal: The column's place in it.
        rows: Rows of the summary, one for each file.
        places: The files' places in the snapshot's list.
    """

    block: Block
    ordinal: int
    rows: pa.Table
    places: Places

    def counts(self, name: str) -> Places:
        """A count of each file, -1 where it is not known."""
        counts: Places = self.rows[name].fill_null(UNKNOWN).to_numpy().astype(np.int64)
        return counts


def gather_evidence(store: Store, stored: SnapshotFiles, columns: Sequence[Column]) -> list[ColumnEvidence]:
    """What is known of columns in each data file."""
    rows = stored.files["rows"].fill_null(UNKNOWN).to_numpy().astype(np.int64)
    read = cache(store.get)  # the lists of files that have the details of all columns
    return [_combine(read, column, list(_iterate_block_evidence(store, stored, column)), rows) for column in columns]


def _iterate_block_evidence(store: Store, stored: SnapshotFiles, column: Column) -> Iterator[BlockEvidence]:
    """What each block says of the column, each data file once."""
    taken = np.zeros(stored.files.num_rows, dtype=bool)
    for block, ordinal, live in stored.sources(column):
        for ref in block.summary:
            if ordinal in ref.columns:
                rows = read_column_rows(store, ref, [ordinal], _FIELDS)
                rows = rows.filter(pc.equal(rows["column"], ordinal))
                rows = rows.filter(pa.array(~find_contradictory_rows(rows, block.columns, len(live))))
                places = live[rows["file"].to_numpy()]
                keep = (places >= 0) & ~taken[places]
                taken[places[keep]] = True
                yield BlockEvidence(block, ordinal, rows.filter(pa.array(keep)), places[keep])


def _combine(
    read: Callable[[ObjectRef], pa.Table], column: Column, found: Sequence[BlockEvidence], rows: Places
) -> ColumnEvidence:
    count = len(rows)
    known, of_file = np.zeros(count, bool), rows.copy()
    nulls, nans, distinct = (np.full(count, UNKNOWN) for _ in range(3))
    has_lo, has_hi, lo_exact, hi_exact, empty, complete, listed = (np.zeros(count, bool) for _ in range(7))
    lo, hi = (np.zeros(count, _form(column)) for _ in range(2))
    for part in found:
        at = part.places
        counted, nulls[at], nans[at] = part.counts("rows"), part.counts("nulls"), part.counts("nans")
        others = np.maximum(nulls[at], 0) + np.maximum(nans[at], 0)
        of_file[at] = np.where(rows[at] < 0, counted, rows[at])
        known[at] = ((rows[at] < 0) | (counted == rows[at])) & (others <= counted)
        known[at] &= _agree_with_list(read(part.block.files), part.rows["file"].to_numpy(), counted)
        empty[at] = (nulls[at] >= 0) & (others == counted)
        sides = ((lo, has_lo, lo_exact, "lo"), (hi, has_hi, hi_exact, "hi")) if column.encoding else ()
        for values, has, exact, end in sides:
            bounds = part.rows[f"{end}_{column.encoding}"]
            has[at] = bounds.is_valid().to_numpy()
            values[at[has[at]]] = _numbers(bounds.drop_null().to_pylist(), column)
            exact[at] = has[at] & part.rows[f"{end}_exact"].fill_null(False).to_numpy()  # noqa: FBT003 - a value
            if is_text(column):  # numpy takes zeros at the end for none
                lengths = pc.binary_length(bounds).fill_null(0).to_numpy()
                exact[at] &= np.char.str_len(values[at]) == lengths
                has[at] &= lengths <= CUT_BYTES
        distinct[at] = part.counts("distinct")
        listed[at] = pc.is_in(part.rows["frequencies"], value_set=pa.array(_LISTED))
        complete[at] = pc.fill_null(pc.equal(part.rows["frequencies"], "complete"), False)  # noqa: FBT003 - a value
    known &= ~(has_lo & has_hi & (lo > hi))
    lists, filters = (_details(read, found, kind, count) for kind in ("frequencies", "sketches"))
    lists = replace(lists, which=np.where(listed, lists.which, _NOWHERE))
    return ColumnEvidence(
        column,
        known,
        of_file,
        nulls,
        nans,
        empty,
        lo,
        hi,
        has_lo,
        has_hi,
        lo_exact,
        hi_exact,
        distinct,
        complete,
        lists,
        filters,
    )


def _agree_with_list(files: pa.Table, ordinals: Places, counted: Places) -> Mask:
    """Whether rows of a summary count as many rows as their block's list of files."""
    expected = np.full(pc.max(files["file"]).as_py() + 1, UNKNOWN)
    expected[files["file"].to_numpy()] = files["rows"].fill_null(UNKNOWN).to_numpy()
    agree: Mask = (expected[ordinals] < 0) | (expected[ordinals] == counted)
    return agree


def _form(column: Column) -> str:
    if column.encoding == "binary":
        return "S16" if is_wide_decimal(column) else "S64"
    return "f8" if column.encoding == "double" else "i8"


def _numbers(bounds: list[Any], column: Column) -> NDArray[Any]:
    if is_text(column):
        return np.array(bounds, "S64")
    return stored_to_sortable(bounds, column)


def _details(
    read: Callable[[ObjectRef], pa.Table], found: Sequence[BlockEvidence], kind: str, count: int
) -> DetailObjects:
    objects: dict[ObjectRef, int] = {}
    which, inside, ordinal = (np.full(count, _NOWHERE) for _ in range(3))
    for part in found:
        files = read(part.block.files)
        places = np.full(pc.max(files["file"]).as_py() + 1, _NOWHERE)
        places[part.rows["file"].to_numpy()] = part.places
        for ref, ordinals, place in find_detail_files(files, kind):
            at = places[ordinals]
            held = at != _NOWHERE
            if held.any():
                which[at[held]] = objects.setdefault(ref, len(objects))
                inside[at[held]], ordinal[at[held]] = place[held], part.ordinal
    return DetailObjects(tuple(objects), which, inside, ordinal)
