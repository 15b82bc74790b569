"""Conditions in negation normal form: NOT is gone, because it was pushed into the leaves when a filter was parsed."""

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
    """The value of a column is in a set, which may take more values than the condition is true of."""

    column: Column
    values: ValueSet


@dataclass(frozen=True)
class Related:
    """One column against another one of the same row.

    Attributes:
        relation: `<`, `<=`, `=`, `<>` or `<=>`.
    """

    left: Column
    relation: str
    right: Column


@dataclass(frozen=True)
class Unknown:
    """Nothing can be said.

    Attributes:
        reason: Its name in `contract/reasons.json`.
        subject: The expression, or the column, that the reason's sentence is about.
    """

    reason: str
    subject: str


@dataclass(frozen=True)
class AllOf:
    """All parts hold; without any, of every row."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class AnyOf:
    """A part holds; without any, of no row."""

    parts: tuple[Condition, ...] = ()


Condition = Member | Related | Unknown | AllOf | AnyOf

ALWAYS, NEVER = AllOf(), AnyOf()


def all_of(conditions: Iterable[Condition]) -> Condition:
    """Conditions that hold together: those on one column are one."""
    parts = [part for one in conditions for part in (one.parts if isinstance(one, AllOf) else (one,))]
    return _joined(AllOf, parts, and_)


def any_of(conditions: Iterable[Condition]) -> Condition:
    """Conditions of which one holds: those on one column are one."""
    parts = [part for one in conditions for part in (one.parts if isinstance(one, AnyOf) else (one,))]
    return _joined(AnyOf, parts, or_)


def iterate_leaves(condition: Condition) -> Iterator[Member | Related | Unknown]:
    """What AND and OR join."""
    if isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from iterate_leaves(part)
    else:
        yield condition


def list_columns(condition: Condition) -> tuple[Column, ...]:
    """The columns of which it asks something, each once."""
    found: list[Column] = []
    for leaf in iterate_leaves(condition):
        if isinstance(leaf, Member):
            found.append(leaf.column)
        elif isinstance(leaf, Related):
            found += [leaf.left, leaf.right]
    return tuple(dict.fromkeys(found))


def _joined(
    kind: type[AllOf | AnyOf], parts: list[Condition], join: Callable[[ValueSet, ValueSet], ValueSet]
) -> Condition:
    sets: dict[Column, list[ValueSet]] = {}
    for part in parts:
        if isinstance(part, Member):
            sets.setdefault(part.column, []).append(part.values)
    members = [Member(column, join_sets(found, join)) for column, found in sets.items()]
    found = (*members, *(part for part in parts if not isinstance(part, Member)))
    return found[0] if len(found) == 1 else kind(found)
