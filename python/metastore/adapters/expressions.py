"""Expressions over a table's columns, of which statistics are kept as of columns: Spark resolves and evaluates them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from metastore import jvm_session
from metastore.adapters.descriptors import describe_format
from metastore.adapters.shim_calls import translate_errors
from metastore.adapters.spark_errors import find_cause
from metastore.adapters.spark_versions import select_at_snapshot
from metastore.errors import AnalyzeFailed
from metastore.format.table_column import Column, encoding_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore.adapters.table_facts import TableFacts


NO_ORDER = "values of its type are not compared"


@dataclass(frozen=True)
class TableExpressions:
    """Expressions that a table has.

    Attributes:
        columns: Each as a column of the statistics.
        keys: By the text of each, however it was written, the key of its column.
        failed: The text of each that cannot have statistics, and why.
    """

    columns: tuple[Column, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


def resolve_expressions(
    spark: SparkSession, facts: TableFacts, texts: Sequence[str], chosen: Sequence[Column]
) -> TableExpressions:
    """Look up what expressions are in a table; those that read other columns than the chosen ones are left out."""
    read = {column.key for column in chosen}
    found: dict[str, Column] = {}
    keys: dict[str, str] = {}
    failed: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        told = _describe(spark, facts, text)
        if "refused" in told:
            failed[text] = told["refused"]
        elif read.issuperset(told["columns"]):
            keys[text] = told["key"]
            found.setdefault(told["key"], Column(told["key"], (text,), told["type"], encoding_of(told["type"])))
    return TableExpressions(tuple(found.values()), keys, failed)


def describe_rows(rows: DataFrame, facts: TableFacts) -> list[dict[str, Any]]:
    """What the shim tells of the columns of a query over one table: the key of each, or why it has none."""
    keys = {"\0".join(column.path): column.key for column in facts.columns}
    shim = jvm_session.load_shim_class(rows.sparkSession, "TableExpressions")
    with translate_errors(facts.name):
        return list(json.loads(shim.describe(jvm_session.to_jvm_rows(rows), keys)))


def require_expressions(rows: DataFrame, facts: TableFacts, expressions: Sequence[Column]) -> list[frozenset[str]]:
    """Passes where the last columns of a query are these expressions still: the keys of the columns that each reads."""
    known = describe_rows(rows, facts)[-len(expressions) :]
    if [one.get("key") for one in known] != [one.key for one in expressions]:
        raise AnalyzeFailed(facts.name, "a column of an expression was changed meanwhile", "Try again.")
    return [frozenset(one["columns"]) for one in known]


def _describe(spark: SparkSession, facts: TableFacts, text: str) -> dict[str, Any]:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - not needed to import this module

    refusal = describe_format(facts.format).refuse_expressions(facts)
    if refusal is not None:
        return {"refused": refusal}
    shim = jvm_session.load_shim_class(spark, "TableExpressions")
    wrong = shim.findSyntaxError(text)
    if wrong is not None:
        return {"refused": _shorten(wrong)}
    try:
        rows = select_at_snapshot(spark, facts, [f"{write_expression(text)} AS c0"])
        told = describe_rows(rows, facts)
    except AnalysisException as failure:
        return {"refused": _shorten(find_cause(failure))}
    if len(told) != 1:
        return {"refused": "Spark does not compute it from the rows of the table alone"}
    kind = rows.schema[0].dataType.simpleString()
    return {**told[0], "type": kind} if encoding_of(kind) else {"refused": NO_ORDER}


def _shorten(message: str) -> str:
    return message.strip().split("\n", 1)[0].split(" SQLSTATE:")[0].rstrip(".")


def write_expression(text: str) -> str:
    """SQL of an expression in a list of others: a comment at its end ends with it."""
    return f"({text}\n)"
