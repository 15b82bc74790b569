"""Lists of parts, of which some may be missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def require_all(parts: Sequence[T | None]) -> list[T] | None:
    """Return all parts, or None if one is missing."""
    present = [part for part in parts if part is not None]
    if len(present) < len(parts):
        return None
    return present
