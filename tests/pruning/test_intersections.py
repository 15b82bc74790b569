"""Conditions on one column together exclude more than each alone: by brute force over small files of every kind."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from metastore.jvm_session import find_shim_package

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.spark
NAN = math.nan


@dataclass(frozen=True)
class Atom:
    """A condition on `v`: its text, and for a value that is not NULL whether it is true."""

    text: str
    true: Callable[[Any], bool]
    decided_by_bounds: bool = True
    of_null: bool = False


@dataclass(frozen=True)
class Kind:
    """A type with values that rows may hold; `between` lies among them, so that open intervals are not empty."""

    type: str
    values: tuple[Any, ...]
    between: tuple[Any, ...]
    literal: Callable[[Any], str]


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def key(value: Any) -> tuple[bool, Any]:
    """Spark's order: NaN is the largest."""
    return (True, 0) if is_nan(value) else (False, value)


KINDS = [
    Kind("int", (0, 1, 2, 3, 4), (), str),
    Kind("double", (0.0, 1.0, 2.0, 3.0, NAN), (0.5, 1.5, 2.5), lambda v: "double('NaN')" if is_nan(v) else f"{v}D"),
    Kind("string", ("b", "bb", "c", "d"), ("ba", "bc", "cc"), lambda v: f"'{v}'"),
    Kind("decimal(25,2)", (0, 1, 2, 3), (0.5, 1.5, 2.5), lambda v: f"{v}BD"),
]


def atoms(kind: Kind) -> list[Atom]:
    def compared(op: str, value: Any, true: Callable[[Any, Any], bool]) -> Atom:
        return Atom(f"v {op} {kind.literal(value)}", lambda v: true(key(v), key(value)), op != "<>")

    conditions = [
        compared(op, value, true)
        for value in kind.values
        for op, true in {
            "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b,
            ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b,
            "=": lambda a, b: a == b,
        }.items()
    ]
    conditions.append(compared("<>", kind.values[1], lambda a, b: a != b))
    for chosen in ((0, 2), (1, 3)):
        members = [kind.values[i] for i in chosen]
        text = f"v IN ({', '.join(map(kind.literal, members))})"
        conditions.append(Atom(text, lambda v, members=members: any(key(v) == key(m) for m in members)))
    conditions += [Atom("v IS NULL", lambda _: False, of_null=True), Atom("v IS NOT NULL", lambda _: True)]
    if kind.type == "double":
        conditions += [
            Atom("isnan(v)", is_nan),
            Atom("NOT isnan(v)", lambda v: not is_nan(v), of_null=True),
        ]
    return conditions


def zone(rows: tuple[Any, ...], kind: Kind) -> dict[str, Any]:
    """Return the zone of a file with these rows."""
    numbers = [row for row in rows if row is not None and not is_nan(row)]
    column = {"nulls": rows.count(None), "nans": sum(map(is_nan, rows))}
    if numbers:
        column |= {"lo": kind.literal(min(numbers)), "hi": kind.literal(max(numbers))}
    return {"rows": len(rows), "columns": {"v": column}}


def possible(rows: tuple[Any, ...], kind: Kind) -> list[Any]:
    """Every value that a file with the same statistics may hold."""
    numbers = [row for row in rows if row is not None and not is_nan(row)]
    grid = [v for v in (*kind.values, *kind.between) if numbers and min(numbers) <= v <= max(numbers)]
    return [*grid, *({None} & set(rows)), *filter(is_nan, rows)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
def test_pairs_of_conditions(spark, kind):
    files = [rows for n in (1, 2, 3) for rows in itertools.combinations((*kind.values, None), n)]
    zones = [zone(rows, kind) for rows in files]
    probe = find_shim_package(spark).pruning.PruningProbe.ofZones(
        spark._jsparkSession, f"v {kind.type}", json.dumps(zones)
    )
    pairs = list(itertools.combinations(atoms(kind), 2))[::3]
    filters = spark.sparkContext._gateway.new_array(spark._jvm.java.lang.String, len(pairs))
    for i, (a, b) in enumerate(pairs):
        filters[i] = f"{a.text} AND {b.text}"
    lost, weak = [], []
    for (a, b), kept_bits in zip(pairs, probe.keptByAll(filters), strict=True):

        def matches(value: Any, a: Atom = a, b: Atom = b) -> bool:
            return (a.of_null and b.of_null) if value is None else a.true(value) and b.true(value)

        for rows, verdict in zip(files, kept_bits, strict=True):
            if verdict == "0" and any(map(matches, rows)):
                lost.append((a.text, b.text, rows))
            provable = a.decided_by_bounds and b.decided_by_bounds and not any(map(matches, possible(rows, kind)))
            if verdict == "1" and provable:
                weak.append((a.text, b.text, rows))
    assert lost == []
    assert weak == []


def test_a_nan_does_not_keep_an_interval(spark):
    zones = [{"rows": 3, "columns": {"v": {"nulls": 0, "nans": 1, "lo": "1D", "hi": "5D"}}}]
    probe = find_shim_package(spark).pruning.PruningProbe.ofZones(
        spark._jsparkSession, "v double, w double", json.dumps(zones)
    )
    assert probe.kept("v >= 10 AND v <= 20") == "0"
    assert probe.kept("v BETWEEN 10 AND 20") == "0"
    assert probe.kept("v >= 10 AND w <= 20") == "1"
    assert probe.kept("(v >= 10 AND v <= 20) OR (v > 30 AND v < 40)") == "0"
    assert probe.kept("(v >= 10 AND v <= 20) OR v > 30") == "1"
    explained = json.loads(probe.explain("v >= 10 AND v <= 20"))["files"][0]
    assert ">= 10" in explained["sentence"]
    assert "<= 20" in explained["sentence"]
