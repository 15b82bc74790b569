"""Objects of a manifest together with the columns that they hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.format.documents import BRIEF, FLAT
from metastore.format.objects import ObjectRef  # noqa: TC001 - types of fields are bound

_MOST_PARTS = 1 << 31


@dataclass(frozen=True)
class SummaryRef:
    """An object and the columns that it holds.

    Attributes:
        object: The object.
        columns: Their ordinals, of its block or snapshot.
        part: Of lists that are cut by their values' hashes, which part this is, from 0, and of how many.
    """

    object: ObjectRef = field(metadata=FLAT)
    columns: tuple[int, ...]
    part: tuple[int, int] | None = field(default=None, metadata=BRIEF)

    def check(self) -> None:
        """Refuses a part of nothing."""
        if self.part is not None and not 0 <= self.part[0] < self.part[1] < _MOST_PARTS:
            raise TypeError(f"a part {self.part}")


@dataclass(frozen=True)
class RanksRef:
    """A part of the ranks of some columns.

    Attributes:
        object: The object.
        columns: The columns of the snapshot that it holds, ascending.
        before_first: For each of them, how many of its values come before this part.
    """

    object: ObjectRef = field(metadata=FLAT)
    columns: tuple[int, ...]
    before_first: tuple[int, ...] = field(metadata={"name": "before"})

    def before(self, column: int) -> int:
        """How many values of a column come before this part."""
        return self.before_first[self.columns.index(column)]

    def check(self) -> None:
        """Refuses other columns than counts."""
        if len(self.columns) != len(self.before_first) or any(count < 0 for count in self.before_first):
            raise TypeError("ranks that no writer of this format makes")
