"""Objects of a manifest together with the columns that they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metastore._format.objects import ObjectRef

_OF_HOW_MANY = 2  # numbers: which part, and the number of parts


def of_type(value: Any, *kinds: type) -> Any:
    """A JSON value that is of one of some types exactly: a boolean is no integer.

    Raises:
        TypeError: It is of none of them.

    Example:
        >>> of_type(3, int)
        3
    """
    if type(value) not in kinds:
        raise TypeError(f"{value!r:.80} is no {kinds[0].__name__}")
    return value


@dataclass(frozen=True)
class SummaryRef:
    """An object and the columns that it holds.

    Attributes:
        object: The object.
        columns: Their ordinals, of its block or snapshot.
        part: Of lists that are cut by their values' hashes, which part this is, from 0, and of how many.
    """

    object: ObjectRef
    columns: tuple[int, ...]
    part: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """The reference as it stands in a manifest."""
        part = {} if self.part is None else {"part": list(self.part)}
        return {**self.object.to_json(), "columns": list(self.columns), **part}

    @classmethod
    def from_json(cls, value: Any) -> SummaryRef:
        """The reference of a manifest.

        Raises:
            DamagedObject, TypeError, KeyError: If a field is missing or of another type.
        """
        part = None if value.get("part") is None else tuple(of_type(i, int) for i in value["part"])
        if part is not None and not (len(part) == _OF_HOW_MANY and 0 <= part[0] < part[1]):
            raise TypeError(f"a part {part}")
        return cls(ObjectRef.from_json(value), tuple(of_type(i, int) for i in value["columns"]), part)


@dataclass(frozen=True)
class RanksRef:
    """A part of the ranks of some columns.

    Attributes:
        object: The object.
        columns: The columns of the snapshot that it holds, ascending.
        before_first: For each of them, how many of its values come before this part.
    """

    object: ObjectRef
    columns: tuple[int, ...]
    before_first: tuple[int, ...]

    def before(self, column: int) -> int:
        """How many values of a column come before this part."""
        return self.before_first[self.columns.index(column)]

    def to_json(self) -> dict[str, Any]:
        """The reference as it stands in a manifest."""
        return {**self.object.to_json(), "columns": list(self.columns), "before": list(self.before_first)}

    @classmethod
    def from_json(cls, value: Any) -> RanksRef:
        """The reference of a manifest.

        Raises:
            DamagedObject, TypeError, KeyError: If a field is missing, of another type, or not one a column.
        """
        columns, before = (tuple(of_type(i, int) for i in value[name]) for name in ("columns", "before"))
        if len(columns) != len(before):
            raise TypeError("ranks that no writer of this format makes")
        return cls(ObjectRef.from_json(value), columns, before)
