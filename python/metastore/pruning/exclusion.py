"""Which data files hold no row of which a condition is true."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from metastore.pruning.conditions import AllOf, AnyOf, Condition, Member, Related
from metastore.pruning.keys import NAN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.table_column import Column
    from metastore.pruning.value_sets import Key, Mask

    Counts = NDArray[np.int64]

MOST_LOOKED_UP = 1_000
"""So many single values at most are looked for in a file's filter."""


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

    def may_hold(self, file: int, keys: Sequence[Key]) -> bool:
        """Whether it may have any of some values."""


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
    condition: Condition, facts: Mapping[Column, ColumnFacts], values: Mapping[Column, SingleValues], file: int
) -> bool:
    """Whether single values prove of a file, which bounds keep, that no row makes a condition true."""
    if isinstance(condition, AllOf):
        return any(exclude_by_values(part, facts, values, file) for part in condition.parts)
    if isinstance(condition, AnyOf):
        return all(exclude_by_values(part, facts, values, file) for part in condition.parts)
    if isinstance(condition, Member) and condition.column in facts:
        known = facts[condition.column]
        one = _take(known, file)
        return bool(_without_member(condition, one)[0]) or (
            condition.column in values and _lists_no_member(condition, known, values[condition.column], file)
        )
    one_file = {column: _take(known, file) for column, known in facts.items()}
    return bool(exclude_by_bounds(condition, one_file, 1)[0])


def _take(known: ColumnFacts, file: int) -> ColumnFacts:
    fields = known.__dict__
    return ColumnFacts(known.column, *(fields[name][file : file + 1] for name in list(fields)[1:]))


def _without_member(condition: Member, known: ColumnFacts) -> Mask:
    values = condition.values
    met = ~known.empty & values.meets(known.lo, known.hi, known.has_lo, known.has_hi, known.exact)
    met |= known.may_be_nan & (NAN in values if known.column.encoding == "double" else False)
    met |= known.may_be_null & values.null
    excluded: Mask = known.known & ~met
    return excluded


def _lists_no_member(condition: Member, known: ColumnFacts, values: SingleValues, file: int) -> bool:
    wanted = condition.values
    if not known.known[file] or (wanted.null and known.may_be_null[file]):
        return False
    if known.may_be_nan[file] and NAN in wanted:
        return False
    listed = values.listed(file)
    if listed is not None:
        return not any(key in wanted for key in listed)
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
