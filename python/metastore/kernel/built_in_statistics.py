"""The built-in statistics, with a descriptor each for the format, for merging and for the docs.

A statistic is one number about the values of a column in a data file. Statistics with functions are computed and merged
by their descriptors; the descriptors of the others only describe what other modules compute. The list is written to
`contract/statistics.json`, from which the schemas of stored objects are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metastore.format.sortable_values import value_width

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.kernel.value_runs import ValueRuns

    Longs = NDArray[np.int64]

SUM = "sum"
MIN = "min"
MAX = "max"
OWN, NOT_IN_GROUPS = "own", "not in groups"
"""Merged by another module; the second only from data files, never from groups of data files."""
_UFUNCS: dict[str, np.ufunc] = {SUM: np.add, MIN: np.minimum, MAX: np.maximum}


@dataclass(frozen=True)
class FixedWidthInput:
    """Distinct values of a fixed width in sortable form, ascending, with their frequencies."""

    runs: ValueRuns
    column: Column

    @property
    def width(self) -> int:
        """Bytes of a value."""
        return value_width(self.column)


@dataclass(frozen=True)
class TextInput:
    """The length of each text or binary value in bytes, and its frequency; without counts, each occurs once."""

    lengths: Longs
    counts: Longs | None = None


@dataclass(frozen=True, kw_only=True)
class StatisticDescriptor:
    """A built-in statistic.

    Attributes:
        name: The name of its field in `summary`.
        type: The type of the field, as `contract/statistics.json` spells it.
        meaning: The meaning of the field, as in docs/format.md.
        merge: The way in which numbers of parts are merged.
        of_numbers: Computes it from one or more values of a fixed width; returns None for types without it.
        of_texts: Computes it from one or more text or binary values.
        version: Increases when the computation or the merging changes: groups of data files are then merged again.
    """

    name: str
    type: str
    meaning: str
    merge: str = OWN
    of_numbers: Callable[[FixedWidthInput], int | None] | None = None
    of_texts: Callable[[TextInput], int] | None = None
    version: int = 1

    def compute(self, values: FixedWidthInput | TextInput) -> int | None:
        """Compute the statistic; None if values of this kind have none."""
        compute: Callable[[Any], int | None] | None = self.of_numbers
        if isinstance(values, TextInput):
            compute = self.of_texts
        if compute is None:
            return None
        return compute(values)

    @property
    def ufunc(self) -> np.ufunc:
        """The function that merges numbers of parts."""
        return _UFUNCS[self.merge]


def _count_negative_infinities(values: FixedWidthInput) -> int | None:
    if values.column.encoding != "double":
        return None
    return values.runs.infinities[0]


def _count_positive_infinities(values: FixedWidthInput) -> int | None:
    if values.column.encoding != "double":
        return None
    return values.runs.infinities[1]


def _count_empty(texts: TextInput) -> int:
    is_empty = texts.lengths == 0
    if texts.counts is None:
        return int(np.count_nonzero(is_empty))
    return int(texts.counts[is_empty].sum())


BUILT_IN = (
    StatisticDescriptor(name="rows", type="long", meaning="physical rows"),
    StatisticDescriptor(name="nulls", type="long", meaning="null values"),
    StatisticDescriptor(name="nans", type="long", meaning="NaN values; 0 for types without NaN"),
    StatisticDescriptor(name="lo_long", type="long", meaning="lower bound"),
    StatisticDescriptor(name="hi_long", type="long", meaning="upper bound"),
    StatisticDescriptor(name="lo_double", type="double", meaning="lower bound"),
    StatisticDescriptor(name="hi_double", type="double", meaning="upper bound"),
    StatisticDescriptor(name="lo_binary", type="binary", meaning="lower bound"),
    StatisticDescriptor(name="hi_binary", type="binary", meaning="upper bound"),
    StatisticDescriptor(name="lo_exact", type="boolean", meaning="whether the lower bound is a value"),
    StatisticDescriptor(name="hi_exact", type="boolean", meaning="whether the upper bound is a value"),
    StatisticDescriptor(
        name="distinct", type="long", meaning="distinct values, null excluded, NaN as one", merge=NOT_IN_GROUPS
    ),
    StatisticDescriptor(
        name="distinct_error",
        type="double",
        meaning="relative standard error of distinct, 0: exact",
        merge=NOT_IN_GROUPS,
    ),
    StatisticDescriptor(
        name="sum_exact", type="decimal(38,0)", meaning="sum of unscaled integers; null on overflow and for doubles"
    ),
    StatisticDescriptor(name="sum", type="double", meaning="sum of the finite values", version=2),
    StatisticDescriptor(name="mean", type="double", meaning="arithmetic mean of the finite values", version=2),
    StatisticDescriptor(
        name="m2", type="double", meaning="sum of squared distances of the finite values from the mean", version=2
    ),
    StatisticDescriptor(name="avg_len", type="double", meaning="bytes of a value on average"),
    StatisticDescriptor(
        name="max_len",
        type="long",
        meaning="bytes of the longest value",
        merge=MAX,
        of_numbers=lambda values: values.width,
        of_texts=lambda texts: int(texts.lengths.max()),
    ),
    StatisticDescriptor(name="trues", type="long", meaning="values that are true, of booleans"),
    StatisticDescriptor(name="compressed_bytes", type="long", meaning="bytes of the column's chunks"),
    StatisticDescriptor(
        name="uncompressed_bytes", type="long", meaning="bytes of the column's chunks before compression"
    ),
    StatisticDescriptor(
        name="frequencies",
        type="text",
        meaning="which values are listed: none, top, duplicates, complete",
        merge=NOT_IN_GROUPS,
    ),
    StatisticDescriptor(
        name="frequencies_floor", type="long", meaning="no value left out is more frequent", merge=NOT_IN_GROUPS
    ),
    StatisticDescriptor(
        name="percentiles_long", type="list<long>", meaning="101 values, of ranks max(1, ceil(p n / 100))"
    ),
    StatisticDescriptor(name="percentiles_double", type="list<double>", meaning="the same"),
    StatisticDescriptor(name="percentiles_binary", type="list<binary>", meaning="the same"),
    StatisticDescriptor(name="extra", type="map<text,binary>", meaning="user-defined statistics", merge=NOT_IN_GROUPS),
    StatisticDescriptor(
        name="singles", type="long", meaning="values that occur once; null: unknown", merge=NOT_IN_GROUPS
    ),
    StatisticDescriptor(
        name="min_len",
        type="long",
        meaning="bytes of the shortest text or binary value; null for other types",
        merge=MIN,
        of_texts=lambda texts: int(texts.lengths.min()),
    ),
    StatisticDescriptor(
        name="empty_texts",
        type="long",
        meaning="text or binary values without bytes; null for other types",
        merge=SUM,
        of_texts=_count_empty,
    ),
    StatisticDescriptor(
        name="negative_infinities",
        type="long",
        meaning="values that are -Infinity, of float and double; null for other types",
        merge=SUM,
        of_numbers=_count_negative_infinities,
    ),
    StatisticDescriptor(
        name="positive_infinities",
        type="long",
        meaning="values that are Infinity, of float and double; null for other types",
        merge=SUM,
        of_numbers=_count_positive_infinities,
    ),
)
"""All built-in statistics, in the order of the fields of `summary`; new ones come last."""

COMPUTED = tuple(statistic for statistic in BUILT_IN if statistic.merge in _UFUNCS)
"""The statistics that descriptors compute."""
COMPUTED_NAMES = frozenset(statistic.name for statistic in COMPUTED)


def compute_numbers(values: FixedWidthInput | TextInput) -> dict[str, int]:
    """Compute the statistics of values of a column."""
    numbers = {}
    for statistic in COMPUTED:
        number = statistic.compute(values)
        if number is not None:
            numbers[statistic.name] = number
    return numbers


def merge_part_numbers(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Merge the computed statistics of parts of a file."""
    merged = {}
    for statistic in COMPUTED:
        name = statistic.name
        if name in parts[0]:
            merged[name] = int(statistic.ufunc.reduce([part[name] for part in parts]))
    return merged


def identify_merged_statistics() -> tuple[tuple[str, str, str, int], ...]:
    """Identify the statistics of merged groups of data files; groups with other statistics or versions are not used."""
    return tuple(
        (statistic.name, statistic.type, statistic.merge, statistic.version)
        for statistic in BUILT_IN
        if statistic.merge != NOT_IN_GROUPS
    )
