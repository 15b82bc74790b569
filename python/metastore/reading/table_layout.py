"""How the values of columns are spread over data files, and how many of these a look-up reads: as the shim tells it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.pruning.conditions import Member
from metastore.pruning.value_sets import ValueSet
from metastore.reading.file_pruning import FilePruner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from metastore.format.table_column import Column
    from metastore.pruning.value_sets import Key
    from metastore.reading.file_pruning import ListedFiles
    from metastore.reading.summary_rows import Row

_MOST_LOOK_UPS = 32
"""Of a column."""
_FILES_ASKED = 100_000
"""Of all look-ups of all columns: of large tables there are fewer, one a column at the least."""


@dataclass(frozen=True)
class ColumnLayout:
    """How the values of a column are spread over data files, by the bounds of those whose bounds are known.

    Attributes:
        overlap_depth: How many files have the least value of a file between their bounds, itself included, on average.
        sorted_share: Share of the files whose values no other file's bounds enclose: at most their ends are another's.
    """

    overlap_depth: float
    sorted_share: float

    @classmethod
    def of(cls, bounds: Sequence[tuple[Key, Key]]) -> ColumnLayout | None:
        """The layout of files with these bounds; None where there is none.

        Example:
            >>> ColumnLayout.of([(1, 4), (4, 6), (5, 9)])
            ColumnLayout(overlap_depth=1.6666666666666667, sorted_share=0.3333333333333333)
        """
        if not bounds:
            return None
        ordered = sorted(bounds)
        los, his = [lo for lo, _ in ordered], sorted(hi for _, hi in ordered)
        depth = sum(bisect_right(los, lo) - bisect_left(his, lo) for lo in los)
        alone, highest = 0, None
        for place, (lo, hi) in enumerate(ordered):
            is_after = highest is None or highest <= lo
            alone += is_after and (place + 1 == len(ordered) or hi <= los[place + 1])
            highest = hi if highest is None else max(highest, hi)
        return cls(depth / len(ordered), alone / len(ordered))


def describe_layout(listed: ListedFiles, columns: Sequence[Column]) -> Iterator[Row]:
    """One row for each column; of one whose bounds are not known it says nothing.

    Args:
        listed: The data files.
        columns: The columns.
    """
    files = listed.stored.files.num_rows
    most = max(1, min(_MOST_LOOK_UPS, _FILES_ASKED // max(1, files * len(columns))))
    for column in columns:
        pruner = FilePruner(listed)  # what it reads goes with it
        evidence, bounds = pruner.read_bounds(column)
        found = ColumnLayout.of([both for both in bounds if None not in both])
        begins = [] if evidence is None else [bounds[file] for file in np.flatnonzero(evidence.lo_exact).tolist()]
        samples = _choose(sorted(both for both in begins if None not in both), most) if found else []
        read = [pruner.count_kept(Member(column, ValueSet.of([lo]))) for lo, _ in samples]
        yield {
            "column_name": column.name,
            "files_per_lookup": sum(read) / len(read) if read else None,
            "overlap_depth": found.overlap_depth if found else None,
            "sorted": found.sorted_share if found else None,
            "advice": None,
        }


def _choose(ordered: Sequence[Any], most: int) -> list[Any]:
    """Some of them, evenly chosen."""
    step = max(1.0, len(ordered) / most)
    return [ordered[int(place * step)] for place in range(min(most, len(ordered)))]
