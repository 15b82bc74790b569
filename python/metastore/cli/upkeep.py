"""Verbs that keep a store in order: `verify`, `gc`, `compact`."""

from __future__ import annotations

from typing import Annotated

import typer

from metastore.cli.options import Json  # noqa: TC001 - typer reads annotations at run time
from metastore.cli.output import FAILED, reporting
from metastore.errors import InvalidArgument

Location = Annotated[
    str, typer.Argument(help="A table's location, its store, or a root of stores.", show_default=False)
]
Table = Annotated[str | None, typer.Option(help="Which table, in a root of stores.", show_default=False)]
Delete = Annotated[bool, typer.Option("--delete", help="Delete what is listed; without it nothing is changed.")]
Grace = Annotated[float, typer.Option(help="Days that a file must have been out of use.")]


def verify(location: Location, table: Table = None, *, json: Json = False) -> None:
    """Read all statistics of a table and check them; ends with 1 where something is wrong."""
    with reporting(as_json=json) as output:
        import metastore  # noqa: PLC0415 - pyarrow is slow to import
        from metastore.display.cells import size  # noqa: PLC0415 - as above

        found = metastore.verify(_checked(location), table)
        output.answer(found)
        wrong = sum(1 for row in found if row["state"] != "ok")
        total = size(sum(row["size"] for row in found))
        output.note(f"{len(found)} objects of {total}: " + (f"{wrong} with problems" if wrong else "all is well"))
    if wrong:
        raise typer.Exit(FAILED)


def gc(
    location: Location, table: Table = None, *, delete: Delete = False, grace_days: Grace = 7, json: Json = False
) -> None:
    """List the files of a store that nobody needs any more, or delete them."""
    with reporting(as_json=json) as output:
        import metastore  # noqa: PLC0415 - pyarrow is slow to import
        from metastore.display.cells import size  # noqa: PLC0415 - as above

        if grace_days < 0:
            raise InvalidArgument("--grace-days", f"{grace_days:g} is less than 0")
        found = metastore.gc(_checked(location), table, delete=delete, grace_days=grace_days)
        output.answer(found)
        total = f"{len(found)} files of {size(sum(row['size'] for row in found))}"
        output.note(f"{total} deleted" if delete else f"{total} can be deleted: metastore gc --delete")


def compact(location: Location, table: Table = None, *, json: Json = False) -> None:
    """Merge the statistics of a table into few objects, without data files that left the table."""
    with reporting(as_json=json) as output:
        import metastore  # noqa: PLC0415 - pyarrow is slow to import

        output.facts("compact", metastore.compact(_checked(location), table))


def _checked(location: str) -> str:
    from metastore._texts import is_location  # noqa: PLC0415 - as above

    if not is_location(location):
        hint = "These verbs work without Spark: `SELECT location FROM metastore.tables()` tells where a table is."
        raise InvalidArgument("location", f"{location} is a name", hint)
    return location
