"""The zone of a data file in tests/cases/pruning.json as facts for the rules in Python."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlglot
from sqlglot import exp

from metastore.format.table_column import EXPRESSION, Column, encoding_of
from metastore.format.time_zones import parse_time_zone
from metastore.pruning import filters
from metastore.pruning.exclusion import ColumnFacts, exclude_by_values
from metastore.pruning.expressions import index_expressions
from metastore.pruning.filter_text import parse_condition
from metastore.pruning.literal_cuts import read_literals
from metastore.pruning.sql_literals import read_literal

if TYPE_CHECKING:
    from collections.abc import Iterator


def columns_of(schema: str) -> list[Column]:
    """The leaves of a schema in Spark's DDL."""
    table = sqlglot.parse_one(f"CREATE TABLE t ({schema})", dialect="spark")
    return [leaf for column in table.this.expressions for leaf in _leaves((column.name,), column)]


def _leaves(path: tuple[str, ...], column: exp.ColumnDef) -> Iterator[Column]:
    kind = column.args["kind"]
    if kind.this == exp.DataType.Type.STRUCT:
        for field in kind.expressions:
            yield from _leaves((*path, field.name), field)
        return
    spelled = kind.sql("spark").lower().replace(", ", ",")
    collation = next(
        (constraint.kind.this.name for constraint in column.find_all(exp.ColumnConstraint) if constraint.kind), None
    )
    if collation is None and " collate " in spelled:
        spelled, _, collation = spelled.partition(" collate ")
    yield Column(
        key=".".join(path),
        path=path,
        type=spelled,
        encoding=encoding_of(spelled),
        collation=collation and collation.upper(),
    )


def is_kept(columns: list[Column], zone: dict[str, Any], filter_: str, time_zone: str) -> bool:
    """Whether bounds, counts and lists of values keep a file with these statistics."""
    expressions = _expressions_of(zone)
    conjuncts = filters.parse_filter(filter_, columns, "t", time_zone, index_expressions(expressions, columns))
    facts, listed = {}, {}
    for column in [*columns, *expressions]:
        said = zone["columns"].get(column.key.removeprefix(EXPRESSION))
        if said is None:
            continue
        facts[column] = _facts(column, zone, said, time_zone)
        if "values" in said:
            listed[column] = _ListedValues(column, said["values"], time_zone)
    file = np.ones(1, bool)
    all_conjuncts = filters.all_of(conjunct.condition for conjunct in conjuncts)
    conditions = [*(conjunct.condition for conjunct in conjuncts), all_conjuncts]
    excluded = [exclude_by_values(condition, facts, listed, file)[0] for condition in conditions]
    return zone["rows"] != 0 and not any(excluded)


def _expressions_of(zone: dict[str, Any]) -> list[Column]:
    """The expressions that have statistics of their own: those with a type."""
    types = {name: said["type"].lower() for name, said in zone["columns"].items() if "type" in said}
    return [
        Column(key=f"{EXPRESSION}{name}", path=(name,), type=kind, encoding=encoding_of(kind))
        for name, kind in types.items()
    ]


class _ListedValues:
    """All values of a column, as a file's list has them."""

    def __init__(self, column: Column, values: list[str], time_zone: str) -> None:
        self._column, self._values, self._time_zone = column, values, time_zone

    def list_values(self, file: int) -> list[Any]:
        return [_key(value, self._column, self._time_zone) for value in self._values]

    def has_filter(self, file: int) -> bool:
        return False

    def may_hold(self, file: int, keys: Any) -> bool:
        raise NotImplementedError


def _facts(column: Column, zone: dict[str, Any], said: dict[str, Any], time_zone: str) -> ColumnFacts:
    rows, nulls, nans = said.get("rows", zone["rows"]), said.get("nulls", -1), said.get("nans", -1)
    lo, hi = (_key(said.get(side), column, time_zone) for side in ("lo", "hi"))
    gone = max(nulls, 0) + max(nans, 0)
    is_consistent = rows == zone["rows"] and gone <= rows and (lo is None or hi is None or lo <= hi)
    is_consistent = is_consistent and (gone < rows or (lo is None and hi is None))
    kind = object if column.encoding == "binary" else np.int64

    def array_of_one(value: Any, of: Any = bool) -> Any:
        array = np.empty(1, of)
        array[0] = value
        return array

    filler = b"" if column.encoding == "binary" and not column.type.startswith("decimal") else 0
    return ColumnFacts(
        column=column,
        analyzed=array_of_one(is_consistent),
        nulls=array_of_one(nulls, np.int64),
        nans=array_of_one(nans, np.int64),
        empty=array_of_one(nulls >= 0 and gone == rows),
        lo=array_of_one(filler if lo is None else lo, kind),
        hi=array_of_one(filler if hi is None else hi, kind),
        has_lo=array_of_one(lo is not None),
        has_hi=array_of_one(hi is not None),
        exact=array_of_one(said.get("lo_exact", True) and said.get("hi_exact", True)),
    )


def _key(text: str | None, column: Column, time_zone: str) -> Any:
    if text is None:
        return None
    literal = read_literal(parse_condition(text))
    if column.type == "timestamp":
        local = datetime.fromisoformat(literal.value).replace(tzinfo=parse_time_zone(time_zone))
        return int(local.timestamp() * 1_000_000)
    return read_literals([literal], column, time_zone)[0][0][0]
