"""Verbs that read: from a location without Spark, by name through SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.completion import complete_column
from metastore.cli.options import At, Conf, Jars, Json, OfColumn, Table, read_spark_conf
from metastore.cli.output import open_output, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.answers import Answer


File = Annotated[str | None, typer.Option(help="Path of one data file, as `files` lists it.", show_default=False)]
Top = Annotated[int, typer.Option(help="How many values.")]
Bins = Annotated[int, typer.Option(help="How many bins, at most as many as there are.")]
Probabilities = Annotated[
    list[float] | None,
    typer.Option("--probability", "-p", help="From 0 to 1; as often as needed.", show_default=False),
]
Value = Annotated[
    str, typer.Argument(help="The value, as text; after -- if it starts with a dash.", show_default=False)
]
Column = Annotated[
    str | None, typer.Argument(help="Only this column.", show_default=False, autocompletion=complete_column)
]
Database = Annotated[str | None, typer.Argument(help="A database, or the root of stores.", show_default=False)]
Query = Annotated[str, typer.Argument(help="The query to explain.", show_default=False)]


def summary(
    table: Table, file: File = None, at: At = None, *, conf: Conf = None, jars: Jars = None, json: Json = False
) -> None:
    """One line per column: bounds, distinct values, quantiles, nulls."""
    with open_output(as_json=json) as output:
        show(output, _ask("summary", table, conf, jars, file=file, at=at))


def frequencies(  # noqa: PLR0913 - options of a command
    table: Table,
    column: OfColumn,
    top: Top = 10,
    file: File = None,
    at: At = None,
    *,
    conf: Conf = None,
    jars: Jars = None,
    json: Json = False,
) -> None:
    """The most frequent values of a column."""
    with open_output(as_json=json) as output:
        show(output, _ask("frequencies", table, conf, jars, column=column, top=top, file=file, at=at))


def histogram(  # noqa: PLR0913 - as above
    table: Table,
    column: OfColumn,
    bins: Bins = 20,
    file: File = None,
    at: At = None,
    *,
    conf: Conf = None,
    jars: Jars = None,
    json: Json = False,
) -> None:
    """How the values of a column are distributed; bars are as long as values lie densely."""
    with open_output(as_json=json) as output:
        show(output, _ask("histogram", table, conf, jars, column=column, bins=bins, file=file, at=at))


def quantiles(
    table: Table,
    column: OfColumn,
    probability: Probabilities = None,
    at: At = None,
    *,
    conf: Conf = None,
    jars: Jars = None,
    json: Json = False,
) -> None:
    """The values that so large shares of a column's values do not exceed."""
    asked = {"probabilities": probability} if probability else {}
    with open_output(as_json=json) as output:
        show(output, _ask("quantiles", table, conf, jars, column=column, at=at, **asked))


def locate(
    table: Table, column: OfColumn, value: Value, *, conf: Conf = None, jars: Jars = None, json: Json = False
) -> None:
    """The data files that may hold a value, and how many of their rows have it."""
    with open_output(as_json=json) as output:
        if _is_location(table):
            show(output, _ask("locate", table, conf, jars, column=column, value=value))
        else:
            from metastore.answers import Answer  # noqa: PLC0415 - as above
            from metastore.spark.local_session import start_local_spark  # noqa: PLC0415 - pyarrow is slow to import
            from metastore.spark.session import call_function  # noqa: PLC0415 - as above

            with start_local_spark(read_spark_conf(conf, jars)) as spark:
                output.answer(call_function(spark, "locate", table, {"column": column, "value": value}, Answer))


def files(table: Table, at: At = None, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per data file: size, rows, partition, whether it is analyzed."""
    with open_output(as_json=json) as output:
        show(output, _ask("files", table, conf, jars, at=at))


def columns(table: Table, column: Column = None, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per data file and column: what decides whether a file is read."""
    with open_output(as_json=json) as output:
        show(output, _ask("columns", table, conf, jars, column=column))


def snapshots(table: Table, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per analyzed snapshot."""
    with open_output(as_json=json) as output:
        output.answer(_ask("snapshots", table, conf, jars))


def tables(database: Database = None, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per table with statistics, of a database or under the root of stores."""
    with open_output(as_json=json) as output:
        if database is not None and _is_location(database):
            from metastore.reading.table_answers import list_tables  # noqa: PLC0415 - pyarrow is slow to import

            found = list_tables(database)
            output.answer(found)
            if not found:
                output.note(
                    f"No statistics lie in {database} itself. Only the root of stores (spark.metastore.store) or the "
                    "folder of one table is looked at: name a table below, or a database of a catalog."
                )
        else:
            output.answer(_with_spark("tables", database, conf, jars))


def explain(query: Query, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """One line per scan and data file of a query: read or not, and why."""
    with open_output(as_json=json) as output:
        output.answer(_with_spark("explain", query, conf, jars))


def estimates(
    query: Query,
    *,
    analyze: Annotated[bool, typer.Option("--analyze", help="Run the query, to count the rows that come.")] = False,
    conf: Conf = None,
    jars: Jars = None,
    json: Json = False,
) -> None:
    """One line per operator of a query: the rows that the optimizer expects, and from which statistics."""
    with open_output(as_json=json) as output:
        output.answer(_with_spark("estimates", query, conf, jars, analyze=analyze))


def _ask(
    verb: str,
    table: str,
    conf: list[str] | None,
    jars: str | None,
    **arguments: str | int | Sequence[float] | None,
) -> Answer:
    if not _is_location(table):
        return _with_spark(verb, table, conf, jars, **arguments)
    import metastore  # noqa: PLC0415 - pyarrow is slow to import

    answer: Answer = getattr(metastore.open(table), verb)(**arguments)
    return answer


def _with_spark(
    verb: str,
    subject: str | None,
    conf: list[str] | None,
    jars: str | None,
    **arguments: str | int | Sequence[float] | None,
) -> Answer:
    import metastore  # noqa: PLC0415 - as above
    from metastore.spark.local_session import start_local_spark  # noqa: PLC0415 - as above

    with start_local_spark(read_spark_conf(conf, jars)) as spark:
        answer: Answer = getattr(metastore, verb)(spark, subject, **arguments)
        return answer


def _is_location(text: str) -> bool:
    from metastore.store.location import is_location  # noqa: PLC0415 - as above

    return is_location(text)
