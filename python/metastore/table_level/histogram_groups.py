"""Histograms of data files as they are stored, and those of a table made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from metastore.errors import DamagedObject
from metastore.format.histogram_bins import EQUI_HEIGHT, EQUI_WIDTH, Histogram, restore_bins
from metastore.format.object_layout import histogram_fields
from metastore.kernel.quantiles import FINE
from metastore.store.prefetch import prefetch
from metastore.table_level.detail_selection import DetailSelection, DetailSlice
from metastore.table_level.group_cache import ROW_GROUP_BYTES, GroupCache, GroupCodec, group_cache_key
from metastore.table_level.histogram_sum import merge_histograms, merge_to_equal_width

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.store import Store
    from metastore.table_level.group_tree import GroupTree
    from metastore.table_level.live_statistics import ColumnLevel

    Longs = NDArray[np.int64]


HISTOGRAM_GROUP_KIND = "table-histogram-nodes"
GROUP_BIN_FACTOR = 4
"""Histograms of groups have so many times the bins of the table's, so that each level of groups adds little."""
EMPTY_HISTOGRAM = Histogram(EQUI_HEIGHT, (), np.zeros(0, np.int64))
"""That of files without values."""
_MERGING = 4


@dataclass(frozen=True)
class HistogramFiles:
    """The data files of a column whose histograms make that of the table.

    Attributes:
        values: How many finite values each has; -1: not known.
        los: Their lower bounds.
        his: Their upper bounds.
        distinct: Distinct finite values of the table; None if not known.
        estimated: Which of them were analyzed in parts, so that the ranks of their edges are near.
        mixed: Which of them may have infinite values in their bins: these were not counted when they were analyzed.
    """

    column: Column
    values: Longs
    los: tuple[Any, ...]
    his: tuple[Any, ...]
    distinct: int | None
    estimated: NDArray[np.bool_]
    mixed: NDArray[np.bool_]


def read_file_histograms(
    part: DetailSlice, rows: pa.Table, columns: dict[int, HistogramFiles]
) -> list[tuple[int, int, Histogram]]:
    """Read the wanted rows of a `histograms` object; the files' numbers are their places in `HistogramFiles`."""
    chosen, ordinals, places = part.select_rows(rows)
    kinds = chosen["kind"].to_pylist()
    lists = {
        name: _lists(chosen[name]) for name in chosen.column_names if name.startswith(("edges_", "counts", "dist"))
    }
    found = []
    for row, (ordinal, place) in enumerate(zip(ordinals.tolist(), places.tolist(), strict=True)):
        files = columns[ordinal]
        if files.mixed[place]:
            continue
        edges, counts = lists[f"edges_{files.column.encoding}"][row], lists["counts"][row]
        number, bounds = int(files.values[place]), (files.los[place], files.his[place])
        found_bins = restore_bins(edges, counts, bounds, number, files.column.encoding)
        if found_bins is None:
            continue
        bins = len(found_bins[1])
        # Where counts are implied, as earlier versions wrote, the values equal to an edge may go on behind it.
        near = bins if counts is None else FINE if files.estimated[place] else 0
        errors = np.full(bins + 1, -(-number // near)) if near else None
        found.append((ordinal, place, Histogram(kinds[row], *found_bins, lists["distincts"][row], errors)))
    return found


class HistogramGroups:
    """How the histograms of a column's data files become that of the table, by those of groups of files."""

    def __init__(self, files: HistogramFiles, bins: int, kind: str) -> None:
        """Say what is wanted."""
        self._files, self._bins, self._kind = files, bins, kind

    @property
    def cache_key(self) -> bytes:
        """Says what is kept of a group."""
        return group_cache_key(HISTOGRAM_GROUP_KIND, _MERGING, self._files.column, self._bins, self._kind)

    def files_with_values(self, places: Longs) -> Longs:
        """The data files among these that hold values."""
        found: Longs = places[self._files.values[places] != 0]
        return found

    def merge_group(self, parts: Sequence[Histogram | None]) -> Histogram | None:
        """That of a group of data files, or of groups; None where it is not known of all of it."""
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return self._whole(known, None, self._bins * GROUP_BIN_FACTOR) or EMPTY_HISTOGRAM

    def merge_table(self, parts: Sequence[Histogram | None]) -> Histogram | None:
        """That of the table; None where there is none."""
        known = [part for part in parts if part is not None]
        return self._whole(known, self._files.distinct, self._bins) if len(known) == len(parts) else None

    def _whole(self, parts: Sequence[Histogram], distinct: int | None, bins: int) -> Histogram | None:
        column = self._files.column
        if self._kind == EQUI_WIDTH and (widths := merge_to_equal_width(parts, column, bins)) is not None:
            return widths
        return merge_histograms(parts, column, bins, distinct)


class GroupHistograms:
    """The histograms of a column's data files as they are read: once a group has all of its own they become one."""

    def __init__(self, how: HistogramGroups, tree: GroupTree) -> None:
        """Begin with none."""
        self._how = how
        self._found: dict[int, Histogram] = {}
        self._groups: dict[int, Histogram | None] = {}
        leaves = () if tree.is_flat else tree.leaves
        self._lacking = {int(leaf[0]): set(how.files_with_values(leaf).tolist()) for leaf in leaves}
        self._leaves = {place: leaf for leaf in leaves for place in leaf.tolist()}

    def add(self, place: int, histogram: Histogram) -> None:
        """Take that of a data file."""
        self._found[place] = histogram
        leaf = self._leaves.get(place)
        if leaf is None:
            return
        lacking = self._lacking[int(leaf[0])]
        lacking.discard(place)
        if not lacking:
            self._groups[int(leaf[0])] = self._how.merge_group(self.of_files(leaf))
            for file in leaf.tolist():
                self._found.pop(file, None)

    def of_files(self, places: Longs) -> list[Histogram | None]:
        """Those of data files, or that of their group; None where a file holds values and has none."""
        if len(places) and int(places[0]) in self._groups:
            return [self._groups[int(places[0])]]
        holding = set(self._how.files_with_values(places).tolist())
        return [self._found.get(place) if place in holding else EMPTY_HISTOGRAM for place in places.tolist()]


class TableHistograms:
    """The histograms of a table's columns: made of those of data files and of groups of them."""

    def __init__(
        self, store: Store, refs: Sequence[ObjectRef], read: Callable[[DetailSlice], pa.Table], bins: int, kind: str
    ) -> None:
        """Read which groups are kept."""
        self._cache = GroupCache(store, HISTOGRAM_GROUP_KIND, refs, group_bytes=ROW_GROUP_BYTES)
        self._read, self._bins, self._kind = read, bins, kind
        self._selection = DetailSelection("histograms")
        self._columns: dict[int, HistogramFiles] = {}
        self._groups: dict[int, tuple[HistogramGroups, GroupTree]] = {}

    def add(self, ordinal: int, known: ColumnLevel, files: HistogramFiles) -> None:
        """Take a column."""
        how = HistogramGroups(files, self._bins, self._kind)
        tree = self._cache.make_tree(known.groups.groups, known.order, how.cache_key)
        self._columns[ordinal], self._groups[ordinal] = files, (how, tree)
        self._selection.add(ordinal, known.sources, tree.select_files(np.arange(known.rows.num_rows)))

    def merge(self) -> dict[int, Histogram]:
        """Those of the columns that have one; those of groups are made on the way."""
        read = {ordinal: GroupHistograms(how, tree) for ordinal, (how, tree) in self._groups.items()}
        for stored in prefetch(self._read_files, self._selection.make_slices()):
            for ordinal, place, one in stored:
                read[ordinal].add(place, one)
        found: dict[int, Histogram] = {}
        for ordinal, (how, tree) in sorted(self._groups.items()):
            column = self._columns[ordinal].column
            codec = GroupCodec(partial(encode_group_histogram, column), partial(decode_group_histogram, column))
            parts = self._cache.merge(tree, read.pop(ordinal).of_files, how.merge_group, codec)
            if (whole := how.merge_table(parts)) is not None:
                found[ordinal] = whole
        return found

    def finish(self) -> tuple[ObjectRef, ...]:
        """Write those of groups."""
        return self._cache.finish()

    def _read_files(self, part: DetailSlice) -> list[tuple[int, int, Histogram]]:
        return read_file_histograms(part, self._read(part), self._columns)


def encode_group_histogram(column: Column, histogram: Histogram | None) -> pa.Table | None:
    """The row of `table-histogram-nodes` of a group, without its key."""
    if histogram is None:
        return None
    given = histogram_fields([(column.encoding, histogram)])
    return pa.table(given if len(histogram.counts) else {**given, "kind": pa.nulls(1, pa.string())})


def decode_group_histogram(column: Column, row: pa.Table) -> Histogram:
    """The histogram of a group as `encode_group_histogram` has put it."""
    kind = row["kind"][0].as_py()
    if kind is None:
        return EMPTY_HISTOGRAM
    names = (f"edges_{column.encoding}", "counts", "distincts", "errors")
    lists = [_lists(row[name])[0] for name in names]
    edges, counts, distincts, errors = lists
    bins = 0 if counts is None else len(counts)
    lengths = [expected if one is None else len(one) for one, expected in zip(lists[2:], (bins, bins + 1), strict=True)]
    if (
        kind not in (EQUI_HEIGHT, EQUI_WIDTH)
        or counts is None
        or edges is None
        or [len(edges), *lengths] != [bins + 1, bins, bins + 1]
        or any(row[name].combine_chunks().flatten().null_count for name in names)
    ):
        raise DamagedObject(HISTOGRAM_GROUP_KIND, "a histogram that no writer of this format makes")
    return Histogram(kind, edges, counts, distincts, errors)


def _lists(column: pa.ChunkedArray) -> list[Any]:
    """Each list as numpy values, or as bytes; None where there is none."""
    column = column.combine_chunks()
    texts = column.type.value_type == "binary"
    offsets, flat = column.offsets.to_numpy(), column.values
    valid = column.is_valid().to_pylist()
    values = flat if texts else flat.to_numpy(zero_copy_only=False)
    spans = zip(valid, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return [
        None if not present else values.slice(start, end - start).to_pylist() if texts else values[start:end]
        for present, start, end in spans
    ]
