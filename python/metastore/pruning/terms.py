"""A column or a function of one, as the operand of a condition.

The shim computes the results of a function for bounds. Here a set of results becomes the set of the column's values
with these results, so that the column's bounds, value lists and filters answer conditions on the function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from metastore.format.table_column import Column, encoding_of
from metastore.pruning.conditions import Condition, Member, all_of

if TYPE_CHECKING:
    from metastore.pruning.preimages import Preimage
    from metastore.pruning.value_sets import ValueSet


@dataclass(frozen=True)
class Source:
    """A column whose statistics bound a term.

    Attributes:
        column: The column, or an expression that has statistics.
        steps: Preimages of the functions that are applied to the column, in their order.
    """

    column: Column
    steps: tuple[Preimage, ...] = ()

    def where(self, results: ValueSet) -> Member:
        """Return the condition that the result is in a set."""
        for step in reversed(self.steps):
            results = step(results)
        return Member(self.column, results)


@dataclass(frozen=True)
class Term:
    """A column, or a function of one that is null exactly where the column is null.

    Attributes:
        result: A column of the result's type, for the literals that it is compared with.
        sources: Columns with statistics; each alone bounds the term.
    """

    result: Column
    sources: tuple[Source, ...]

    @classmethod
    def of(cls, column: Column) -> Term:
        """Return the term that is a column."""
        return cls(column, (Source(column),))

    @property
    def type(self) -> str:
        """The type of the term's values."""
        return self.result.type

    @property
    def column(self) -> Column | None:
        """The column that the term is; None for a function."""
        if Source(self.result) in self.sources:
            return self.result
        return None

    def where(self, results: ValueSet) -> Condition:
        """Return the condition that the term's value is in a set."""
        return all_of(source.where(results) for source in self.sources)

    def where_null(self, values: ValueSet) -> Condition:
        """Return the condition that the column is null, or that it is not null, as the set says."""
        return all_of(Member(source.column, values) for source in self.sources)

    def to(self, result_type: str, *steps: Preimage) -> Term:
        """Return a function of the term."""
        result = replace(self.result, type=result_type, encoding=encoding_of(result_type), collation=None)
        sources = [Source(source.column, (*source.steps, *steps)) for source in self.sources]
        return Term(result, tuple(sources))
