"""Answers made of rows: with the columns of the SQL function, and a column for each user-defined statistic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from metastore.answers import Answer
from metastore.reading import extra_columns
from metastore.reading.summary_rows import parse_instant
from metastore.reading.views import FUNCTIONS, VIEWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.reading.analyzed_table import AnalyzedTable
    from metastore.reading.snapshot import SnapshotAnswer
    from metastore.reading.summary_rows import Row

A = TypeVar("A", bound=Answer)
USER_DEFINED = "own"
"""The field of a row with its user-defined statistics."""


def build_answer(
    kind: type[A], verb: str, subject: str, rows: Sequence[Row], fields: Sequence[pa.Field] = (), **facts: Any
) -> A:
    """Build an answer.

    Args:
        kind: The class of the answer.
        verb: The SQL function whose columns it has.
        subject: The name of the table, or a location.
        rows: The rows; fields that the function does not have are left out.
        fields: Columns of user-defined statistics, in place of the function's map of them.
        facts: More fields of the answer.
    """
    columns = [field for field in FUNCTIONS[verb] if field.name != extra_columns.COLUMN]
    schema = pa.schema([*columns, *fields])
    selected = [{name: row[name] for name in schema.names} for row in add_user_defined(rows, fields)]
    return kind(kind=verb, subject=subject, columns=tuple(schema.names), rows=tuple(selected), schema=schema, **facts)


def build_table_answer(
    table: AnalyzedTable, verb: str, rows: Sequence[Row], answer: SnapshotAnswer | None = None, **facts: Any
) -> Answer:
    """Build an answer about a table, at a snapshot if there is one; arguments as of `build_answer`."""
    return build_answer(Answer, verb, table.name, rows, **describe_snapshot(table, answer), **facts)


def describe_snapshot(table: AnalyzedTable, answer: SnapshotAnswer | None) -> dict[str, Any]:
    """Return the fields of an answer about its snapshot and time zone."""
    if answer is None:
        return {"zone": table.zone}
    return {
        "snapshot": answer.snapshot.id,
        "current": answer.current,
        "analyzed_at": parse_instant(answer.snapshot.analyzed_at),
        "zone": table.zone,
    }


def infer_user_defined_fields(rows: Sequence[Row]) -> list[pa.Field]:
    """Infer the columns of the user-defined statistics in rows of a summary."""
    return extra_columns.infer_fields([row[USER_DEFINED] for row in rows], VIEWS["summary"].names)


def add_user_defined(rows: Sequence[Row], fields: Sequence[pa.Field]) -> list[Row]:
    """Copy rows with their user-defined statistics as columns."""
    copies = []
    for row in rows:
        copy = dict(row)
        for field in fields:
            copy[field.name] = extra_columns.cast_scalar(row[USER_DEFINED].get(field.name), field)
        copies.append(copy)
    return copies
