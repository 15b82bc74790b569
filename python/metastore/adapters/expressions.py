"""Expressions over a table's columns that have statistics like columns; Spark resolves and evaluates them."""

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
from metastore.visible_text import first_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from metastore.adapters.table_facts import TableFacts


NO_ORDER = "values of its type are not compared"


@dataclass(frozen=True)
class TableExpressions:
    """Expressions over the columns of a table.

    Attributes:
        columns: The expressions as columns of the statistics; equal expressions are one column.
        keys: The text of each expression to the key of its column.
        failed: The text of each expression that cannot have statistics to the reason.
    """

    columns: tuple[Column, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


def resolve_expressions(
    spark: SparkSession, facts: TableFacts, texts: Sequence[str], selected: Sequence[Column]
) -> TableExpressions:
    """Resolve expressions over a table, without those that read columns that are not selected."""
    selected_keys = {column.key for column in selected}
    columns: dict[str, Column] = {}
    keys: dict[str, str] = {}
    failed: dict[str, str] = {}
    for text in dict.fromkeys(texts):
        description = _describe(spark, facts, text)
        if "refused" in description:
            failed[text] = description["refused"]
            continue
        if not selected_keys.issuperset(description["columns"]):
            continue
        key = description["key"]
        keys[text] = key
        expression_type = description["type"]
        column = Column(key=key, path=(text,), type=expression_type, encoding=encoding_of(expression_type))
        columns.setdefault(key, column)
    return TableExpressions(tuple(columns.values()), keys, failed)


def _describe_rows(rows: DataFrame, facts: TableFacts) -> list[dict[str, Any]]:
    """Let the shim describe each column of a query over one table: its key and the columns it reads, or a refusal."""
    keys = {"\0".join(column.path): column.key for column in facts.columns}
    shim = jvm_session.load_shim_class(rows.sparkSession, "TableExpressions")
    with translate_errors(facts.name):
        descriptions = shim.describe(jvm_session.to_jvm_rows(rows), keys)
        return list(json.loads(descriptions))


def require_expressions(rows: DataFrame, facts: TableFacts, expressions: Sequence[Column]) -> list[frozenset[str]]:
    """Require that the last columns of a query are these expressions; return the keys of columns that each reads."""
    descriptions = _describe_rows(rows, facts)
    descriptions = descriptions[len(descriptions) - len(expressions) :]
    keys = [description.get("key") for description in descriptions]
    if keys != [expression.key for expression in expressions]:
        raise AnalyzeFailed(facts.name, "a column of an expression was changed meanwhile", "Try again.")
    return [frozenset(description["columns"]) for description in descriptions]


def _describe(spark: SparkSession, facts: TableFacts, text: str) -> dict[str, Any]:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - not needed to import this module

    refusal = describe_format(facts.format).refuse_expressions(facts)
    if refusal is not None:
        return {"refused": refusal}
    shim = jvm_session.load_shim_class(spark, "TableExpressions")
    syntax_error = shim.findSyntaxError(text)
    if syntax_error is not None:
        return {"refused": _shorten(syntax_error)}
    try:
        rows = select_at_snapshot(spark, facts, [f"{write_expression(text)} AS c0"])
        descriptions = _describe_rows(rows, facts)
    except AnalysisException as failure:
        return {"refused": _shorten(find_cause(failure))}
    if len(descriptions) != 1:
        return {"refused": "Spark does not compute it from the rows of the table alone"}
    return _describe_type(descriptions[0], rows.schema[0].dataType.simpleString())


def _describe_type(description: dict[str, Any], expression_type: str) -> dict[str, Any]:
    if encoding_of(expression_type) is None:
        return {"refused": NO_ORDER}
    return {**description, "type": expression_type}


def _shorten(message: str) -> str:
    sentence, _, _ = first_line(message).partition(" SQLSTATE:")
    return sentence.rstrip(".")


def write_expression(text: str) -> str:
    """Write an expression for a SELECT list: a comment at its end ends with its line."""
    return f"({text}\n)"
