"""Damage that is told of a block: which one has an object that is not what was written."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Iterator


class BlockDamageError(Exception):
    """A block with an object that is not what was written.

    Attributes:
        block: Its id.
        reason: What is wrong.
    """

    def __init__(self, block: str, reason: str) -> None:
        super().__init__(block, reason)
        self.block = block
        self.reason = reason


@contextmanager
def attribute_damage(block: str) -> Iterator[None]:
    """Says of which block a damaged object is."""
    try:
        yield
    except DamagedObject as damage:
        raise BlockDamageError(block, str(damage)) from damage
