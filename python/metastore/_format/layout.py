"""How many columns share an object and a row group: who wants a few columns shall read few bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

MANY_FILES = 1_000
ZONED_FILES = 100_000
"""Blocks of more data files have zones, unless a writer is told otherwise."""
ZONE_FILES = 1_024
"""So many consecutive data files make a zone."""
ZONED_COLUMNS = 16
"""So many columns share an object of zones."""

_MOST_PAGES = 100  # of a column: with their digests, a footer of four columns stays below 64 kB


def columns_per_object(files: int, zoned: int = ZONED_FILES) -> int:
    """How many columns one summary object of a block holds at most."""
    if files > zoned:
        return 4
    return 16 if files > MANY_FILES else 64


def columns_per_row_group(files: int, zoned: int = ZONED_FILES) -> int:
    """How many columns one row group of a summary object of a block holds at most."""
    return 1 if files > min(zoned, MANY_FILES) else 16


def page_rows(files: int, zoned: int = ZONED_FILES) -> int:
    """How many rows a page of a summary of a block has: whole zones; 0 where pages are left to Parquet."""
    if files <= zoned:
        return 0
    return ZONE_FILES * -(-files // (_MOST_PAGES * ZONE_FILES))


def size_row_groups(columns: Iterable[int], per_group: int) -> list[int]:
    """Row counts of the row groups of a table ordered by column, with so many columns a group."""
    counts = np.unique(np.asarray(columns), return_counts=True)[1]
    return [int(counts[i : i + per_group].sum()) for i in range(0, len(counts), per_group)]
