"""Layout of columns, as the shim computes it: how data files overlap, and how many of them a look-up reads."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.sortable_values import is_text, sortable_to_stored, stored_to_sortable
from metastore.reading.file_pruning import MOST_LOOKED_UP, FilePruner, FilesOfColumn
from metastore.reading.lookup_keys import KeyColumn
from metastore.reading.summary_rows import is_edge_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.histogram_bins import Histogram
    from metastore.format.table_column import Column
    from metastore.pruning.value_sets import Mask
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.evidence import ColumnEvidence
    from metastore.reading.file_pruning import ListedFiles
    from metastore.reading.summary_rows import Row

_MOST_LOOK_UPS = 32
"""Most values that are looked up in a column."""
_STEPS = 1 << 16
_STRIDE = 40_503  # the golden section of _STEPS
_COLUMNS_AT_ONCE = 64
"""Columns whose statistics are in memory together."""
_MOST_FILE_TESTS = 100_000
"""The most comparisons of a file with a single value, for all columns; each column gets at least one look-up."""


@dataclass(frozen=True)
class ColumnLayout:
    """The overlap of data files, by the bounds of a column.

    Attributes:
        overlap_depth: The average number of files whose bounds overlap those of a file, itself included.
        sorted_share: The share of files whose bounds overlap no other file's, except at their ends.
    """

    overlap_depth: float
    sorted_share: float

    @classmethod
    def of(cls, los: NDArray[Any], his: NDArray[Any]) -> ColumnLayout | None:
        """Measure the layout of files with these bounds; None without files.

        Example:
            >>> ColumnLayout.of(np.array([1, 4, 5]), np.array([4, 6, 9]))
            ColumnLayout(overlap_depth=2.3333333333333335, sorted_share=0.3333333333333333)
        """
        if not len(los):
            return None
        count = len(los)
        order = np.argsort(los)  # searches for neighbouring values are faster
        starts = los[order]
        ends = his[order]
        sorted_ends = np.sort(his)
        starting_by_end = np.searchsorted(starts, ends, "right")
        ending_before_start = np.searchsorted(sorted_ends, starts, "left")
        overlapping = starting_by_end - ending_before_start
        ending_by_start = np.searchsorted(sorted_ends, starts, "right")
        starting_from_end = count - np.searchsorted(starts, ends, "left")
        outside = ending_by_start + starting_from_end
        # A file with a single value, and all files with just this value, count at its start and at its end.
        is_single = starts == ends
        single_values = starts[is_single]
        same_value = np.searchsorted(single_values, starts, "right") - np.searchsorted(single_values, starts, "left")
        all_outside = np.where(is_single, count + same_value, count - 1)
        is_sorted = outside == all_outside
        return cls(float(overlapping.mean()), float(is_sorted.mean()))


@dataclass(frozen=True)
class LookUps:
    """Values that are looked up in a column.

    Attributes:
        values: The values as the format stores them.
        rows: The number of rows with each value, in the sample or in the column.
        is_whole: Whether these are all values of the column.
    """

    values: tuple[Any, ...]
    rows: tuple[int, ...]
    is_whole: bool

    @classmethod
    def of_rows(cls, details: ColumnDetails) -> LookUps | None:
        """Choose all values if there are few, else a sample of the rows.

        Texts that may be only the beginning of a value are left out.

        Returns:
            The look-ups, or None without a histogram.
        """
        histogram = details.histogram()
        if histogram is None:
            return None
        if histogram.single_value_bins.all():
            rows_of_values: Counter[Any] = Counter()
            for end, count in histogram.upper_ends:
                rows_of_values[end] += count
            if len(rows_of_values) <= _MOST_LOOK_UPS:
                return cls._without_cut_values(details, rows_of_values, is_whole=True)
        return cls._without_cut_values(details, _sample_values(histogram), is_whole=False)

    @classmethod
    def of_bounds(cls, evidence: ColumnEvidence, files: Mask) -> LookUps | None:
        """Choose the exact bounds of some files."""
        numbers = np.flatnonzero(files & evidence.lo_exact & evidence.hi_exact)
        numbers = numbers[np.lexsort((evidence.hi[numbers], evidence.lo[numbers]))]
        most = min(_MOST_LOOK_UPS // 2, len(numbers))
        bounds: Counter[Any] = Counter()
        for draw in range(most):
            file = numbers[(2 * draw + 1) * len(numbers) // (2 * most)]
            bounds.update([evidence.lo[file], evidence.hi[file]])
        if not bounds:
            return None
        to_stored = bytes if is_text(evidence.column) else partial(sortable_to_stored, column=evidence.column)
        return cls(tuple(map(to_stored, bounds)), tuple(bounds.values()), is_whole=False)

    @classmethod
    def _without_cut_values(cls, details: ColumnDetails, rows: Mapping[Any, int], *, is_whole: bool) -> LookUps | None:
        values = [value for value in rows if not is_edge_cut(details.summary, value)]
        if not values:
            return None
        are_all = is_whole and len(values) == len(rows)
        return cls(tuple(values), tuple(rows[value] for value in values), are_all)

    def average(self, files: NDArray[np.float64]) -> tuple[float, float]:
        """Return the mean number of files that the look-ups read, and its standard error."""
        rows = np.array(self.rows)
        mean = float(np.average(files, weights=rows))
        variance = float(np.average((files - mean) ** 2, weights=rows))
        if self.is_whole:
            return mean, 0.0
        return mean, math.sqrt(variance / int(rows.sum()))


def _sample_values(histogram: Histogram) -> Counter[Any]:
    """Divide the ordered rows into equal parts, and take the value of one row of each."""
    ranks = [_choose_rank(draw, histogram.number) for draw in range(_MOST_LOOK_UPS)]
    counts = [histogram.below, *histogram.counts.tolist(), histogram.above]
    bins = np.searchsorted(np.cumsum(counts), ranks, "left")
    return Counter(histogram.upper_end(number) for number in bins.tolist())


def _choose_rank(draw: int, rows: int) -> int:
    """Choose a rank in one part, at irregular distances: files of equally many rows end at regular ranks."""
    step = (draw * _STRIDE + _STEPS // 2) % _STEPS
    return (draw * _STEPS + step) * rows // (_MOST_LOOK_UPS * _STEPS) + 1


def describe_layout(
    listed: ListedFiles, columns: Sequence[Column], read_details: Callable[[Column], ColumnDetails | None]
) -> Iterator[Row]:
    """Make one row for each column, with nulls for a column without bounds.

    Args:
        listed: The data files.
        columns: The columns.
        read_details: Reads the value list and histogram of a column of the table.
    """
    most_tests = _MOST_FILE_TESTS // max(1, len(columns))
    pruner = FilePruner(listed)
    for first in range(0, len(columns), _COLUMNS_AT_ONCE):
        group = columns[first : first + _COLUMNS_AT_ONCE]
        analyzed = pruner.read_columns(group)
        for column in group:
            row = _make_empty_row(column)
            if column in analyzed:
                files = _BoundedFiles.of(analyzed[column])
                row.update(_measure_layout(files, read_details, most_tests))
            yield row


def _make_empty_row(column: Column) -> Row:
    return {
        "column_name": column.name,
        "files_per_lookup": None,
        "overlap_depth": None,
        "sorted": None,
        "advice": None,
        "lookup_error": None,
    }


def _measure_layout(
    files: _BoundedFiles, read_details: Callable[[Column], ColumnDetails | None], most_tests: int
) -> Row:
    layout = ColumnLayout.of(files.los, files.his)
    if layout is None:
        return {}
    row: Row = {"overlap_depth": layout.overlap_depth, "sorted": layout.sorted_share}
    look_ups = _choose_look_ups(files, read_details(files.evidence.column))
    if look_ups is not None:
        row["files_per_lookup"], row["lookup_error"] = look_ups.average(files.count(look_ups, most_tests))
    return row


def _choose_look_ups(files: _BoundedFiles, details: ColumnDetails | None) -> LookUps | None:
    look_ups = LookUps.of_rows(details) if details else None
    return look_ups or LookUps.of_bounds(files.evidence, files.bounded)


@dataclass(frozen=True)
class _BoundedFiles:
    """The data files with statistics of a column.

    Attributes:
        bounded: Whether both bounds of a file are known.
        unbounded: The number of files without both bounds, which may have any value.
    """

    files: FilesOfColumn
    bounded: Mask
    unbounded: int

    @classmethod
    def of(cls, files: FilesOfColumn) -> _BoundedFiles:
        """Divide the files of a column."""
        evidence = files.evidence
        bounded = files.covered & evidence.has_lo & evidence.has_hi
        unbounded = files.covered & ~bounded & ~evidence.empty
        return cls(files, bounded, int(unbounded.sum()))

    @property
    def evidence(self) -> ColumnEvidence:
        return self.files.evidence

    @property
    def los(self) -> NDArray[Any]:
        return self.evidence.lo[self.bounded]

    @property
    def his(self) -> NDArray[Any]:
        return self.evidence.hi[self.bounded]

    def count(self, look_ups: LookUps, most: int) -> NDArray[np.float64]:
        """Count the files that may hold each value.

        Bounds are always compared. Lists and filters are read for as many values as `most` allows; the effect on the
        other values is estimated.

        Args:
            look_ups: The values.
            most: The most files whose lists and filters are read; for one value they are read in any case.
        """
        values = look_ups.values
        by_bounds = self._count_by_bounds(values)
        tested = _choose_tested(by_bounds, most)
        if not len(tested):
            return by_bounds
        by_values = self._count_by_values([values[number] for number in tested])
        if len(tested) == len(by_bounds):
            return by_values
        rows = np.array(look_ups.rows)[tested]
        files_by_values = float(np.dot(by_values, rows))
        files_by_bounds = float(np.dot(by_bounds[tested], rows))
        share = files_by_values / max(1.0, files_by_bounds)
        return by_bounds * share

    def _count_by_values(self, values: Sequence[Any]) -> NDArray[np.float64]:
        keys = KeyColumn.from_stored(values, self.evidence.column)
        counts = np.zeros(len(values))
        candidates = self.files.candidates
        for file in np.flatnonzero(self.files.covered).tolist():
            positions = np.flatnonzero(candidates.select_by_bounds(file, keys, np.arange(len(values))))
            may_hold = candidates.select_by_values(file, keys, positions)
            counts[positions[may_hold]] += 1
        return counts

    def _count_by_bounds(self, values: tuple[Any, ...]) -> NDArray[np.float64]:
        column = self.evidence.column
        sortable = np.array(values, "S64") if is_text(column) else stored_to_sortable(values, column)
        starting_by_value = np.searchsorted(np.sort(self.los), sortable, "right")
        ending_before_value = np.searchsorted(np.sort(self.his), sortable)
        within = starting_by_value - ending_before_value
        counts: NDArray[np.float64] = (within + self.unbounded).astype(np.float64)
        return counts


def _choose_tested(files: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Choose evenly spaced look-ups that test at most `most` files together, or only the middle one."""
    number = len(files)
    while number:
        chosen = (2 * np.arange(number) + 1) * len(files) // (2 * number)
        if files[chosen].sum() <= most or (number == 1 and files[chosen[0]] <= MOST_LOOKED_UP):
            return chosen
        number //= 2
    return np.zeros(0, np.int64)
