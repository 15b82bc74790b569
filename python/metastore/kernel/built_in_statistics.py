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


@dataclass(frozen=True)
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
    StatisticDescriptor("rows", "long", "physical rows"),
    StatisticDescriptor("nulls", "long", "null values"),
    StatisticDescriptor("nans", "long", "NaN values; 0 for types without NaN"),
    StatisticDescriptor("lo_long", "long", "lower bound"),
    StatisticDescriptor("hi_long", "long", "upper bound"),
    StatisticDescriptor("lo_double", "double", "lower bound"),
    StatisticDescriptor("hi_double", "double", "upper bound"),
    StatisticDescriptor("lo_binary", "binary", "lower bound"),
    StatisticDescriptor("hi_binary", "binary", "upper bound"),
    StatisticDescriptor("lo_exact", "boolean", "whether the lower bound is a value"),
    StatisticDescriptor("hi_exact", "boolean", "whether the upper bound is a value"),
    StatisticDescriptor("distinct", "long", "distinct values, null excluded, NaN as one", NOT_IN_GROUPS),
    StatisticDescriptor("distinct_error", "double", "relative standard error of distinct, 0: exact", NOT_IN_GROUPS),
    StatisticDescriptor("sum_exact", "decimal(38,0)", "sum of unscaled integers; null on overflow and for doubles"),
    StatisticDescriptor("sum", "double", "sum of the finite values", version=2),
    StatisticDescriptor("mean", "double", "arithmetic mean of the finite values", version=2),
    StatisticDescriptor("m2", "double", "sum of squared distances of the finite values from the mean", version=2),
    StatisticDescriptor("avg_len", "double", "bytes of a value on average"),
    StatisticDescriptor(
        "max_len",
        "long",
        "bytes of the longest value",
        MAX,
        of_numbers=lambda values: values.width,
        of_texts=lambda texts: int(texts.lengths.max()),
    ),
    StatisticDescriptor("trues", "long", "values that are true, of booleans"),
    StatisticDescriptor("compressed_bytes", "long", "bytes of the column's chunks"),
    StatisticDescriptor("uncompressed_bytes", "long", "bytes of the column's chunks before compression"),
    StatisticDescriptor(
        "frequencies", "text", "which values are listed: none, top, duplicates, complete", NOT_IN_GROUPS
    ),
    StatisticDescriptor("frequencies_floor", "long", "no value left out is more frequent", NOT_IN_GROUPS),
    StatisticDescriptor("percentiles_long", "list<long>", "101 values, of ranks max(1, ceil(p n / 100))"),
    StatisticDescriptor("percentiles_double", "list<double>", "the same"),
    StatisticDescriptor("percentiles_binary", "list<binary>", "the same"),
    StatisticDescriptor("extra", "map<text,binary>", "user-defined statistics", NOT_IN_GROUPS),
    StatisticDescriptor("singles", "long", "values that occur once; null: unknown", NOT_IN_GROUPS),
    StatisticDescriptor(
        "min_len",
        "long",
        "bytes of the shortest text or binary value; null for other types",
        MIN,
        of_texts=lambda texts: int(texts.lengths.min()),
    ),
    StatisticDescriptor(
        "empty_texts",
        "long",
        "text or binary values without bytes; null for other types",
        SUM,
        of_texts=_count_empty,
    ),
    StatisticDescriptor(
        "negative_infinities",
        "long",
        "values that are -Infinity, of float and double; null for other types",
        SUM,
        of_numbers=_count_negative_infinities,
    ),
    StatisticDescriptor(
        "positive_infinities",
        "long",
        "values that are Infinity, of float and double; null for other types",
        SUM,
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
