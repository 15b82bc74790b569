"""What is known of a table that nobody analyzed by hand."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import metastore

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 60.0
NUMBERS = itertools.count()
"""Of tables, each with a name of its own."""


def is_analyzed(spark, name: str) -> bool:
    return all(row["analyzed"] for row in metastore.files(spark, name))


def has_values(spark, name: str) -> bool:
    """Whether more than footers is known of all data files."""
    return is_analyzed(spark, name) and all(row["distinct"] is not None for row in metastore.columns(spark, name, "id"))


def becomes(found: Callable[..., bool], spark, name: str) -> bool:
    until = time.monotonic() + PATIENCE
    while not found(spark, name) and time.monotonic() < until:
        time.sleep(0.1)
    return found(spark, name)
