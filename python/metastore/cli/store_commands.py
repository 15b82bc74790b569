"""Verbs that keep a store in order: `verify`, `gc`, `compact`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.completion import complete_table
from metastore.cli.options import Conf, Jars, Json, read_spark_conf
from metastore.cli.output import FAILED, open_output
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


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


def verify(where: Where, table: Table = None, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """Read all statistics of a table and check them; ends with 1 where something is wrong."""
    with open_output(as_json=json) as output:
        import metastore  # noqa: PLC0415 - pyarrow is slow to import
        from metastore.display.cells import format_bytes  # noqa: PLC0415 - as above
        from metastore.store.location import is_location  # noqa: PLC0415 - as above

        with _reached(where, table, conf, jars) as place:
            found = metastore.verify(*place)
        output.answer(found)
        checked = [row for row in found if row["state"] != "unknown"]
        wrong = sum(1 for row in checked if row["state"] != "ok")
        total = format_bytes(sum(row["size"] for row in checked))
        output.note(f"{len(checked)} objects of {total}: " + (f"{wrong} with problems" if wrong else "all is well"))
        if len(found) > len(checked):
            output.note(f"{len(found) - len(checked)} more are passed over")
        if wrong:
            name = "TABLE" if is_location(where) else where
            output.note(f"metastore analyze {name} --repair mends them")
    if wrong:
        raise typer.Exit(FAILED)


def gc(
    where: Where,
    table: Table = None,
    *,
    delete: Delete = False,
    grace_days: Grace = 7,
    conf: Conf = None,
    jars: Jars = None,
    json: Json = False,
) -> None:
    """List the files of a store that nobody needs any more, or delete them."""
    with open_output(as_json=json) as output:
        import metastore  # noqa: PLC0415 - pyarrow is slow to import
        from metastore.display.cells import format_bytes  # noqa: PLC0415 - as above

        if grace_days < 0:
            raise InvalidArgument("--grace-days", f"{grace_days:g} is less than 0")
        with _reached(where, table, conf, jars) as place:
            found = metastore.gc(*place, delete=delete, grace_days=grace_days)
        output.answer(found)
        total = f"{len(found)} files of {format_bytes(sum(row['size'] for row in found))}"
        if not found:
            output.note("There is nothing to delete.")
        else:
            output.note(f"{total} deleted" if delete else f"{total} can be deleted: metastore gc --delete")


def compact(where: Where, table: Table = None, *, conf: Conf = None, jars: Jars = None, json: Json = False) -> None:
    """Merge the statistics of a table into few objects, without data files that left the table."""
    with open_output(as_json=json) as output:
        import metastore  # noqa: PLC0415 - pyarrow is slow to import

        with _reached(where, table, conf, jars) as place:
            done = metastore.compact(*place)
        output.facts("compact", done)


@contextmanager
def _reached(
    where: str, table: str | None, conf: list[str] | None, jars: str | None
) -> Iterator[tuple[SparkSession | str, str | None]]:
    """What the functions of the package take: a location, or a Spark and a name in its catalogs."""
    from metastore.spark.local_session import start_local_spark  # noqa: PLC0415 - as above
    from metastore.store.location import is_location  # noqa: PLC0415 - as above

    if is_location(where):
        yield where, table
        return
    if table is not None:
        raise InvalidArgument("--table", f"{where} is the name of a table itself")
    with start_local_spark(read_spark_conf(conf, jars)) as spark:
        yield spark, where
