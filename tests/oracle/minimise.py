"""Makes a wrongly skipped file into a case: the smallest part of the predicate, the columns that it names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from oracle.literals import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from oracle.columns import Leaf
    from oracle.predicates import Predicate
    from oracle.report import Wrong


def smallest(predicate: Predicate, fails: Callable[[Predicate], bool]) -> Predicate:
    """Returns a smallest part of a failing predicate that still fails."""
    for part in predicate.parts():
        if fails(part):
            return smallest(part, fails)
    return predicate


def case_of(wrong: Wrong) -> str:
    """Returns a case for `tests/cases/tables`, with one file; fields of structs become columns of their own."""
    text = wrong.predicate.sql()
    used = [leaf for leaf in wrong.subject.leaves if leaf.sql in text]
    names = {leaf: f"c{i}" for i, leaf in enumerate(used)}
    for leaf in sorted(used, key=lambda leaf: -len(leaf.sql)):
        text = text.replace(leaf.sql, names[leaf])
    values = wrong.subject.values[wrong.file]
    case = {
        "name": f"found by the oracle: {text}"[:120],
        "seen": [wrong.source],
        "conf": dict(wrong.conf),
        "columns": ", ".join(f"{names[leaf]} {leaf.type}" for leaf in used),
        "steps": [[_row(used, values, i) for i in range(len(values[used[0]]))]],
        "predicates": [{"where": text, "read": [0], "skip": []}],
    }
    return json.dumps(case, indent=2, ensure_ascii=False)


def _row(leaves: list[Leaf], values: dict[Leaf, list[Any]], position: int) -> str:
    return ", ".join(literal(leaf.type, values[leaf][position]) for leaf in leaves)
