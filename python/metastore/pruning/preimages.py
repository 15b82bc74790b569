"""Functions of values, turned around: from a set of results to the values that have one of them.

Where a function may overflow, or is not certain to give what it gives in Spark, the value is in every such set.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import or_

from metastore.pruning.like_patterns import texts_from
from metastore.pruning.value_sets import ALL_VALUES, NO_VALUE, Key, ValueSet, join_sets

Preimage = Callable[[ValueSet], ValueSet]
"""Of results the values, NULL of NULL."""
Limits = tuple[int, int]
"""The least and the greatest of some integers."""

_MOST_PREFIXES = 1_000


def of_rising(function: Callable[[int], int], within: Limits) -> Preimage:
    """Of a function that never decreases from the first to the last of some keys; what it gives of others is not known.

    Example:
        >>> found = of_rising(lambda key: key // 10, (0, 99))(ValueSet.of([3]))
        >>> [key for key in range(-2, 102) if key in found]
        [-2, -1, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 100, 101]
    """
    lo, hi = within

    def turned(results: ValueSet) -> ValueSet:
        places: list[int] = []
        for boundary in results.boundaries:
            place = _first(function, lo, hi, boundary)
            if places and places[-1] == place:
                places.pop()
            else:
                places.append(place)
        test = None if results.test is None else lambda key: not lo <= key <= hi or function(key) in results
        inside = ValueSet(tuple(places), results.begins_inside, results.null, test)
        return inside | ValueSet((lo, hi + 1), begins_inside=True)

    return turned


def of_linear(factor: int, offset: int, limits: Limits) -> Preimage:
    """Of `factor * value + offset`, where that is within the limits of a type: else Spark wraps around or fails.

    Example:
        >>> [key for key in range(-60, 71) if key in of_linear(-2, 10, (-128, 127))(ValueSet.of([4]))]
        [-60, -59, 3, 70]
    """
    size = abs(factor)
    within = -((offset - limits[0]) // size), (limits[1] - offset) // size
    rising = of_rising(lambda key: size * key + offset, within)
    return rising if factor > 0 else lambda results: _mirrored(rising(results))


def of_nearly_same(distance: int) -> Preimage:
    """Of a function of which only this is known: no result is farther than so much from its value.

    Example:
        >>> [key for key in range(9) if key in of_nearly_same(1)(ValueSet.between(3, 5))]
        [2, 3, 4, 5]
    """

    def turned(results: ValueSet) -> ValueSet:
        inside, places = results.begins_inside, list[int]()
        for boundary in results.boundaries:
            inside = not inside
            if not inside:
                places.append(boundary + distance)
            elif places and places[-1] >= boundary - distance:
                places.pop()
            else:
                places.append(boundary - distance)
        return ValueSet(tuple(places), results.begins_inside, results.null)

    return turned


def of_any(function: Callable[[Key], Key | None]) -> Preimage:
    """Of any function: single values are put through it. None is a doubt.

    Example:
        >>> b"AB" in of_any(bytes.lower)(ValueSet.of([b"ab"]))
        True
    """

    def turned(results: ValueSet) -> ValueSet:
        def may_be(key: Key) -> bool:
            value = function(key)
            return value is None or value in results

        return ValueSet(begins_inside=True, null=results.null, test=may_be)

    return turned


def of_prefix(function: Callable[[Key], Key | None]) -> Preimage:
    """Of a function that gives the beginning of a text: a text with that beginning begins with it."""
    exact = of_any(function)

    def turned(results: ValueSet) -> ValueSet:
        wanted = results.points(None, None, _MOST_PREFIXES)
        begin = ALL_VALUES if wanted is None else join_sets([NO_VALUE, *map(texts_from, wanted)], or_)
        return exact(results) & (begin.with_null() if results.null else begin)

    return turned


def _first(function: Callable[[int], int], lo: int, hi: int, least: int) -> int:
    """The first key whose result is no less than another one; the one behind the last where none is."""
    end = hi + 1
    while lo < end:
        middle = (lo + end) // 2
        if function(middle) < least:
            lo = middle + 1
        else:
            end = middle
    return lo


def _mirrored(values: ValueSet) -> ValueSet:
    """The same values with the other sign."""
    places = tuple(1 - place for place in reversed(values.boundaries))
    begins_inside = values.begins_inside ^ bool(len(places) & 1)
    test = None if values.test is None else lambda key: -key in values
    return ValueSet(places, begins_inside, values.null, test)
