"""Verbs that read: from a location without Spark, by name through SQL."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.completion import complete_column
from metastore.cli.options import At, LocalSpark, OfColumn, Table, command
from metastore.cli.output import STALE, PlainOutput, end_stale, show
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from metastore.answers import Answer
    from metastore.cli.thresholds import Threshold, Unknown

    Rows = Sequence[Mapping[str, Any]]

File = Annotated[str | None, typer.Option(help="Path of one data file, as `files` lists it.", show_default=False)]
Top = Annotated[int, typer.Option(help="How many values.")]
Bins = Annotated[int, typer.Option(help="How many bins, at most as many as there are.")]
Probabilities = Annotated[
    list[float] | None,
    typer.Option("--probability", "-p", help="From 0 to 1; as often as needed.", show_default=False),
]
Value = Annotated[
    str | None,
    typer.Argument(help="The value, as text; after -- if it starts with a dash and is no number.", show_default=False),
]
Null = Annotated[bool, typer.Option("--null", help="Instead of a value: rows in which there is none.")]
Location = Annotated[str, typer.Argument(help="A table's location.", show_default=False)]
Filter = Annotated[str, typer.Argument(help="What would follow WHERE in Spark.", show_default=False)]
Zone = Annotated[str, typer.Option(help="The time zone of times in the filter.")]
Column = Annotated[
    str | None, typer.Argument(help="Only this column.", show_default=False, autocompletion=complete_column)
]
Database = Annotated[str | None, typer.Argument(help="A database, or the root of stores.", show_default=False)]
Analyze = Annotated[bool, typer.Option("--analyze", help="Run the query, to count the rows that come.")]
Before = Annotated[str, typer.Argument(metavar="FROM", help="A snapshot, or a time.", show_default=False)]
After = Annotated[
    str | None,
    typer.Argument(metavar="TO", help="Another one; the current snapshot if not given.", show_default=False),
]
Distributions = Annotated[
    bool, typer.Option("--distributions", help="Also psi and js_distance of each column: how far its values moved.")
]
Added = Annotated[
    bool, typer.Option("--added", help="Compare the data files that came after FROM with the table at FROM.")
]
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        help="Exit with 3 where a change crosses it: psi>0.2, null_percentage>5, count<-10%. As often as needed.",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 3, too, where a measure of --fail-on is not known.")]
Query = Annotated[str, typer.Argument(help="A query.", show_default=False)]
SortedBy = Annotated[
    str | None, typer.Option(help="Columns by which the tables were sorted: a, b.", show_default=False)
]
WithStatistics = Annotated[str | None, typer.Option(help="Columns that had statistics: a, b.", show_default=False)]


@command
def summary(output: PlainOutput, local: LocalSpark, table: Table, file: File = None, at: At = None) -> None:
    """One line per column: bounds, distinct values, quantiles, nulls."""
    show(output, _ask(local, "summary", table, file=file, at=at))


@command
def frequencies(
    output: PlainOutput,
    local: LocalSpark,
    table: Table,
    column: OfColumn,
    top: Top = 10,
    file: File = None,
    at: At = None,
) -> None:
    """The most frequent values of a column."""
    answer = _ask(local, "frequencies", table, column=column, top=top, file=file, at=at)
    if not answer:
        output.note(f"No value of {column} is known to occur twice: all may be different, or null.")
    show(output, answer)


@command
def histogram(
    output: PlainOutput,
    local: LocalSpark,
    table: Table,
    column: OfColumn,
    bins: Bins = 20,
    file: File = None,
    at: At = None,
) -> None:
    """Show how the values of a column are distributed; bars are as long as values lie densely."""
    answer = _ask(local, "histogram", table, column=column, bins=bins, file=file, at=at)
    if not answer:
        output.note(f"There is no histogram of {column}: all of it may be null, or its type has none.")
    show(output, answer)


@command
def quantiles(
    output: PlainOutput,
    local: LocalSpark,
    table: Table,
    column: OfColumn,
    probability: Probabilities = None,
    at: At = None,
) -> None:
    """Quantiles of a column: the median, the quartiles, or those that you ask for."""
    arguments = {"probabilities": probability} if probability else {}
    show(output, _ask(local, "quantiles", table, column=column, at=at, **arguments))


@command
def locate(
    output: PlainOutput, local: LocalSpark, table: Table, column: OfColumn, value: Value = None, *, null: Null = False
) -> None:
    """The data files that may hold a value, and how many of their rows have it."""
    if (value is None) != null:
        reason = "both are given" if null else "none is given"
        raise InvalidArgument("value", reason, "Give a value or --null.")
    if _is_location(table):
        show(output, _ask(local, "locate", table, column=column, value=value))
        return
    from metastore.answers import Answer  # noqa: PLC0415 - as below
    from metastore.spark.session import call_function  # noqa: PLC0415 - pyarrow is slow to import

    with local.start() as spark:
        answer = call_function(spark, "locate", table, {"column": column, "value": value}, Answer)
        output.answer(answer)


@command
def prune(output: PlainOutput, location: Location, filter: Filter, zone: Zone = "UTC") -> None:  # noqa: A002
    """The data files that another engine has to read for a filter, one path a line."""
    import metastore  # noqa: PLC0415 - pyarrow is slow to import

    files = metastore.open(location, zone=zone).prune(filter)
    output.paths(files)
    end_stale(output, current=files.current)


@command
def files(output: PlainOutput, local: LocalSpark, table: Table, at: At = None) -> None:
    """One line per data file: size, rows, partition, whether it is analyzed."""
    show(output, _ask(local, "files", table, at=at))


@command
def columns(output: PlainOutput, local: LocalSpark, table: Table, column: Column = None) -> None:
    """One line per data file and column: what decides whether a file is read."""
    show(output, _ask(local, "columns", table, column=column))


@command
def layout(output: PlainOutput, local: LocalSpark, table: Table, column: Column = None) -> None:
    """One line per column: data files that a look-up reads, how far they overlap, and the statement that would help."""
    show(output, _ask(local, "layout", table, column=column))


@command
def snapshots(output: PlainOutput, local: LocalSpark, table: Table) -> None:
    """One line per analyzed snapshot."""
    output.answer(_ask(local, "snapshots", table))


@command
def diff(  # noqa: PLR0913 - what differs, and what of it fails
    output: PlainOutput,
    local: LocalSpark,
    table: Table,
    before: Before,
    after: After = None,
    *,
    distributions: Distributions = False,
    added: Added = False,
    fail_on: FailOn = None,
    strict: Strict = False,
) -> None:
    """Compare the summaries of two snapshots, and show how far distributions have moved."""
    from metastore.cli.thresholds import parse_threshold  # noqa: PLC0415 - not needed for --help

    thresholds = list(map(parse_threshold, fail_on or ()))
    are_distances = [threshold.needs_distributions for threshold in thresholds]
    rows_before: Rows = ()
    rows_after: Rows = ()
    with _open_table(local, table) as ask:
        answer = ask("diff", before=before, after=after, distributions=distributions or any(are_distances), added=added)
        if not all(are_distances):
            rows_before = ask("summary", at=before).rows
            rows_after = ask("summary", at=after).rows
    crossings = _describe_crossings(thresholds, answer.rows)
    unknown_measures = {
        threshold.measure: threshold.list_unknown(answer.rows, rows_before, rows_after) for threshold in thresholds
    }
    unknowns = [*_describe_unknown(unknown_measures, table), *_describe_unknown_files(answer.rows)]
    output.answer(answer)
    output.notes([*crossings, *unknowns])
    if crossings or (strict and unknowns):
        raise typer.Exit(STALE)
    end_stale(output, current=answer.current)


def _describe_crossings(thresholds: Sequence[Threshold], rows: Rows) -> list[str]:
    crossings: list[str] = []
    for threshold in thresholds:
        crossings += threshold.describe_crossings(rows)
    return crossings


def _describe_unknown(measures: Mapping[str, Unknown], table: str) -> Iterator[str]:
    for measure, unknown in measures.items():
        if unknown.reasons:
            yield unknown.describe(measure, table)


def _describe_unknown_files(rows: Rows) -> Iterator[str]:
    for row in rows:
        if row["column_name"] is None and row["reason"]:
            yield f"nothing is known of the added data files: {row['reason']}"


@command
def tables(output: PlainOutput, local: LocalSpark, database: Database = None) -> None:
    """One line per table with statistics, of a database or under the root of stores."""
    if database is None or not _is_location(database):
        output.answer(_with_spark(local, "tables", database))
        return
    from metastore.reading.table_answers import list_tables  # noqa: PLC0415 - pyarrow is slow to import

    answer = list_tables(database)
    output.answer(answer)
    if not answer:
        output.note(
            f"No statistics lie in {database} itself. Only the root of stores (spark.metastore.store) or the "
            "folder of one table is looked at: name a table below, or a database of a catalog."
        )


@command
def filtered_summary(output: PlainOutput, local: LocalSpark, query: Query) -> None:
    """The summary of the rows that a query of one table keeps; data files that match fully are not read."""
    output.answer(_with_spark(local, "filtered_summary", query))


@command
def explain(output: PlainOutput, local: LocalSpark, query: Query) -> None:
    """One line per scan and data file of a query: read or not, and why."""
    output.answer(_with_spark(local, "explain", query))


@command
def whatif(
    output: PlainOutput, local: LocalSpark, query: Query, sorted_by: SortedBy = None, statistics: WithStatistics = None
) -> None:
    """One line per scan of a query: how many data files it reads, and how many it would read of a sorted table."""
    output.answer(_with_spark(local, "whatif", query, sorted_by=sorted_by, statistics=statistics))


@command
def estimates(output: PlainOutput, local: LocalSpark, query: Query, *, analyze: Analyze = False) -> None:
    """One line per operator of a query: the rows that the optimizer expects, and from which statistics."""
    output.answer(_with_spark(local, "estimates", query, analyze=analyze))


@contextmanager
def _open_table(local: LocalSpark, table: str) -> Iterator[Callable[..., Answer]]:
    """Open a table for several verbs: at its location, or with one Spark."""
    import metastore  # noqa: PLC0415 - pyarrow is slow to import

    if _is_location(table):
        opened = metastore.open(table)
        yield lambda verb, **arguments: getattr(opened, verb)(**arguments)
        return
    with local.start() as spark:
        yield lambda verb, **arguments: getattr(metastore, verb)(spark, table, **arguments)


def _ask(local: LocalSpark, verb: str, table: str, **arguments: str | int | bool | Sequence[float] | None) -> Answer:
    with _open_table(local, table) as ask:
        return ask(verb, **arguments)


def _with_spark(
    local: LocalSpark, verb: str, subject: str | None, **arguments: str | int | Sequence[float] | None
) -> Answer:
    import metastore  # noqa: PLC0415 - as above

    with local.start() as spark:
        answer: Answer = getattr(metastore, verb)(spark, subject, **arguments)
        return answer


def _is_location(text: str) -> bool:
    from metastore.path_names import is_location  # noqa: PLC0415 - as above

    return is_location(text)
