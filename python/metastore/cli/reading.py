"""Verbs that read: from a location without Spark, by name through SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.options import At, Conf, Jars, Json, Table, spark_conf
from metastore.cli.output import reporting, show

if TYPE_CHECKING:
    from metastore.answers import Answer

File = Annotated[str | None, typer.Option(help="Path of one data file, as `files` lists it.", show_default=False)]
Column = Annotated[str | None, typer.Argument(help="Only this column.", show_default=False)]
Database = Annotated[str | None, typer.Argument(help="A database, or the root of stores.", show_default=False)]
Query = Annotated[str, typer.Argument(help="The query to explain.", show_default=False)]


def summary(
    table: Table, file: File = None, at: At = None, *, conf: Conf = None, jars: Jars = None, json: Json = False
) -> None:
    """One line per column: bounds, distinct values, quantiles, nulls."""
    with reporting(as_json=json) as output:
        show(output, _ask("summary", table, conf, jars, file=file, at=at))


def files(table: Table, at: At = None, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per data file: size, rows, partition, whether it is analyzed."""
    with reporting(as_json=json) as output:
        show(output, _ask("files", table, conf, jars, at=at))


def columns(table: Table, column: Column = None, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per data file and column: what decides whether a file is read."""
    with reporting(as_json=json) as output:
        show(output, _ask("columns", table, conf, jars, column=column))


def snapshots(table: Table, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per analyzed snapshot."""
    with reporting(as_json=json) as output:
        output.answer(_ask("snapshots", table, conf, jars))


def tables(database: Database = None, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per table with statistics, of a database or under the root of stores."""
    with reporting(as_json=json) as output:
        if database is not None and _is_location(database):
            from metastore._read.statistics import tables_at  # noqa: PLC0415 - pyarrow is slow to import

            output.answer(tables_at(database))
        else:
            output.answer(_with_spark("tables", database, conf, jars))


def explain(query: Query, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per scan and data file of a query: read or not, and why."""
    with reporting(as_json=json) as output:
        output.answer(_with_spark("explain", query, conf, jars))


def _ask(verb: str, table: str, conf: list[str] | None, jars: str | None, **arguments: str | None) -> Answer:
    if not _is_location(table):
        return _with_spark(verb, table, conf, jars, **arguments)
    import metastore  # noqa: PLC0415 - pyarrow is slow to import

    answer: Answer = getattr(metastore.open(table), verb)(**arguments)
    return answer


def _with_spark(
    verb: str, subject: str | None, conf: list[str] | None, jars: str | None, **arguments: str | None
) -> Answer:
    import metastore  # noqa: PLC0415 - as above
    from metastore._spark.local import started  # noqa: PLC0415 - as above

    with started(spark_conf(conf, jars)) as spark:
        answer: Answer = getattr(metastore, verb)(spark, subject, **arguments)
        return answer


def _is_location(text: str) -> bool:
    from metastore._texts import is_location  # noqa: PLC0415 - as above

    return is_location(text)
