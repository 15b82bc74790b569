"""Conditions in negation normal form: the parser of filters pushes NOT into the leaves."""

from __future__ import annotations

from dataclasses import dataclass
from operator import and_, or_
from typing import TYPE_CHECKING

from metastore.pruning.value_sets import ValueSet, join_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from metastore.format.table_column import Column


@dataclass(frozen=True)
class Member:
    """A column's value is in a set. The set may have more values than those for which the filter is true."""

    column: Column
    values: ValueSet


@dataclass(frozen=True)
class Related:
    """A comparison of two columns in the same row.

    Attributes:
        relation: `<`, `<=`, `=`, `<>` or `<=>`.
    """

    left: Column
    relation: str
    right: Column


@dataclass(frozen=True)
class Unknown:
    """An expression that statistics cannot decide.

    Attributes:
        reason: Its name in `contract/reasons.json`.
        subject: The expression, or the column, that the reason's sentence is about.
    """

    reason: str
    subject: str


class NoRuleError(Exception):
    """An expression of a filter has no rule.

    Attributes:
        reason: The reason, or None if it is explained by the expression alone.
    """

    def __init__(self, reason: Unknown | None = None) -> None:
        super().__init__(reason)
        self.reason = reason


def require_rule(*, applies: bool) -> None:
    """Raise an error unless a rule applies.

    Raises:
        NoRuleError: It does not apply.
    """
    if not applies:
        raise NoRuleError


@dataclass(frozen=True)
class AllOf:
    """True if all parts are true; without parts it is true for every row."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class AnyOf:
    """True if any part is true; without parts it is true for no row."""

    parts: tuple[Condition, ...] = ()


Condition = Member | Related | Unknown | AllOf | AnyOf

ALWAYS = AllOf()
NEVER = AnyOf()


@dataclass(frozen=True)
class Conjunct:
    """A part of a filter, whose parts are joined by AND.

    Attributes:
        text: Its SQL.
        condition: The condition that statistics decide.
    """

    text: str
    condition: Condition


def all_of(conditions: Iterable[Condition]) -> Condition:
    """AND of conditions; conditions on the same column become one value set."""
    return _join(AllOf, conditions, and_)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """OR of conditions; conditions on the same column become one value set."""
    return _join(AnyOf, conditions, or_)


def iterate_leaves(condition: Condition) -> Iterator[Member | Related | Unknown]:
    """Iterate over the conditions that AND and OR join."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from iterate_leaves(part)
    else:
        yield condition


def list_columns(condition: Condition) -> tuple[Column, ...]:
    """Return the columns of a condition, each once."""
    columns: list[Column] = []
    for leaf in iterate_leaves(condition):
        if isinstance(leaf, Member):
            columns.append(leaf.column)
        elif isinstance(leaf, Related):
            columns += [leaf.left, leaf.right]
    return tuple(dict.fromkeys(columns))


def _join(
    kind: type[AllOf | AnyOf], conditions: Iterable[Condition], join: Callable[[ValueSet, ValueSet], ValueSet]
) -> Condition:
    """Join conditions to one: nested conditions of the same kind are flattened, and value sets of a column joined."""
    sets: dict[Column, list[ValueSet]] = {}
    other_parts: list[Condition] = []
    for part in _flatten(kind, conditions):
        if isinstance(part, Member):
            sets.setdefault(part.column, []).append(part.values)
        else:
            other_parts.append(part)
    members = [Member(column, join_sets(values, join)) for column, values in sets.items()]
    parts = (*members, *other_parts)
    if len(parts) == 1:
        return parts[0]
    return kind(parts)


def _flatten(kind: type[AllOf | AnyOf], conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        if isinstance(condition, kind):
            yield from condition.parts
        else:
            yield condition
