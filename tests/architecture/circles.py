"""Finds files that need each other, directly or through others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def find_circles(uses: Mapping[str, set[str]]) -> list[set[str]]:
    """Find the sets of files that need each other."""
    needed = {name: list_needed(name, uses) for name in uses}
    circles = []
    for name in sorted(uses):
        circle = {other for other in needed[name] if name in needed[other]}
        if circle and circle not in circles:
            circles.append(circle)
    return circles


def list_needed(start: str, uses: Mapping[str, set[str]]) -> set[str]:
    """List the files that a file needs, directly or through others."""
    needed = set()
    waiting = [start]
    while waiting:
        for name in uses[waiting.pop()] - needed:
            needed.add(name)
            waiting.append(name)
    return needed
