"""Finds the data files that have no row for which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from metastore.format.histogram_bins import plain_number
from metastore.pruning.conditions import AllOf, AnyOf, Condition, Member, Related, Unknown, iterate_leaves, list_columns
from metastore.pruning.keys import NAN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.pruning.value_sets import Key, Mask, ValueSet

    Counts = NDArray[np.int64]

MOST_LOOKED_UP = 1_000
"""At most this many single values are looked up in a file's filter."""
_CACHE_SIZE = 1 << 18
"""At most this many results of a test are cached: many data files list the same values."""


@dataclass(frozen=True, kw_only=True)
class ColumnFacts:
    """Counts and bounds of a column in several data files; deleted rows count, too.

    Attributes:
        column: The column.
        analyzed: Whether a file has statistics; without these, every row may match.
        nulls: The number of null values, -1 if unknown.
        nans: The number of NaN values, -1 if unknown.
        empty: Whether all values are null or NaN.
        lo: Lower bounds; any key for a file without one.
        hi: Upper bounds.
        has_lo: Whether there is a lower bound.
        has_hi: Whether there is an upper bound.
        exact: Whether both bounds are values of the file.
    """

    column: Column
    analyzed: Mask
    nulls: Counts
    nans: Counts
    empty: Mask
    lo: NDArray[Any]
    hi: NDArray[Any]
    has_lo: Mask
    has_hi: Mask
    exact: Mask

    @property
    def may_be_null(self) -> Mask:
        """Whether a value may be null."""
        mask: Mask = self.nulls != 0
        return mask

    @property
    def may_be_nan(self) -> Mask:
        """Whether a value may be NaN."""
        if self.column.encoding != "double":
            return np.zeros(len(self.analyzed), bool)
        mask: Mask = self.nans != 0
        return mask

    def limits(self, file: int) -> tuple[Key | None, Key | None]:
        """Return the bounds of a file; None for a missing one."""
        lo = hi = None
        if self.has_lo[file]:
            lo = plain_number(self.lo[file])
        if self.has_hi[file]:
            hi = plain_number(self.hi[file])
        return lo, hi


class SingleValues(Protocol):
    """A look-up of single values of a column in a file."""

    def list_values(self, file: int) -> Sequence[Key] | None:
        """Return all values except null and NaN; None if the file has no list."""

    def has_filter(self, file: int) -> bool:
        """Return whether the file has a filter of its values."""

    def may_hold(self, file: int, keys: Sequence[Key]) -> bool:
        """Return whether the file's filter allows any of the keys."""


def exclude_by_bounds(condition: Condition, facts: Mapping[Column, ColumnFacts], files: int) -> Mask:
    """Find the files in which no row can make a condition true, by counts and bounds.

    Args:
        condition: The condition.
        facts: The facts of each column; a column without facts excludes no file.
        files: The number of files.
    """
    if isinstance(condition, AllOf):
        excluded = np.zeros(files, bool)
        for part in condition.parts:
            excluded |= exclude_by_bounds(part, facts, files)
        return excluded
    if isinstance(condition, AnyOf):
        excluded = np.ones(files, bool)
        for part in condition.parts:
            excluded &= exclude_by_bounds(part, facts, files)
        return excluded
    return _exclude_leaf_by_bounds(condition, facts, files)


def _exclude_leaf_by_bounds(leaf: Member | Related | Unknown, facts: Mapping[Column, ColumnFacts], files: int) -> Mask:
    if not facts.keys() >= set(list_columns(leaf)):
        return np.zeros(files, bool)
    if isinstance(leaf, Member):
        return _exclude_member(leaf, facts[leaf.column])
    if isinstance(leaf, Related):
        return _exclude_related(leaf.relation, facts[leaf.left], facts[leaf.right])
    return np.zeros(files, bool)


def exclude_by_values(
    condition: Condition, facts: Mapping[Column, ColumnFacts], values: Mapping[Column, SingleValues], files: Mask
) -> Mask:
    """Find the files in which no row can make a condition true, by bounds or single values.

    Args:
        condition: The condition.
        facts: The facts of each column.
        values: The single values of each column.
        files: The files to decide; no other file is excluded.
    """
    if isinstance(condition, AllOf):
        excluded = np.zeros(len(files), bool)
        for part in condition.parts:
            excluded |= exclude_by_values(part, facts, values, files & ~excluded)
        return excluded
    if isinstance(condition, AnyOf):
        remaining = files  # each part narrows the files to those that it excludes as well
        for part in sorted(condition.parts, key=_is_looked_up):  # parts without a look-up first
            remaining = exclude_by_values(part, facts, values, remaining)
        return remaining
    excluded = files & _exclude_leaf_by_bounds(condition, facts, len(files))
    if not isinstance(condition, Member):
        return excluded
    column_facts = facts.get(condition.column)
    single_values = values.get(condition.column)
    if column_facts is None or single_values is None:
        return excluded
    undecided = files & ~excluded
    return excluded | _exclude_member_by_values(condition.values, column_facts, single_values, undecided)


def _is_looked_up(condition: Condition) -> bool:
    leaf_types = set(map(type, iterate_leaves(condition)))
    return Member in leaf_types


def _exclude_member(condition: Member, facts: ColumnFacts) -> Mask:
    """Find the files in which no value is in a set, by counts and bounds."""
    values = condition.values
    may_match = ~facts.empty & values.meets(facts.lo, facts.hi, facts.has_lo, facts.has_hi, facts.exact)
    may_match |= _may_match_null_or_nan(values, facts)
    excluded: Mask = facts.analyzed & ~may_match
    return excluded


def _may_match_null_or_nan(values: ValueSet, facts: ColumnFacts) -> Mask:
    may_match = np.zeros(len(facts.analyzed), bool)
    if values.null:
        may_match |= facts.may_be_null
    if facts.column.encoding == "double" and NAN in values:
        may_match |= facts.may_be_nan
    return may_match


def _exclude_member_by_values(values: ValueSet, facts: ColumnFacts, single_values: SingleValues, files: Mask) -> Mask:
    """Find the files in which no value is in a set, by lists and filters."""
    excluded = np.zeros(len(files), bool)
    contains: Callable[[Key], bool] = values.__contains__
    if values.test is not None:
        contains = lru_cache(_CACHE_SIZE)(contains)
    may_be_excluded = files & facts.analyzed & ~_may_match_null_or_nan(values, facts)
    for file in np.flatnonzero(may_be_excluded).tolist():
        listed = single_values.list_values(file)
        if listed is not None:
            excluded[file] = not any(map(contains, listed))
        elif single_values.has_filter(file):
            excluded[file] = _is_excluded_by_filter(values, facts, single_values, file)
    return excluded


def _is_excluded_by_filter(values: ValueSet, facts: ColumnFacts, single_values: SingleValues, file: int) -> bool:
    """Return whether a file's filter has none of the values of a set that are within the file's bounds."""
    points = values.points(*facts.limits(file), MOST_LOOKED_UP)
    if points is None:
        return False
    without_nan = set(points) - {NAN}
    return not single_values.may_hold(file, list(without_nan))


def _exclude_related(relation: str, left: ColumnFacts, right: ColumnFacts) -> Mask:
    """Find the files in which two columns are in a relation in no row."""
    left_range = _Range.of(left)
    right_range = _Range.of(right)
    is_apart = left_range.below(right_range) | right_range.below(left_range)
    are_single = left_range.is_single & right_range.is_single
    has_no_pair = {
        "<": right_range.below(left_range, touching=True),
        "<=": right_range.below(left_range),
        "=": is_apart,
        "<=>": is_apart,
        "<>": are_single & np.asarray(left_range.lo == right_range.lo, bool),
    }[relation]
    are_analyzed = left.analyzed & right.analyzed
    excluded: Mask = are_analyzed & (has_no_pair | _all_null(left) | _all_null(right))
    if relation == "<=>":  # it is also true if both are null
        excluded &= ~left.may_be_null | ~right.may_be_null
    return excluded


def _all_null(facts: ColumnFacts) -> Mask:
    return facts.empty & ~facts.may_be_nan


@dataclass(frozen=True)
class _Range:
    """The bounds of a column, in which NaN counts as the greatest value."""

    lo: NDArray[Any]
    hi: NDArray[Any]
    has_lo: Mask
    has_hi: Mask
    is_single: Mask

    @classmethod
    def of(cls, facts: ColumnFacts) -> _Range:
        lo = facts.lo
        hi = facts.hi
        has_lo = facts.has_lo
        has_hi = facts.has_hi
        if facts.column.encoding == "double":  # NaN is greater than all other values
            has_nan = facts.nans > 0
            hi = np.where(has_nan, NAN, hi)
            has_hi = has_nan | has_hi & (facts.nans == 0)
            has_only_nan = facts.empty & has_nan
            lo = np.where(has_only_nan, NAN, lo)
            has_lo = has_lo | has_only_nan
        is_single = has_lo & has_hi & facts.exact & np.asarray(lo == hi, bool)
        return cls(lo, hi, has_lo, has_hi, is_single)

    def below(self, other: _Range, *, touching: bool = False) -> Mask:
        """Return whether all values are less than those of the other column; with `touching`, not greater."""
        is_below = self.hi <= other.lo if touching else self.hi < other.lo
        below: Mask = self.has_hi & other.has_lo & np.asarray(is_below, bool)
        return below
