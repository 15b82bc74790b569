"""Statistics of columns in each data file, as arrays that can be sent to tasks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.data_files import DetailFiles, find_detail_files
from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.sortable_values import is_text, is_wide_decimal, stored_to_sortable
from metastore.format.value_rendering import CUT_BYTES
from metastore.reading.snapshot_files import read_column_rows
from metastore.store.contradictions import find_contradictory_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from metastore.format.manifest import Block, SummaryRef
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.reading.lookup_keys import Mask, Places
    from metastore.reading.snapshot_files import CoveredFiles, SnapshotFiles
    from metastore.store import Store


UNKNOWN = -1
_ARRAY_TYPES = {
    "long": "i8",
    "double": "f8",
    "binary": "S64",
    None: "i8",
}
"""NumPy's type of bounds by the encoding of the column; a column without an encoding has no bounds."""
_NO_OBJECT = -1
_WITH_LIST = ("top", "duplicates", "complete")
_FIELDS = [
    "column",
    "file",
    "rows",
    "nulls",
    "nans",
    "lo_exact",
    "hi_exact",
    "distinct",
    "frequencies",
    *(f"lo_{encoding}" for encoding in ENCODED_TYPES),
    *(f"hi_{encoding}" for encoding in ENCODED_TYPES),
]


@dataclass(frozen=True)
class DetailObjects:
    """The objects with the value lists, or the filters, of a column.

    Attributes:
        objects: The objects.
        object_index: For each data file the index of its object, -1 for none.
        file: The data file's number in that object.
        column: The column's number in that object.
    """

    objects: tuple[ObjectRef, ...]
    object_index: Places
    file: Places
    column: Places

    def take(self, files: Places) -> DetailObjects:
        """Select data files."""
        return DetailObjects(self.objects, self.object_index[files], self.file[files], self.column[files])


@dataclass(frozen=True, kw_only=True)
class ColumnEvidence:
    """Statistics of a column in every data file.

    Attributes:
        analyzed: Whether a file has statistics that can be trusted; without these it may hold every key.
        rows: Physical rows, -1 if unknown.
        nulls: Null values, -1 if unknown.
        nans: NaN values, -1 if unknown.
        empty: Whether all values are null or NaN.
        lo: Lower bounds in the form of `KeyColumn.values`; 0 or an empty text for a file without one.
        hi: Upper bounds in the same form.
        has_lo: Whether there is a lower bound.
        has_hi: Whether there is an upper bound.
        lo_exact: Whether `lo` is a value of the file, neither cut nor less than all values.
        hi_exact: Whether `hi` is a value of the file.
        distinct: Distinct values, estimated, or exact if the list is complete; -1 if unknown.
        complete: Whether the list of values is complete.
        lists: The objects with value lists.
        filters: The objects with bloom filters.
    """

    column: Column
    analyzed: Mask
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
        """Select data files."""
        selected = {name: array.take(files) for name, array in vars(self).items() if name != "column"}
        return ColumnEvidence(column=self.column, **selected)


@dataclass(frozen=True)
class BlockEvidence:
    """Statistics of a column in one block.

    Attributes:
        ordinal: The column's number in the block.
        rows: Rows of the summary, one for each file.
        files: The data files' numbers in the snapshot's list.
    """

    block: Block
    ordinal: int
    rows: pa.Table
    files: Places

    def counts(self, name: str) -> Places:
        """Return a count of each file, -1 if unknown."""
        counts: Places = self.rows[name].fill_null(UNKNOWN).to_numpy().astype(np.int64)
        return counts


def gather_evidence(store: Store, stored: SnapshotFiles, columns: Sequence[Column]) -> list[ColumnEvidence]:
    """Gather the statistics of columns in each data file."""
    rows = stored.files["rows"].fill_null(UNKNOWN).to_numpy().astype(np.int64)
    lists = _FileLists(store)
    summaries = _SummaryRows(store, stored, columns)
    evidence = []
    for column in columns:
        parts = list(_iterate_block_evidence(summaries, stored, column))
        evidence.append(_combine(lists, column, parts, rows))
    return evidence


class _FileLists:
    """The lists of data files of blocks, which all columns need."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._files: dict[ObjectRef, pa.Table] = {}
        self._details: dict[tuple[ObjectRef, str], list[DetailFiles]] = {}

    def read(self, block: Block) -> pa.Table:
        """Read the data files of a block."""
        if block.files not in self._files:
            self._files[block.files] = self._store.get(block.files)
        return self._files[block.files]

    def list_details(self, block: Block, kind: str) -> list[DetailFiles]:
        """List the objects of one kind with details of a block's data files."""
        key = (block.files, kind)
        if key not in self._details:
            self._details[key] = list(find_detail_files(self.read(block), kind))
        return self._details[key]


class _SummaryRows:
    """The rows of columns in the summaries of blocks, without those that contradict themselves."""

    def __init__(self, store: Store, stored: SnapshotFiles, columns: Sequence[Column]) -> None:
        self._store = store
        self._ordinals: dict[str, set[int]] = defaultdict(set)
        for column in columns:
            for covered, ordinal in stored.sources(column):
                self._ordinals[covered.block.id].add(ordinal)
        self._refs: dict[tuple[str, int], list[SummaryRef]] = defaultdict(list)
        for covered in stored.covered:
            for ref in covered.block.summary:
                for ordinal in self._ordinals[covered.block.id].intersection(ref.columns):
                    self._refs[covered.block.id, ordinal].append(ref)
        self._rows: dict[tuple[str, ObjectRef], pa.Table] = {}

    def list_refs(self, block: Block, ordinal: int) -> list[SummaryRef]:
        """List the objects that hold a column."""
        return self._refs[block.id, ordinal]

    def read(self, covered: CoveredFiles, ref: SummaryRef, ordinal: int) -> pa.Table:
        """Read the rows of a column; an object is read once for all columns."""
        key = (covered.block.id, ref.object)
        if key not in self._rows:
            self._rows[key] = self._read_sound(covered, ref)
        rows = self._rows[key]
        return rows.filter(pc.equal(rows["column"], ordinal))

    def _read_sound(self, covered: CoveredFiles, ref: SummaryRef) -> pa.Table:
        ordinals = sorted(self._ordinals[covered.block.id].intersection(ref.columns))
        rows = read_column_rows(self._store, ref, ordinals, _FIELDS)
        rows = rows.filter(pc.is_in(rows["column"], pa.array(ordinals, rows["column"].type)))
        return rows.filter(pa.array(~find_contradictory_rows(rows, covered.block.columns, len(covered.positions))))


def _iterate_block_evidence(summaries: _SummaryRows, stored: SnapshotFiles, column: Column) -> Iterator[BlockEvidence]:
    """Read the statistics of the column in each block; each data file counts in the first block that has it."""
    is_covered = np.zeros(stored.files.num_rows, dtype=bool)
    for covered, ordinal in stored.sources(column):
        block = covered.block
        positions = covered.positions
        for ref in summaries.list_refs(block, ordinal):
            rows = summaries.read(covered, ref, ordinal)
            files = positions[rows["file"].to_numpy()]
            is_new = (files >= 0) & ~is_covered[files]
            is_covered[files[is_new]] = True
            yield BlockEvidence(block, ordinal, rows.filter(pa.array(is_new)), files[is_new])


def _combine(lists: _FileLists, column: Column, parts: Sequence[BlockEvidence], rows: Places) -> ColumnEvidence:
    """Combine the statistics of a column in several blocks.

    Args:
        lists: The lists of data files.
        column: The column.
        parts: The statistics in each block.
        rows: The number of rows of each data file in the table's metadata, -1 if unknown.
    """
    counts = _Counts(rows)
    lower = _Bounds(column, "lo", len(rows))
    upper = _Bounds(column, "hi", len(rows))
    for part in parts:
        counts.add(part, lists.read(part.block))
        if column.encoding:
            lower.add(part)
            upper.add(part)
    is_inverted = lower.is_set & upper.is_set & (lower.values > upper.values)
    value_lists = _find_detail_objects(lists, parts, "frequencies", len(rows))
    list_index = np.where(counts.has_list, value_lists.object_index, _NO_OBJECT)
    return ColumnEvidence(
        column=column,
        analyzed=counts.analyzed & ~is_inverted,
        rows=counts.rows,
        nulls=counts.nulls,
        nans=counts.nans,
        empty=counts.empty,
        lo=lower.values,
        hi=upper.values,
        has_lo=lower.is_set,
        has_hi=upper.is_set,
        lo_exact=lower.is_exact,
        hi_exact=upper.is_exact,
        distinct=counts.distinct,
        complete=counts.complete,
        lists=replace(value_lists, object_index=list_index),
        filters=_find_detail_objects(lists, parts, "sketches", len(rows)),
    )


class _Counts:
    """Counts of a column in every data file; attributes as of `ColumnEvidence`."""

    def __init__(self, rows: Places) -> None:
        files = len(rows)
        self._table_rows = rows
        self.rows = rows.copy()
        self.analyzed = np.zeros(files, bool)
        self.nulls = np.full(files, UNKNOWN)
        self.nans = np.full(files, UNKNOWN)
        self.empty = np.zeros(files, bool)
        self.distinct = np.full(files, UNKNOWN)
        self.complete = np.zeros(files, bool)
        self.has_list = np.zeros(files, bool)

    def add(self, part: BlockEvidence, block_files: pa.Table) -> None:
        """Add the counts of a block, given its list of data files."""
        files = part.files
        rows = part.counts("rows")
        nulls = part.counts("nulls")
        nans = part.counts("nans")
        table_rows = self._table_rows[files]
        nulls_and_nans = np.maximum(nulls, 0) + np.maximum(nans, 0)
        agrees_with_table = (table_rows < 0) | (table_rows == rows)
        agrees_with_block = _agree_with_list(block_files, part.rows["file"].to_numpy(), rows)
        frequencies = part.rows["frequencies"]
        self.analyzed[files] = agrees_with_table & agrees_with_block & (nulls_and_nans <= rows)
        self.rows[files] = np.where(table_rows < 0, rows, table_rows)
        self.nulls[files] = nulls
        self.nans[files] = nans
        self.empty[files] = (nulls >= 0) & (nulls_and_nans == rows)
        self.distinct[files] = part.counts("distinct")
        self.has_list[files] = pc.is_in(frequencies, value_set=pa.array(_WITH_LIST))
        self.complete[files] = pc.fill_null(pc.equal(frequencies, "complete"), False)  # noqa: FBT003 - a value


class _Bounds:
    """The lower or upper bounds of a column in every data file.

    Attributes:
        values: The bounds; 0 or an empty text for a file without one.
        is_set: Whether there is a bound.
        is_exact: Whether the bound is a value of the file.
    """

    def __init__(self, column: Column, end: str, files: int) -> None:
        self._column = column
        self._end = end
        self.values = np.zeros(files, _choose_array_type(column))
        self.is_set = np.zeros(files, bool)
        self.is_exact = np.zeros(files, bool)

    def add(self, part: BlockEvidence) -> None:
        """Add the bounds in a block."""
        column = self._column
        files = part.files
        bounds = part.rows[f"{self._end}_{column.encoding}"]
        is_set = bounds.is_valid().to_numpy()
        self.values[files[is_set]] = _to_sortable(bounds.drop_null().to_pylist(), column)
        is_exact = is_set & part.rows[f"{self._end}_exact"].fill_null(False).to_numpy()  # noqa: FBT003 - a value
        if is_text(column):
            lengths = pc.binary_length(bounds).fill_null(0).to_numpy()
            # NumPy drops zeros at the end of a byte string.
            is_exact = is_exact & (np.char.str_len(self.values[files]) == lengths)
            is_set = is_set & (lengths <= CUT_BYTES)
        self.is_set[files] = is_set
        self.is_exact[files] = is_exact


def _agree_with_list(files: pa.Table, ordinals: Places, rows: Places) -> Mask:
    """Return whether the numbers of rows in a summary are those in the list of files of its block."""
    expected = np.full(pc.max(files["file"]).as_py() + 1, UNKNOWN)
    expected[files["file"].to_numpy()] = files["rows"].fill_null(UNKNOWN).to_numpy()
    agree: Mask = (expected[ordinals] < 0) | (expected[ordinals] == rows)
    return agree


def _choose_array_type(column: Column) -> str:
    if is_wide_decimal(column):
        return "S16"
    return _ARRAY_TYPES[column.encoding]


def _to_sortable(bounds: list[Any], column: Column) -> NDArray[Any]:
    if is_text(column):
        return np.array(bounds, "S64")
    return stored_to_sortable(bounds, column)


def _find_detail_objects(lists: _FileLists, parts: Sequence[BlockEvidence], kind: str, files: int) -> DetailObjects:
    """Find the objects of one kind with details of each data file.

    A data file has a number in the table, one in its block and one in the object with its details.
    """
    objects: dict[ObjectRef, int] = {}
    object_index = np.full(files, _NO_OBJECT)
    file_in_object = np.full(files, _NO_OBJECT)
    column_in_object = np.full(files, _NO_OBJECT)
    for part in parts:
        block_files = lists.read(part.block)
        table_file_of_block_file = np.full(pc.max(block_files["file"]).as_py() + 1, _NO_OBJECT)
        table_file_of_block_file[part.rows["file"].to_numpy()] = part.files
        for ref, block_files_of_object, object_files in lists.list_details(part.block, kind):
            table_files = table_file_of_block_file[block_files_of_object]
            is_in_table = table_files != _NO_OBJECT
            if is_in_table.any():
                detailed_files = table_files[is_in_table]
                object_index[detailed_files] = objects.setdefault(ref, len(objects))
                file_in_object[detailed_files] = object_files[is_in_table]
                column_in_object[detailed_files] = part.ordinal
    return DetailObjects(tuple(objects), object_index, file_in_object, column_in_object)
