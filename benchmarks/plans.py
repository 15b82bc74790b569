"""The optimizer's decisions on the joins of a query that ran: order, kinds, expected and real rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metastore import jvm_session
from metastore.demo.executed_plan import node_class, read_scan_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

KINDS = {
    "BroadcastHashJoinExec": "broadcast",
    "BroadcastNestedLoopJoinExec": "nested loops, broadcast",
    "ShuffledHashJoinExec": "shuffled hash",
    "SortMergeJoinExec": "sort merge",
    "CartesianProductExec": "cartesian product",
}
COUNTED = ("shuffleRecordsWritten", "numOutputRows")  # in this order: a shuffle reads less where a join ends early
BUILT = ("broadcast", "nested loops, broadcast", "shuffled hash")
Tables = tuple[str, ...]
Opened = Callable[[Any], Any]


@dataclass
class Rows:
    """Rows that go into a join or come out of it: of which tables, and how many."""

    tables: Tables
    bytes: int
    expected: int | None
    came: int | None = None

    def estimate(self) -> str:
        """The optimizer's estimate of its rows."""
        return size(self.bytes) + ("" if self.expected is None else f" and {self.expected:,} rows")


@dataclass
class Node:
    """A node of a plan with what it gives; `kind` only of joins."""

    kind: str
    rows: Rows
    inputs: list[Node]
    queries: list[Node]

    def joins(self) -> Iterator[Join]:
        """All joins, each before those that it takes rows of, and those of sub-queries."""
        if self.kind:
            yield Join(self.kind, (self.inputs[0].rows, self.inputs[1].rows), self.rows)
        for below in self.inputs + self.queries:
            yield from below.joins()


@dataclass
class Join:
    """A join as it was planned, before any stage ran, and the rows that it gave."""

    kind: str
    sides: tuple[Rows, Rows]
    result: Rows

    def key(self) -> frozenset[Tables]:
        """The two joined sides, whichever stands on the left."""
        return frozenset(tuple(sorted(side.tables)) for side in self.sides)

    def sides_as(self, other: Join) -> tuple[Rows, Rows]:
        """The sides in the order of another join of the same ones."""
        left, right = self.sides
        is_turned = sorted(left.tables) != sorted(other.sides[0].tables)
        return (right, left) if is_turned else (left, right)

    def __str__(self) -> str:
        """The joined tables, and the kind of the join."""
        return " x ".join(_named(side.tables) for side in self.sides) + f": {self.kind}"


@dataclass
class Plan:
    """All joins of a query, in the order of the plan."""

    joins: list[Join] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def rows_joined(self) -> int:
        """Rows that all joins gave: the work that the order of joins decides on."""
        return sum(join.result.came or 0 for join in self.joins)


def of(frame: DataFrame) -> Plan:
    """The plan of a query that ran."""
    root = jvm_session.get_executed_plan(frame)
    planned = _read(root, _planned)
    plan = Plan(list(planned.joins()), list(planned.rows.tables))
    counts: dict[frozenset[Tables], list[Join]] = {}
    for join in _read(root, _ran).joins():
        counts.setdefault(join.key(), []).append(join)
    for join in plan.joins:
        ran = counts.get(join.key())
        if ran:
            _take_counts(join, ran.pop(0))
    return plan


def changes(off: Plan, on: Plan) -> list[dict[str, Any]]:
    """How a plan differs from the one of the same query without the Metastore, each with its reason."""
    joins = []
    new = _unmatched(on, off)
    if off.order != on.order or len(new) != len(_unmatched(off, on)):
        joins.append(_order_change(off, on, new))
    before: dict[frozenset[Tables], list[Join]] = {}
    for join in off.joins:
        before.setdefault(join.key(), []).append(join)
    for join in on.joins:
        if before.get(join.key()):
            old = before[join.key()].pop(0)
            if _broadcast(old) != _broadcast(join):
                joins.append({"change": "kind", "off": str(old), "on": str(join), "reason": _because(old, join)})
        else:
            joins.append({"change": "new join", "on": str(join), "reason": _because(None, join)})
    return joins


def size(number: float) -> str:
    """Bytes as people read them."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} PB"


def _order_change(off: Plan, on: Plan, new: list[Join]) -> dict[str, Any]:
    facts = [
        f"{_named(join.result.tables)}: expected {join.result.estimate()}, {_came(join.result)}" for join in new
    ] or ["the same joins, of sides in another order"]
    rows = f"rows that joins give: {off.rows_joined():,} off, {on.rows_joined():,} on"
    return {"change": "order", "off": off.order, "on": on.order, "reason": "; ".join([*facts, rows])}


def _unmatched(plan: Plan, other: Plan) -> list[Join]:
    other_joins = Counter(join.key() for join in other.joins)
    differences = []
    for join in plan.joins:
        other_joins[join.key()] -= 1
        if other_joins[join.key()] < 0:
            differences.append(join)
    return differences


def _because(old: Join | None, new: Join) -> str:
    before = [f"{side.estimate()} off, " for side in old.sides_as(new)] if old else ["", ""]
    return "; ".join(
        f"{_named(side.tables)}: {was}{side.estimate()} on, {_came(side)}"
        for was, side in zip(before, new.sides, strict=True)
    )


def _broadcast(join: Join) -> tuple[str, Tables | None]:
    """The kind of a join, with the tables of the built side instead of its place."""
    name, _, side = join.kind.rpartition(" ")
    return (name, tuple(sorted(join.sides[side == "right"].tables))) if side in ("left", "right") else (join.kind, None)


def _came(rows: Rows) -> str:
    return "not counted" if rows.came is None else f"{rows.came:,} came"


def _named(tables: Tables) -> str:
    names = ", ".join(name if times == 1 else f"{times} {name}" for name, times in Counter(tables).items())
    return f"({names})" if len(tables) > 1 else names


def _take_counts(join: Join, ran: Join) -> None:
    join.result.came = ran.result.came
    for side, same in zip(join.sides, ran.sides_as(join), strict=True):
        side.came = same.came


def _planned(node: Any) -> Any:
    """The plan before any stage ran."""
    return node.initialPlan() if node_class(node) == "AdaptiveSparkPlanExec" else None


def _ran(node: Any) -> Any:
    """The plan as adaptive execution made it."""
    if node_class(node) == "AdaptiveSparkPlanExec":
        return node.executedPlan()
    if node_class(node).endswith("QueryStageExec"):
        return node.plan()
    return node.child() if node_class(node) == "ReusedExchangeExec" else None


def _below(node: Any, opened: Opened) -> list[Any]:
    inner = opened(node)
    return _all(node.children()) if inner is None else [inner]


def _read(node: Any, opened: Opened) -> Node:
    """Read a node of the JVM's plan and all below it, each once."""
    name, inner = node_class(node), opened(node)
    inputs = [_read(child, opened) for child in (_all(node.children()) if inner is None else [inner])]
    queries = (
        [query for query in _all(node.subqueries()) if node_class(query) == "SubqueryExec"] if inner is None else []
    )
    built = f" {str(node.buildSide()).removeprefix('Build').lower()}" if KINDS.get(name) in BUILT else ""
    tables = tuple(table for input_node in inputs for table in input_node.rows.tables) or (_table(node),)
    rows = Rows(tables, *_expected(node, inputs), _count(read_scan_metrics(node), inputs))
    return Node(KINDS.get(name, "") + built, rows, inputs, [_read(query, opened) for query in queries])


def _table(leaf: Any) -> str:
    """The table that is read, of a node that reads none its own name."""
    return str(leaf.table().name()).rpartition(".")[2] if node_class(leaf) == "BatchScanExec" else str(leaf.nodeName())


def _expected(node: Any, inputs: list[Node]) -> tuple[int, int | None]:
    link = node.logicalLink()
    if not link.isDefined():  # an exchange
        return (inputs[0].rows.bytes, inputs[0].rows.expected) if inputs else (0, None)
    expected = link.get().stats()
    rows = expected.rowCount()
    return int(str(expected.sizeInBytes())), int(str(rows.get())) if rows.isDefined() else None


def _count(row_counts: dict[str, int], inputs: list[Node]) -> int | None:
    """Rows that a node gave: by its own counter, or by those of its inputs where it gives all that it takes."""
    counter = next((name for name in COUNTED if name in row_counts), None)
    if counter:
        return row_counts[counter]
    counts = [input_node.rows.came for input_node in inputs if input_node.rows.came is not None]
    return sum(counts) if inputs and len(counts) == len(inputs) else None


def _all(seq: Any) -> list[Any]:
    return [seq.apply(index) for index in range(seq.size())]
