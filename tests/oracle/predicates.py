"""Predicates as trees: each gives its SQL and, from true bounds, which files it can and cannot touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from oracle.literals import literal, quoted
from oracle.zones import Zone, may_hold, may_hold_other, may_start_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from oracle.columns import Leaf

OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<=", "<=>": "<=>"}
Zones = "Mapping[Leaf, Zone]"


class Predicate:
    """A Boolean expression over one row."""

    def sql(self) -> str:
        """Returns the predicate as SQL."""
        raise NotImplementedError

    def may_be(self, truth: bool, zones: Mapping[Leaf, Zone]) -> bool:  # noqa: FBT001 - the question itself
        """Tells whether bounds allow a row for which this is `truth`; True wherever they do not decide."""
        raise NotImplementedError

    def cells(self) -> Iterator[tuple[str, str]]:
        """Yields (type, operator) of every comparison in the tree."""
        raise NotImplementedError

    def parts(self) -> tuple[Predicate, ...]:
        """Returns the sub-trees, for making a failing predicate smaller."""
        return ()


@dataclass(frozen=True)
class Compare(Predicate):
    """`column op literal`, or the literal first."""

    leaf: Leaf
    op: str
    value: Any
    flipped: bool = False

    def sql(self) -> str:
        value = literal(self.leaf.type, self.value)
        return (
            f"({value} {MIRRORED[self.op]} {self.leaf.sql})" if self.flipped else f"({self.leaf.sql} {self.op} {value})"
        )

    def may_be(self, truth, zones):
        zone = zones[self.leaf]
        if self.op == "<=>" and self.value is None:
            return bool(zone.nulls) if truth else zone.has_value()
        if self.value is None:
            return False
        if self.op == "<=>" and not truth and zone.nulls:
            return True
        op = "=" if self.op == "<=>" else self.op
        return may_hold(op if truth else OPPOSITE[op], zone, self.value)

    def cells(self):
        yield self.leaf.type, self.op


@dataclass(frozen=True)
class Between(Predicate):
    """`column [NOT] BETWEEN lo AND hi`."""

    leaf: Leaf
    lo: Any
    hi: Any
    negated: bool = False

    def sql(self) -> str:
        lo, hi = literal(self.leaf.type, self.lo), literal(self.leaf.type, self.hi)
        return f"({self.leaf.sql} {'NOT ' * self.negated}BETWEEN {lo} AND {hi})"

    def may_be(self, truth, zones):
        tree = And(Compare(self.leaf, ">=", self.lo), Compare(self.leaf, "<=", self.hi))
        return tree.may_be(truth != self.negated, zones)

    def cells(self):
        yield self.leaf.type, "NOT BETWEEN" if self.negated else "BETWEEN"


@dataclass(frozen=True)
class In(Predicate):
    """`column [NOT] IN (...)`; a null in the list makes every miss unknown."""

    leaf: Leaf
    values: tuple[Any, ...]
    negated: bool = False

    def sql(self) -> str:
        values = ", ".join(literal(self.leaf.type, v) for v in self.values)
        return f"({self.leaf.sql} {'NOT ' * self.negated}IN ({values}))"

    def may_be(self, truth, zones):
        zone = zones[self.leaf]
        if truth != self.negated:
            return any(v is not None and may_hold("=", zone, v) for v in self.values)
        return None not in self.values and may_hold_other(zone, self.values)

    def cells(self):
        yield self.leaf.type, "NOT IN" if self.negated else "IN"


@dataclass(frozen=True)
class IsNull(Predicate):
    """`column IS [NOT] NULL`."""

    leaf: Leaf
    negated: bool = False

    def sql(self) -> str:
        return f"({self.leaf.sql} IS {'NOT ' * self.negated}NULL)"

    def may_be(self, truth, zones):
        zone = zones[self.leaf]
        return bool(zone.nulls) if truth != self.negated else zone.has_value()

    def cells(self):
        yield self.leaf.type, "IS NOT NULL" if self.negated else "IS NULL"


@dataclass(frozen=True)
class Is(Predicate):
    """A boolean column by itself."""

    leaf: Leaf

    def sql(self) -> str:
        return self.leaf.sql

    def may_be(self, truth, zones):
        return may_hold("=", zones[self.leaf], truth)

    def cells(self):
        yield self.leaf.type, "column"


@dataclass(frozen=True)
class Like(Predicate):
    """`column [NOT] LIKE pattern`; `prefix` is what the pattern proves about the beginning of a match.

    `is_only_prefix` says that a match is nothing but the prefix followed by anything.
    """

    leaf: Leaf
    pattern: str
    prefix: bytes
    is_only_prefix: bool
    negated: bool = False
    escape: str = ""

    def sql(self) -> str:
        escape = f" ESCAPE {quoted(self.escape)}" if self.escape else ""
        return f"({self.leaf.sql} {'NOT ' * self.negated}LIKE {quoted(self.pattern)}{escape})"

    def may_be(self, truth, zones):
        if not self.is_only_prefix:
            return True
        return may_start_with(zones[self.leaf], self.prefix, negated=truth == self.negated)

    def cells(self):
        yield self.leaf.type, "NOT LIKE" if self.negated else "LIKE"


@dataclass(frozen=True)
class Monotone(Predicate):
    """`expression op literal`, where the expression grows with its column: its bounds follow from the column's.

    `image` is the expression in Python, None where it cannot tell.
    """

    leaf: Leaf
    expression: str
    image: Callable[[Any], Any]
    op: str
    value: Any
    written: str
    label: str

    def sql(self) -> str:
        return f"({self.expression} {self.op} {self.written})"

    def may_be(self, truth, zones):
        zone = zones[self.leaf]
        if not zone.present or zone.nans or not zone.exact:
            return True
        lo, hi = self.image(zone.lo), self.image(zone.hi)
        if lo is None or hi is None:
            return True
        image = Zone(zone.nulls, 0, present=True, lo=lo, hi=hi)
        return may_hold(self.op if truth else OPPOSITE[self.op], image, self.value)

    def cells(self):
        yield self.leaf.type, self.label


@dataclass(frozen=True)
class Opaque(Predicate):
    """SQL that bounds do not decide: casts, functions, a column against a column."""

    text: str
    type: str
    label: str

    def sql(self) -> str:
        return f"({self.text})"

    def may_be(self, truth, zones):
        return True

    def cells(self):
        yield self.type, self.label


@dataclass(frozen=True)
class _Pair(Predicate):
    left: Predicate
    right: Predicate

    word: ClassVar[str]
    needs_both: ClassVar[bool]

    def sql(self) -> str:
        return f"({self.left.sql()} {self.word} {self.right.sql()})"

    def may_be(self, truth, zones):
        sides = (self.left.may_be(truth, zones), self.right.may_be(truth, zones))
        return all(sides) if truth == self.needs_both else any(sides)

    def cells(self):
        yield from self.left.cells()
        yield from self.right.cells()

    def parts(self):
        return (self.left, self.right)


class And(_Pair):
    """Both."""

    word, needs_both = "AND", True


class Or(_Pair):
    """Either."""

    word, needs_both = "OR", False


@dataclass(frozen=True)
class Not(Predicate):
    """Negation: of what is unknown it is unknown."""

    inner: Predicate

    def sql(self) -> str:
        return f"(NOT {self.inner.sql()})"

    def may_be(self, truth, zones):
        return self.inner.may_be(not truth, zones)

    def cells(self):
        yield from self.inner.cells()

    def parts(self):
        return (self.inner,)
