"""Objects of a manifest together with the columns that they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metastore.format.objects import ObjectRef

_OF_HOW_MANY = 2  # numbers: which part, and the number of parts
_MOST, _MOST_PARTS = 1 << 63, 1 << 31


def optional_list(value: Any, name: str) -> list[Any]:
    """A list that a document may lack, or have as null."""
    found: list[Any] = [] if value.get(name) is None else require_type(value[name], list)
    return found


def require_type(value: Any, *kinds: type) -> Any:
    """A JSON value that is of one of some types exactly: a boolean is no integer, nor is what 64 bits do not hold."""
    if type(value) not in kinds or (type(value) is int and not -_MOST <= value < _MOST):
        raise TypeError(f"{value!r:.80} is no {kinds[0].__name__}")
    return value


def optional_mapping(value: Any, name: str) -> dict[str, Any]:
    """An object that a document may lack, or have as null."""
    found: dict[str, Any] = {} if value.get(name) is None else require_type(value[name], dict)
    return found


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
    def from_json(cls, value: Any, kind: str) -> SummaryRef:
        """The reference of a manifest to an object of a kind."""
        part = (
            None
            if value.get("part") is None
            else tuple(require_type(i, int) for i in require_type(value["part"], list))
        )
        if part is not None and not (len(part) == _OF_HOW_MANY and 0 <= part[0] < part[1] < _MOST_PARTS):
            raise TypeError(f"a part {part}")
        columns = require_type(value["columns"], list)
        return cls(ObjectRef.from_json(value, kind), tuple(require_type(i, int) for i in columns), part)


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
        """The reference of a manifest."""
        lists = (require_type(value[name], list) for name in ("columns", "before"))
        columns, before = (tuple(require_type(i, int) for i in one) for one in lists)
        if len(columns) != len(before) or any(count < 0 for count in before):
            raise TypeError("ranks that no writer of this format makes")
        return cls(ObjectRef.from_json(value, "table-ranks"), columns, before)
