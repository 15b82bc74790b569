"""How long the queries of `tpc.py` are planned, for the first time in a driver, for the second and for the tenth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from common import median, planning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = (1, 2, 10)
"""The rounds that the results have; each round plans all queries once."""


def measure(queries: dict[str, str], sessions: dict[str, SparkSession]) -> list[dict[str, Any]]:
    """Plans all queries in ten rounds and returns a row a query with the milliseconds of its plans."""
    rows: dict[str, dict[str, Any]] = {number: {"query": number} for number in queries}
    for turn in range(1, max(SHOWN) + 1):
        for position, (number, query) in enumerate(queries.items()):
            for name in _order(list(sessions), position + turn):
                milliseconds = _plan(sessions[name], query)
                if turn in SHOWN:
                    rows[number][f"plan {turn} {name} ms"] = milliseconds
        sys.stderr.write(f"round {turn} of {max(SHOWN)}\n")
    return list(rows.values())


def compare(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the sums and medians of each round, and what each side adds to "off" or saves."""
    facts: dict[str, Any] = {}
    for turn in SHOWN:
        names = [key.split()[2] for key in rows[0] if key.startswith(f"plan {turn} ")]
        sums = {name: sum(row[f"plan {turn} {name} ms"] for row in rows) for name in names}
        for name in names:
            differences = [row[f"plan {turn} {name} ms"] - row[f"plan {turn} off ms"] for row in rows]
            facts[f"plan {turn} {name}"] = {
                "sum ms": sums[name],
                "of off": round(sums[name] / sums["off"], 3),
                "median of differences ms": median(differences),
            }
    return facts


def _order(names: list[str], turn: int) -> list[str]:
    """Lets each side be first equally often: who plans a query first loads classes and metadata for the others."""
    first = turn % len(names)
    return names[first:] + names[:first]


def _plan(session: SparkSession, query: str) -> int:
    frame = session.sql(query)
    frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - it has no public name
    return planning(frame)
