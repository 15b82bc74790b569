"""`metastore analyze`: computes statistics."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from metastore.cli.completion import complete_columns, complete_table
from metastore.cli.options import LocalSpark, command
from metastore.cli.output import PlainOutput
from metastore.errors import InvalidArgument, UnsupportedTable

Name = Annotated[
    str,
    typer.Argument(
        help="A table's name in a catalog of the Spark, or a format and a path: 'parquet.`/data/events`'.",
        show_default=False,
        autocompletion=complete_table,
    ),
]


def _columns_option(text: str) -> Any:
    return typer.Option(help=text, show_default=False, autocompletion=complete_columns)


Columns = Annotated[str | None, _columns_option("Only these columns, with commas between.")]
Ranks = Annotated[str | None, _columns_option("Columns that get exact quantiles, with commas between; * for all.")]
Distribution = Annotated[
    str | None,
    _columns_option("Columns of which is kept which data files hold which value, with commas between; * for all."),
]
Frequencies = Annotated[
    str | None,
    typer.Option(
        help="How the table's frequencies are made: auto, exact, reduce, duplicates or scatter.", show_default=False
    ),
]
Partition = Annotated[
    list[str] | None, typer.Option(help="Only the files of a partition: COLUMN=VALUE.", show_default=False)
]
Expressions = Annotated[
    list[str] | None,
    typer.Option(
        "--expression",
        help="An expression over columns that gets statistics, too, such as 'lower(name)'; as often as there are some.",
        show_default=False,
    ),
]
Depth = Annotated[str, typer.Option(help="full (reads data), footer (Parquet footers) or files (a list only).")]

_COMMA = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)")

Repair = Annotated[
    bool, typer.Option("--repair", help="Read all stored statistics first; compute again what is missing or damaged.")
]


@command
def analyze(  # noqa: PLR0913 - the parts of a statement
    output: PlainOutput,
    local: LocalSpark,
    table: Name,
    *,
    columns: Columns = None,
    partition: Partition = None,
    depth: Depth = "full",
    ranks: Ranks = None,
    distribution: Distribution = None,
    frequencies: Frequencies = None,
    repair: Repair = False,
    expressions: Expressions = None,
) -> None:
    """Compute the statistics of a table, of what changed since the last time."""
    import metastore  # noqa: PLC0415 - not needed for --help
    from metastore import configuration  # noqa: PLC0415 - as above
    from metastore.path_names import is_location, phrase_names  # noqa: PLC0415 - as above
    from metastore.reading.discovery import describe_other_files  # noqa: PLC0415 - as above

    if is_location(table):
        other = describe_other_files(table)
        if other:
            raise UnsupportedTable(table, other)
        raise InvalidArgument("table", f"{table} is a location", phrase_names(table))
    wanted = None if columns is None else _names("--columns", columns, "Leave it out for all columns.")
    configuration.get("spark.metastore.frequencies.algorithm", argument=frequencies)  # before Spark is started for it
    ranked, indexed = _some_or_all("--ranks", ranks), _some_or_all("--distribution", distribution)
    with local.start() as spark:
        report = metastore.analyze(
            *(spark, table, wanted, _partition(partition)),
            depth=depth,
            ranks=ranked,
            distribution=indexed,
            frequencies=frequencies,
            repair=repair,
            expressions=expressions or (),
        )
    output.facts("analyze", report.to_dict())


def _names(option: str, text: str, hint: str) -> list[str]:
    """The names of a list; a comma within back-quotes belongs to a name."""
    names = [name.strip() for name in _COMMA.split(text)]
    if not all(names):
        raise InvalidArgument(option, f"{text!r} has an empty name", hint)
    return names


def _some_or_all(option: str, text: str | None) -> bool | list[str]:
    if text is None:
        return False
    return text.strip() == "*" or _names(option, text, "* stands for all columns.")


def _partition(given: list[str] | None) -> dict[str, str] | None:
    pairs = [text.partition("=") for text in given or ()]
    for name, equals, _ in pairs:
        if not equals:
            raise InvalidArgument("--partition", f"{name} is not of the form COLUMN=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs} or None
