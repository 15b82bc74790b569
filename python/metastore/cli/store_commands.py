"""Verbs that keep a store in order: `verify`, `gc`, `compact`."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.completion import complete_table
from metastore.cli.options import LocalSpark, command
from metastore.cli.output import FAILED, PlainOutput
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from metastore.answers import Answer


Where = Annotated[
    str,
    typer.Argument(
        help="A table's location, its store or a root of stores (without Spark), or its name in a catalog.",
        show_default=False,
        metavar="TABLE",
        autocompletion=complete_table,
    ),
]
Table = Annotated[str | None, typer.Option(help="Which table, in a root of stores.", show_default=False)]
Delete = Annotated[bool, typer.Option("--delete", help="Delete what is listed; without it nothing is changed.")]
Grace = Annotated[float, typer.Option(help="Days that a file must have been out of use.")]


@command
def verify(output: PlainOutput, local: LocalSpark, where: Where, table: Table = None) -> None:
    """Read all statistics of a table and check them; ends with 1 where something is wrong."""
    import metastore  # noqa: PLC0415 - pyarrow is slow to import
    from metastore.cli.shell_hints import write_command  # noqa: PLC0415 - as above

    with _open_subject(local, where, table) as subject:
        objects = metastore.verify(*subject)
    output.answer(objects)
    states = Counter(row["state"] for row in objects)
    problems = len(objects) - states["ok"] - states["unknown"]
    output.notes(_describe_objects(objects, problems))
    if problems:
        output.note(f"{write_command('analyze', where)} --repair mends them")
        raise typer.Exit(FAILED)


def _describe_objects(objects: Answer, problems: int) -> Iterator[str]:
    from metastore.display.numbers import format_bytes  # noqa: PLC0415 - as above

    checked = [row for row in objects if row["state"] != "unknown"]
    total = format_bytes(sum(row["size"] for row in checked))
    verdict = f"{problems} with problems" if problems else "all is well"
    yield f"{len(checked)} objects of {total}: {verdict}"
    unchecked = len(objects) - len(checked)
    if unchecked:
        yield f"{unchecked} more are passed over"


@command
def gc(
    output: PlainOutput,
    local: LocalSpark,
    where: Where,
    table: Table = None,
    *,
    delete: Delete = False,
    grace_days: Grace = 7,
) -> None:
    """List the files of a store that are no longer needed, or delete them."""
    import metastore  # noqa: PLC0415 - pyarrow is slow to import
    from metastore.display.numbers import format_bytes  # noqa: PLC0415 - as above

    if grace_days < 0:
        raise InvalidArgument("--grace-days", f"{grace_days:g} is less than 0")
    with _open_subject(local, where, table) as subject:
        files = metastore.gc(*subject, delete=delete, grace_days=grace_days)
    output.listing(files, "There is nothing to delete.")
    if not files:
        return
    size = format_bytes(sum(row["size"] for row in files))
    outcome = "deleted" if delete else "can be deleted: run this again with --delete"
    output.note(f"{len(files)} files of {size} {outcome}")


@command
def compact(output: PlainOutput, local: LocalSpark, where: Where, table: Table = None) -> None:
    """Merge the statistics of a table into few objects, without data files that left the table."""
    import metastore  # noqa: PLC0415 - pyarrow is slow to import

    with _open_subject(local, where, table) as subject:
        facts = metastore.compact(*subject)
    output.facts("compact", facts)


@contextmanager
def _open_subject(local: LocalSpark, where: str, table: str | None) -> Iterator[tuple[SparkSession | str, str | None]]:
    """The first arguments of the package's functions: a location and a table's name, or a Spark and a name."""
    from metastore.path_names import is_location  # noqa: PLC0415 - as above

    if is_location(where):
        yield where, table
        return
    if table is not None:
        raise InvalidArgument("--table", f"{where} is the name of a table itself")
    with local.start() as spark:
        yield spark, where
