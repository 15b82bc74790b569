"""`metastore analyze`: computes statistics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metastore.cli.completion import complete_columns, complete_table
from metastore.cli.options import LocalSpark, command, split_pair
from metastore.cli.output import PlainOutput
from metastore.errors import InvalidArgument, UnsupportedTable

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    typer.Option(help="How the table's frequencies are made: auto or exact.", show_default=False),
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
    from metastore.reading.other_files import describe_other_files  # noqa: PLC0415 - as above
    from metastore.store.folder import Folder  # noqa: PLC0415 - as above

    if is_location(table):
        other = describe_other_files(Folder(table))
        if other:
            raise UnsupportedTable(table, other)
        raise InvalidArgument("table", f"{table} is a location", phrase_names(table))
    names = None if columns is None else _split_names("--columns", columns, "Leave it out for all columns.")
    configuration.get("spark.metastore.frequencies.algorithm", argument=frequencies)  # before Spark is started for it
    rank_columns = _read_columns("--ranks", ranks)
    distribution_columns = _read_columns("--distribution", distribution)
    partition_values = _read_partition(partition or ())
    with local.start() as spark:
        report = metastore.analyze(
            spark,
            table,
            columns=names,
            partition=partition_values,
            depth=depth,
            ranks=rank_columns,
            distribution=distribution_columns,
            frequencies=frequencies,
            repair=repair,
            expressions=expressions or (),
        )
    output.facts("analyze", report.to_dict())


def _split_names(option: str, text: str, hint: str) -> list[str]:
    """The names of a list; a comma within back-quotes belongs to a name."""
    names = [name.strip() for name in _COMMA.split(text)]
    if not all(names):
        raise InvalidArgument(option, f"{text!r} has an empty name", hint)
    return names


def _read_columns(option: str, text: str | None) -> bool | list[str]:
    """The names of columns, True for all, or False for none."""
    if text is None:
        return False
    if text.strip() == "*":
        return True
    return _split_names(option, text, "* stands for all columns.")


def _read_partition(texts: Iterable[str]) -> dict[str, str] | None:
    values = dict(split_pair("--partition", text, "COLUMN=VALUE") for text in texts)
    return values or None
