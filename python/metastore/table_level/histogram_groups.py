"""Makes the histograms of a table from the stored histograms of data files and of groups of files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.errors import DamagedObject
from metastore.format.histogram_bins import Histogram
from metastore.format.object_layout import HISTOGRAM_KIND, histogram_fields
from metastore.kernel.complete_parts import require_all
from metastore.kernel.quantiles import FINE
from metastore.store.prefetch import prefetch
from metastore.table_level.detail_selection import DetailSelection, DetailSlice
from metastore.table_level.group_cache import ROW_GROUP_BYTES, GroupCache, GroupCodec, group_cache_key
from metastore.table_level.histogram_sum import merge_histograms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.store import Store
    from metastore.table_level.column_merge import ColumnLevel
    from metastore.table_level.group_tree import GroupTree

    Longs = NDArray[np.int64]


HISTOGRAM_GROUP_KIND = "table-histogram-nodes"
GROUP_BIN_FACTOR = 4
"""The bins of a group's histogram for each bin of the table's, so that each level of groups adds little error."""
EMPTY_HISTOGRAM = Histogram(edges=(), counts=np.zeros(0, np.int64))
"""The histogram of files without values."""
_MERGING = 4
_NO_HISTOGRAM = "a histogram that no writer of this format makes"


@dataclass(frozen=True)
class HistogramFiles:
    """The data files of a column whose histograms are merged to the table's histogram.

    Attributes:
        values: The number of finite values of each file, or -1 if unknown.
        distinct: Distinct finite values of the table, or None if unknown.
        estimated: Whether the ranks of the edges are estimates, because the file was analyzed in parts.
    """

    column: Column
    values: Longs
    distinct: int | None
    estimated: NDArray[np.bool_]


class FileHistogram(NamedTuple):
    """The histogram of one data file of a column.

    Attributes:
        ordinal: The column's ordinal in the snapshot's schema.
        file: The file's position in `HistogramFiles`.
    """

    ordinal: int
    file: int
    histogram: Histogram


def read_file_histograms(part: DetailSlice, rows: pa.Table, columns: dict[int, HistogramFiles]) -> list[FileHistogram]:
    """Read the selected rows of a `histograms` object; their numbers are positions in `HistogramFiles`."""
    selected, ordinals, positions = part.select_rows(rows)
    list_names = [name for name in selected.column_names if name.startswith(("edges_", "counts", "dist"))]
    lists = {name: _lists(selected[name]) for name in list_names}
    histograms = []
    for row, (ordinal, file) in enumerate(zip(ordinals.tolist(), positions.tolist(), strict=True)):
        files = columns[ordinal]
        histogram = _restore_histogram(
            files,
            file,
            edges=lists[f"edges_{files.column.encoding}"][row],
            counts=lists["counts"][row],
            distincts=lists["distincts"][row],
        )
        if histogram is not None:
            histograms.append(FileHistogram(ordinal, file, histogram))
    return histograms


def _restore_histogram(
    files: HistogramFiles, file: int, *, edges: Any, counts: Any, distincts: Any
) -> Histogram | None:
    if edges is None or counts is None:
        return None
    errors = None
    if files.estimated[file]:
        values = int(files.values[file])
        errors = np.full(len(edges), -(-values // FINE))
    return Histogram(edges=edges, counts=counts, distincts=distincts, errors=errors)


class HistogramGroups:
    """Merges the histograms of a column's data files to those of groups, and these to the table's.

    Args:
        files: The data files.
        bins: The number of bins of the table's histogram.
    """

    def __init__(self, files: HistogramFiles, bins: int) -> None:
        self._files = files
        self._bins = bins

    @property
    def cache_key(self) -> bytes:
        """The part of a group's key that identifies its histogram."""
        return group_cache_key(HISTOGRAM_GROUP_KIND, _MERGING, self._files.column, self._bins)

    def files_with_values(self, files: Longs) -> Longs:
        """Select the data files that hold values."""
        with_values: Longs = files[self._files.values[files] != 0]
        return with_values

    def merge_group(self, parts: Sequence[Histogram | None]) -> Histogram | None:
        """Merge the histograms of a group; None if a member has none."""
        histograms = require_all(parts)
        if histograms is None:
            return None
        merged = merge_histograms(histograms, self._files.column, self._bins * GROUP_BIN_FACTOR)
        return merged or EMPTY_HISTOGRAM

    def merge_table(self, parts: Sequence[Histogram | None]) -> Histogram | None:
        """Merge the histograms of the uppermost groups to the table's; None if one is missing or all are empty."""
        histograms = require_all(parts)
        if histograms is None:
            return None
        return merge_histograms(histograms, self._files.column, self._bins, self._files.distinct)


class GroupHistograms:
    """Collects the histograms of a column's data files; a group is merged as soon as its files are complete.

    Args:
        merger: Merges histograms.
        tree: The groups of the column's data files.
    """

    def __init__(self, merger: HistogramGroups, tree: GroupTree) -> None:
        self._merger = merger
        self._histograms: dict[int, Histogram] = {}
        self._groups: dict[int, Histogram | None] = {}
        """The histograms of groups, by the first file of each."""
        self._leaves: dict[int, Longs] = {}
        self._missing: dict[int, set[int]] = {}
        if not tree.is_flat:
            for leaf in tree.leaves:
                self._leaves.update(dict.fromkeys(leaf.tolist(), leaf))
                self._missing[int(leaf[0])] = set(merger.files_with_values(leaf).tolist())

    def add(self, file: int, histogram: Histogram) -> None:
        """Add the histogram of a data file."""
        self._histograms[file] = histogram
        leaf = self._leaves.get(file)
        if leaf is None:
            return
        first = int(leaf[0])
        self._missing[first].discard(file)
        if not self._missing[first]:
            self._groups[first] = self._merger.merge_group(self.take_files(leaf))
            for member in leaf.tolist():
                self._histograms.pop(member, None)

    def take_files(self, files: Longs) -> list[Histogram | None]:
        """Take the histograms of data files, or of their group; None for a file with values and without a histogram."""
        if len(files) and int(files[0]) in self._groups:
            return [self._groups[int(files[0])]]
        histograms: dict[int, Histogram | None] = dict.fromkeys(files.tolist(), EMPTY_HISTOGRAM)
        for file in self._merger.files_with_values(files).tolist():
            histograms[file] = self._histograms.get(file)
        return list(histograms.values())


class TableHistograms:
    """The histograms of a table's columns, merged from those of data files and of stored groups."""

    def __init__(
        self, store: Store, refs: Sequence[ObjectRef], read: Callable[[DetailSlice], pa.Table], bins: int
    ) -> None:
        self._cache = GroupCache(store, HISTOGRAM_GROUP_KIND, refs, group_bytes=ROW_GROUP_BYTES)
        self._read = read
        self._bins = bins
        self._selection = DetailSelection("histograms")
        self._columns: dict[int, HistogramFiles] = {}
        self._groups: dict[int, tuple[HistogramGroups, GroupTree]] = {}

    def add(self, ordinal: int, level: ColumnLevel, files: HistogramFiles) -> None:
        """Add a column."""
        merger = HistogramGroups(files, self._bins)
        tree = self._cache.make_tree(level.groups.groups, level.order, merger.cache_key)
        self._columns[ordinal] = files
        self._groups[ordinal] = (merger, tree)
        self._selection.add(ordinal, level.sources, tree.select_files(np.arange(level.rows.num_rows)))

    def merge(self) -> dict[int, Histogram]:
        """Return the histograms of the columns that have one, by ordinal; new histograms of groups are stored."""
        collected = {ordinal: GroupHistograms(merger, tree) for ordinal, (merger, tree) in self._groups.items()}
        for read in chain.from_iterable(prefetch(self._read_files, self._selection.make_slices())):
            collected[read.ordinal].add(read.file, read.histogram)
        merged: dict[int, Histogram] = {}
        for ordinal, (merger, tree) in sorted(self._groups.items()):
            column = self._columns[ordinal].column
            codec = GroupCodec(partial(encode_group_histogram, column), partial(decode_group_histogram, column))
            take_files = collected.pop(ordinal).take_files
            histogram = merger.merge_table(self._cache.merge(tree, take_files, merger.merge_group, codec))
            if histogram is not None:
                merged[ordinal] = histogram
        return merged

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write the histograms of groups."""
        return self._cache.finish()

    def _read_files(self, part: DetailSlice) -> list[FileHistogram]:
        return read_file_histograms(part, self._read(part), self._columns)


def encode_group_histogram(column: Column, histogram: Histogram | None) -> pa.Table | None:
    """Return the row of `table-histogram-nodes` of a group, without its key."""
    if histogram is None:
        return None
    fields = dict(histogram_fields([(column.encoding, histogram)]))
    if not len(histogram.counts):
        fields["kind"] = pa.nulls(1, pa.string())
    return pa.table(fields)


def decode_group_histogram(column: Column, row: pa.Table) -> Histogram:
    """Read a row of `encode_group_histogram`."""
    kind = row["kind"][0].as_py()
    if kind is None:
        return EMPTY_HISTOGRAM
    edges_name = f"edges_{column.encoding}"
    bins = pc.list_value_length(row["counts"])[0].as_py()
    if kind != HISTOGRAM_KIND or bins is None:
        raise DamagedObject(HISTOGRAM_GROUP_KIND, _NO_HISTOGRAM)
    lengths = {edges_name: (bins + 1,), "counts": (bins,), "distincts": (bins, None), "errors": (bins + 1, None)}
    for name, possible in lengths.items():
        values = row[name].combine_chunks()
        if pc.list_value_length(values)[0].as_py() not in possible or values.flatten().null_count:
            raise DamagedObject(HISTOGRAM_GROUP_KIND, _NO_HISTOGRAM)
    edges, counts, distincts, errors = (_lists(row[name])[0] for name in lengths)
    return Histogram(edges=edges, counts=counts, distincts=distincts, errors=errors)


def _lists(column: pa.ChunkedArray) -> list[Any]:
    """Return the lists of a column: texts as lists of bytes, numbers as arrays; None for a null."""
    array = column.combine_chunks()
    if array.type.value_type == "binary":
        return list(array.to_pylist())
    lists: list[Any] = [None] * len(array)
    values = array.values.to_numpy(zero_copy_only=False)
    offsets = array.offsets.to_numpy().tolist()
    for row in np.flatnonzero(array.is_valid()).tolist():
        lists[row] = values[offsets[row] : offsets[row + 1]]
    return lists
