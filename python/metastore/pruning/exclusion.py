"""Which data files hold no row of which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from metastore.pruning.conditions import AllOf, AnyOf, Condition, Member, Related, iterate_leaves
from metastore.pruning.keys import NAN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.pruning.value_sets import Key, Mask, ValueSet

    Counts = NDArray[np.int64]

MOST_LOOKED_UP = 1_000
"""So many single values at most are looked for in a file's filter."""
_REMEMBERED = 1 << 18
"""Values of which is kept whether a condition's test takes them: data files list many of the same values."""


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column in each of some data files; physical rows, deleted ones included.

    Attributes:
        known: Whether anything is: elsewhere every row may match.
        nulls: Null values, -1 where not known.
        nans: NaN values, likewise.
        empty: Whether all values are null or NaN.
        lo: Keys that no number, text, ... is below; any key where there is none.
        hi: Keys that none is above.
        has_lo: Whether there is a lower one.
        has_hi: Whether there is an upper one.
        exact: Whether both are values of the file.
    """

    column: Column
    known: Mask
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
        return self.nans != 0 if self.column.encoding == "double" else np.zeros(len(self.known), bool)

    def limits(self, file: int) -> tuple[Key | None, Key | None]:
        """The bounds of a file, None where there is none."""
        lo, hi = (
            side[file].item() if isinstance(side[file], np.generic) else side[file] for side in (self.lo, self.hi)
        )
        return lo if self.has_lo[file] else None, hi if self.has_hi[file] else None


class SingleValues(Protocol):
    """Where single values of a column are looked up in a file."""

    def listed(self, file: int) -> Sequence[Key] | None:
        """All its values but null and NaN, where they are known."""

    def has_filter(self, file: int) -> bool:
        """Whether single values can be looked up where they are not listed."""

    def may_hold(self, file: int, keys: Sequence[Key]) -> bool:
        """Whether it may have any of some values, by its filter."""


def exclude_by_bounds(condition: Condition, facts: Mapping[Column, ColumnFacts], files: int) -> Mask:
    """The files of which counts and bounds prove that no row makes a condition true.

    Args:
        condition: The condition.
        facts: What is known, by column; nothing of a column that is not there.
        files: How many files there are.
    """
    nothing = np.zeros(files, bool)
    if isinstance(condition, AllOf):
        parts = (exclude_by_bounds(part, facts, files) for part in condition.parts)
        return reduce(np.logical_or, parts, nothing)
    if isinstance(condition, AnyOf):
        parts = (exclude_by_bounds(part, facts, files) for part in condition.parts)
        return reduce(np.logical_and, parts, ~nothing)
    if isinstance(condition, Member) and condition.column in facts:
        return _without_member(condition, facts[condition.column])
    if isinstance(condition, Related) and condition.left in facts and condition.right in facts:
        return _unrelated(condition.relation, facts[condition.left], facts[condition.right])
    return nothing


def exclude_by_values(
    condition: Condition, facts: Mapping[Column, ColumnFacts], values: Mapping[Column, SingleValues], among: Mask
) -> Mask:
    """Those of some files of which single values, where bounds do not, prove that no row makes a condition true.

    Args:
        condition: The condition.
        facts: What is known, by column.
        values: Where single values are looked up, by column.
        among: The files that are asked about.
    """
    if isinstance(condition, AllOf):
        excluded = np.zeros(len(among), bool)
        for part in condition.parts:
            excluded |= exclude_by_values(part, facts, values, among & ~excluded)
        return excluded
    if isinstance(condition, AnyOf):
        left = among
        for part in sorted(condition.parts, key=_is_looked_up):
            left = exclude_by_values(part, facts, values, left)
        return left
    excluded = among & exclude_by_bounds(condition, facts, len(among))
    if isinstance(condition, Member) and condition.column in facts and condition.column in values:
        known, single = facts[condition.column], values[condition.column]
        wanted = condition.values
        takes = wanted.__contains__ if wanted.test is None else lru_cache(_REMEMBERED)(wanted.__contains__)
        for file in np.flatnonzero(among & ~excluded & known.known).tolist():
            excluded[file] = _lists_no_member(wanted, takes, known, single, file)
    return excluded


def _is_looked_up(condition: Condition) -> bool:
    return any(isinstance(leaf, Member) for leaf in iterate_leaves(condition))


def _without_member(condition: Member, known: ColumnFacts) -> Mask:
    values = condition.values
    met = ~known.empty & values.meets(known.lo, known.hi, known.has_lo, known.has_hi, known.exact)
    met |= known.may_be_nan & (NAN in values if known.column.encoding == "double" else False)
    met |= known.may_be_null & values.null
    excluded: Mask = known.known & ~met
    return excluded


def _lists_no_member(
    wanted: ValueSet, takes: Callable[[Key], bool], known: ColumnFacts, values: SingleValues, file: int
) -> bool:
    may_be_nan = known.column.encoding == "double" and known.nans[file] != 0
    if (wanted.null and known.nulls[file] != 0) or (may_be_nan and NAN in wanted):
        return False
    listed = values.listed(file)
    if listed is not None:
        return not any(map(takes, listed))
    if not values.has_filter(file):
        return False
    points = wanted.points(*known.limits(file), MOST_LOOKED_UP)
    return points is not None and not values.may_hold(file, [key for key in points if key != NAN])


def _unrelated(relation: str, left: ColumnFacts, right: ColumnFacts) -> Mask:
    both = left.known & right.known
    one, other = _Hull.of(left), _Hull.of(right)
    apart = one.below(other) | other.below(one)
    no_pair = {
        "<": other.below(one, touching=True),
        "<=": other.below(one),
        "=": apart,
        "<=>": apart,
        "<>": one.is_single & other.is_single & np.asarray(one.lo == other.lo, bool),
    }[relation]
    excluded: Mask = both & (no_pair | _all_null(left) | _all_null(right))
    if relation == "<=>":  # It also holds where both are null.
        excluded &= ~left.may_be_null | ~right.may_be_null
    return excluded


def _all_null(known: ColumnFacts) -> Mask:
    return known.empty & ~known.may_be_nan


@dataclass(frozen=True)
class _Hull:
    """The bounds of values, NaN among them."""

    lo: NDArray[Any]
    hi: NDArray[Any]
    has_lo: Mask
    has_hi: Mask
    is_single: Mask

    @classmethod
    def of(cls, known: ColumnFacts) -> _Hull:
        lo, hi, has_lo, has_hi = known.lo, known.hi, known.has_lo, known.has_hi
        if known.column.encoding == "double":
            with_nan = known.nans > 0
            hi, has_hi = np.where(with_nan, NAN, hi), with_nan | has_hi & (known.nans == 0)
            only_nan = known.empty & with_nan
            lo, has_lo = np.where(only_nan, NAN, lo), has_lo | only_nan
        single = has_lo & has_hi & known.exact & np.asarray(lo == hi, bool)
        return cls(lo, hi, has_lo, has_hi, single)

    def below(self, other: _Hull, *, touching: bool = False) -> Mask:
        """Whether all values are below all others, or equal to them at most."""
        compare: Callable[[Any, Any], Any] = np.less_equal if touching else np.less
        below: Mask = self.has_hi & other.has_lo & np.asarray(compare(self.hi, other.lo), bool)
        return below
