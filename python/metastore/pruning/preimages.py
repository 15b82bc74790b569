"""Preimages of functions: the values whose results are in a set.

A value whose result is unknown, because the function may overflow, is in every preimage.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import or_

from metastore.pruning.like_patterns import texts_starting_with
from metastore.pruning.value_sets import ALL_VALUES, NO_VALUE, Key, ValueSet, add_boundary, join_sets

Preimage = Callable[[ValueSet], ValueSet]
"""Maps a set of results to the set of values with these results; the result of NULL is NULL."""
Limits = tuple[int, int]
"""The least and the greatest of some integers."""

_MOST_PREFIXES = 1_000


def invert_rising(function: Callable[[int], int], within: Limits) -> Preimage:
    """Return the preimage of a function that never decreases within limits; other values have unknown results.

    Example:
        >>> values = invert_rising(lambda key: key // 10, (0, 99))(ValueSet.of([3]))
        >>> [key for key in range(-2, 102) if key in values]
        [-2, -1, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 100, 101]
        >>> 5 in invert_rising(lambda key: key, (1, 0))(ValueSet.of([7]))  # no value is within empty limits
        True
    """
    lo, hi = within

    def preimage(results: ValueSet) -> ValueSet:
        boundaries: list[int] = []
        for result in results.boundaries:
            add_boundary(boundaries, _find_first(function, lo, hi, result))

        def may_be_result(key: int) -> bool:
            return not lo <= key <= hi or function(key) in results

        test = None if results.test is None else may_be_result
        values = ValueSet(tuple(boundaries), results.begins_inside, results.null, test)
        outside_limits = ValueSet((lo, hi + 1), begins_inside=True) if lo <= hi else ALL_VALUES
        return values | outside_limits

    return preimage


def invert_linear(factor: int, offset: int, limits: Limits) -> Preimage:
    """Return the preimage of `factor * value + offset`; beyond the limits of the type Spark wraps around or fails.

    Example:
        >>> [key for key in range(-60, 71) if key in invert_linear(-2, 10, (-128, 127))(ValueSet.of([4]))]
        [-60, -59, 3, 70]
    """
    size = abs(factor)
    within = -((offset - limits[0]) // size), (limits[1] - offset) // size
    rising = invert_rising(lambda key: size * key + offset, within)
    if factor > 0:
        return rising
    return lambda results: _mirrored(rising(results))


def invert_nearly_same(distance: int) -> Preimage:
    """Return the preimage of a function whose results are at most `distance` from their values.

    Example:
        >>> [key for key in range(9) if key in invert_nearly_same(1)(ValueSet.between(3, 5))]
        [2, 3, 4, 5]
    """

    def preimage(results: ValueSet) -> ValueSet:
        is_inside = results.begins_inside
        boundaries: list[int] = []
        for boundary in results.boundaries:
            is_inside = not is_inside
            if not is_inside:
                boundaries.append(boundary + distance)
            elif boundaries and boundaries[-1] >= boundary - distance:
                boundaries.pop()  # the two intervals meet
            else:
                boundaries.append(boundary - distance)
        return ValueSet(tuple(boundaries), results.begins_inside, results.null)

    return preimage


def invert_any(function: Callable[[Key], Key | None]) -> Preimage:
    """Return the preimage of any function: it is called for single values, and its result None means unknown.

    Example:
        >>> b"AB" in invert_any(bytes.lower)(ValueSet.of([b"ab"]))
        True
    """

    def preimage(results: ValueSet) -> ValueSet:
        def may_be_result(key: Key) -> bool:
            result = function(key)
            return result is None or result in results

        return ValueSet(begins_inside=True, null=results.null, test=may_be_result)

    return preimage


def invert_prefix(function: Callable[[Key], Key | None]) -> Preimage:
    """Return the preimage of a function whose result is the beginning of its text."""
    exact_preimage = invert_any(function)

    def preimage(results: ValueSet) -> ValueSet:
        prefixes = results.points(None, None, _MOST_PREFIXES)
        values = ALL_VALUES
        if prefixes is not None:
            values = join_sets([NO_VALUE, *map(texts_starting_with, prefixes)], or_)
        if results.null:
            values = values.with_null()
        return exact_preimage(results) & values

    return preimage


def _find_first(function: Callable[[int], int], lo: int, hi: int, least: int) -> int:
    """Return the first key from `lo` to `hi` whose result is at least `least`; `hi + 1` if there is none."""
    end = hi + 1
    while lo < end:
        middle = (lo + end) // 2
        if function(middle) < least:
            lo = middle + 1
        else:
            end = middle
    return lo


def _mirrored(values: ValueSet) -> ValueSet:
    """Return the values with the other sign."""
    boundaries = tuple(1 - boundary for boundary in reversed(values.boundaries))
    begins_inside = values.begins_inside ^ (len(boundaries) % 2 == 1)
    test = None if values.test is None else lambda key: -key in values
    return ValueSet(boundaries, begins_inside, values.null, test)
