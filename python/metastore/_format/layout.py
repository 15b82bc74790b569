"""How many columns share an object and a row group: who wants a few columns shall read few bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

MANY_FILES = 1_000


def columns_per_object(files: int) -> int:
    """How many columns one summary object of a block of that many data files holds at most."""
    return 16 if files > MANY_FILES else 64


def columns_per_row_group(files: int) -> int:
    """How many columns one row group of a summary object of a block of that many data files holds at most."""
    return 1 if files > MANY_FILES else 16


def row_groups(columns: Iterable[int], per_group: int) -> list[int]:
    """Row counts of the row groups of a table ordered by column, with so many columns a group.

    Args:
        columns: The table's `column` values, ascending.
        per_group: Columns a row group.

    Example:
        >>> row_groups([0, 0, 1, 4, 4], 2)
        [3, 2]
    """
    counts = np.unique(np.asarray(columns), return_counts=True)[1]
    return [int(counts[i : i + per_group].sum()) for i in range(0, len(counts), per_group)]
