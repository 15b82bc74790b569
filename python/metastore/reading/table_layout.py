"""How the values of columns are spread over data files, and how many of these a look-up reads: as the shim tells it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.sortable_values import is_text, sortable_to_stored, stored_to_sortable
from metastore.pruning.conditions import Member
from metastore.pruning.keys import key_of_stored
from metastore.pruning.value_sets import ValueSet
from metastore.reading.file_pruning import MOST_LOOKED_UP, FilePruner
from metastore.reading.summary_rows import is_edge_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.pruning.value_sets import Mask
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.evidence import ColumnEvidence
    from metastore.reading.file_pruning import ListedFiles
    from metastore.reading.summary_rows import Row

_MOST_LOOK_UPS = 32
"""Of a column."""
_STEPS = 1 << 16
_STRIDE = 40_503  # the golden section of them
_FILES_ASKED = 100_000
"""For single values, by all look-ups of all columns: of large tables fewer of them ask, one a column at the least."""


@dataclass(frozen=True)
class ColumnLayout:
    """How the values of a column are spread over data files, by the bounds of those whose bounds are known.

    Attributes:
        overlap_depth: The average number of files, itself included, whose bounds share a value with a file's.
        sorted_share: Share of the files whose values no other file's bounds enclose: at most their ends are another's.
    """

    overlap_depth: float
    sorted_share: float

    @classmethod
    def of(cls, los: NDArray[Any], his: NDArray[Any]) -> ColumnLayout | None:
        """The layout of files with these bounds; None where there is none.

        Example:
            >>> ColumnLayout.of(np.array([1, 4, 5]), np.array([4, 6, 9]))
            ColumnLayout(overlap_depth=2.3333333333333335, sorted_share=0.3333333333333333)
        """
        if not len(los):
            return None
        order = np.argsort(los)
        begins, ends = los[order], np.sort(his)
        los, his = begins, his[order]  # neighbours are found near to each other
        begun_by_its_end = np.searchsorted(begins, his, "right")
        ended_before_it = np.searchsorted(ends, los, "left")
        depth = begun_by_its_end - ended_before_it
        apart = np.searchsorted(ends, los, "right") + len(los) - np.searchsorted(begins, his, "left")
        points = np.sort(los[los == his])  # these, itself among them, lie before a file of that one value and after it
        twice = np.searchsorted(points, los, "right") - np.searchsorted(points, los, "left")
        alone = apart == np.where(los == his, len(los) + twice, len(los) - 1)
        return cls(float(depth.mean()), float(alone.mean()))


@dataclass(frozen=True)
class LookUps:
    """Values that are looked up in a column.

    Attributes:
        values: As the format stores them.
        rows: How many rows each stands for: of those drawn, or of all.
        is_whole: Whether there are no others.
    """

    values: tuple[Any, ...]
    rows: tuple[int, ...]
    is_whole: bool

    @classmethod
    def of_rows(cls, known: ColumnDetails) -> LookUps | None:
        """All values where they are few, else those of one row of each part of all in order; None where none is kept.

        A value that may be the beginning of longer ones is none.
        """
        bars = known.histogram()
        if bars is None:
            return None
        bins = known.choose_rank_histogram(bars)
        counted: Counter[Any] = Counter()
        for end, count in bins.upper_ends:
            counted[end] += count
        if len(counted) <= _MOST_LOOK_UPS and bins.single_value_bins.all():
            return cls._among(known, counted, is_whole=True)
        ends = [end for end, _ in bins.upper_ends]
        sums = np.cumsum([count for _, count in bins.upper_ends])
        ranks = [_choose_rank(draw, bins.number) for draw in range(_MOST_LOOK_UPS)]
        drawn = Counter(ends[place] for place in np.searchsorted(sums, ranks, "left").tolist())
        return cls._among(known, drawn, is_whole=False)

    @classmethod
    def of_bounds(cls, known: ColumnEvidence, among: Mask) -> LookUps | None:
        """The least and the greatest values of some files: all that is known where no values are kept."""
        files = np.flatnonzero(among & known.lo_exact & known.hi_exact)
        files = files[np.lexsort((known.hi[files], known.lo[files]))]
        most = min(_MOST_LOOK_UPS // 2, len(files))
        chosen = [files[(2 * draw + 1) * len(files) // (2 * most)] for draw in range(most)]
        ends = Counter(side[file] for file in chosen for side in (known.lo, known.hi))
        if not ends:
            return None
        stored = bytes if is_text(known.column) else partial(sortable_to_stored, column=known.column)
        return cls(tuple(map(stored, ends)), tuple(ends.values()), is_whole=False)

    @classmethod
    def _among(cls, known: ColumnDetails, drawn: Mapping[Any, int], *, is_whole: bool) -> LookUps | None:
        kept = {value: rows for value, rows in drawn.items() if not is_edge_cut(known.summary, value)}
        return cls(tuple(kept), tuple(kept.values()), is_whole and len(kept) == len(drawn)) if kept else None

    def average(self, files: NDArray[np.float64]) -> tuple[float, float]:
        """The mean of what each of them reads, and its standard error."""
        rows = np.array(self.rows)
        mean = float(np.average(files, weights=rows))
        spread = float(np.average((files - mean) ** 2, weights=rows))
        return mean, 0.0 if self.is_whole else math.sqrt(spread / int(rows.sum()))


def _choose_rank(draw: int, rows: int) -> int:
    """A rank in one of the parts: at even ranks ends of files with equally many rows would be met never, or always."""
    return (draw * _STEPS + (draw * _STRIDE + _STEPS // 2) % _STEPS) * rows // (_MOST_LOOK_UPS * _STEPS) + 1


def describe_layout(
    listed: ListedFiles, columns: Sequence[Column], details: Callable[[Column], ColumnDetails | None]
) -> Iterator[Row]:
    """One row for each column; of one whose bounds are not known it says nothing.

    Args:
        listed: The data files.
        columns: The columns.
        details: What the table keeps of a column's values.
    """
    for column in columns:
        found = _FilesOfColumn.of(FilePruner(listed), column)  # what it reads goes with it
        layout = None if found is None else ColumnLayout.of(found.los, found.his)
        read = None
        if found is not None and layout is not None:
            kept = details(column)
            values = (kept and LookUps.of_rows(kept)) or LookUps.of_bounds(found.evidence, found.bounded)
            read = values and values.average(found.count(values, _FILES_ASKED // len(columns)))
        yield {
            "column_name": column.name,
            "files_per_lookup": read[0] if read else None,
            "overlap_depth": layout.overlap_depth if layout else None,
            "sorted": layout.sorted_share if layout else None,
            "advice": None,
            "lookup_error": read[1] if read else None,
        }


@dataclass(frozen=True)
class _FilesOfColumn:
    """The data files in which something is known of a column.

    Attributes:
        bounded: Those of which both bounds are known.
        unbounded: How many others may have any value.
    """

    pruner: FilePruner
    evidence: ColumnEvidence
    bounded: Mask
    unbounded: int

    @classmethod
    def of(cls, pruner: FilePruner, column: Column) -> _FilesOfColumn | None:
        evidence, known = pruner.read_evidence(column)
        if evidence is None:
            return None
        bounded = known & evidence.has_lo & evidence.has_hi
        return cls(pruner, evidence, bounded, int((known & ~bounded & ~evidence.empty).sum()))

    @property
    def los(self) -> NDArray[Any]:
        return self.evidence.lo[self.bounded]

    @property
    def his(self) -> NDArray[Any]:
        return self.evidence.hi[self.bounded]

    def count(self, values: LookUps, most: int) -> NDArray[np.float64]:
        """How many files may hold each of some values: of very many, bounds tell all and single values of a part.

        Args:
            values: The values.
            most: So many files are asked for single values, but one look-up's at the least.
        """
        column = self.evidence.column
        forms = np.array(values.values, "S64") if is_text(column) else stored_to_sortable(values.values, column)
        begun, ended = np.searchsorted(np.sort(self.los), forms, "right"), np.searchsorted(np.sort(self.his), forms)
        by_bounds: NDArray[np.float64] = (begun - ended + self.unbounded).astype(np.float64)
        asked = _choose_asked(by_bounds, most)
        if not len(asked):
            return by_bounds
        keys = [key_of_stored(values.values[place], column) for place in asked]
        read = np.array([self.pruner.count_kept(Member(column, ValueSet.of([key]))) for key in keys], np.float64)
        if len(asked) == len(by_bounds):
            return read
        rows = np.array(values.rows)[asked]
        share = float(np.dot(read, rows)) / max(1.0, float(np.dot(by_bounds[asked], rows)))
        return by_bounds * share


def _choose_asked(files: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Those of some look-ups, evenly chosen, that together ask no more than so many files, or the middle one."""
    number = len(files)
    while number:
        chosen = (2 * np.arange(number) + 1) * len(files) // (2 * number)
        if files[chosen].sum() <= most or (number == 1 and files[chosen[0]] <= MOST_LOOKED_UP):
            return chosen
        number //= 2
    return np.zeros(0, np.int64)
