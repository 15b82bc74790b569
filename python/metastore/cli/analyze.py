"""`metastore analyze`: computes statistics."""

from __future__ import annotations

from typing import Annotated

import typer

from metastore.cli.options import Conf, Jars, Json, spark_conf
from metastore.cli.output import reporting
from metastore.errors import InvalidArgument

Name = Annotated[str, typer.Argument(help="A table's name in a catalog of the Spark.", show_default=False)]
Columns = Annotated[str | None, typer.Option(help="Only these columns, with commas between.", show_default=False)]
Partition = Annotated[
    list[str] | None, typer.Option(help="Only the files of a partition: COLUMN=VALUE.", show_default=False)
]
Depth = Annotated[str, typer.Option(help="full (reads data), footer (Parquet footers) or files (a list only).")]

Repair = Annotated[
    bool, typer.Option("--repair", help="Read all stored statistics first; compute again what is missing or damaged.")
]


def analyze(  # noqa: PLR0913 - the parts of a statement
    table: Name,
    *,
    columns: Columns = None,
    partition: Partition = None,
    depth: Depth = "full",
    repair: Repair = False,
    conf: Conf = None,
    jars: Jars = None,
    json: Json = False,
) -> None:
    """Compute the statistics of a table, of what changed since the last time."""
    with reporting(as_json=json) as output:
        import metastore  # noqa: PLC0415 - not needed for --help
        from metastore._spark.local import started  # noqa: PLC0415 - as above
        from metastore._texts import is_location  # noqa: PLC0415 - as above

        if is_location(table):
            raise InvalidArgument("table", f"{table} is a location", "ANALYZE needs the table's name in a catalog.")
        wanted = None if columns is None else [name.strip() for name in columns.split(",")]
        if wanted is not None and not all(wanted):
            raise InvalidArgument("--columns", f"{columns!r} has an empty name", "Leave it out for all columns.")
        with started(spark_conf(conf, jars)) as spark:
            report = metastore.analyze(spark, table, wanted, _partition(partition), depth=depth, repair=repair)
        output.facts("analyze", report.to_dict())


def _partition(given: list[str] | None) -> dict[str, str] | None:
    pairs = [text.partition("=") for text in given or ()]
    for name, equals, _ in pairs:
        if not equals:
            raise InvalidArgument("--partition", f"{name} is not of the form COLUMN=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs} or None
