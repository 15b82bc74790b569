"""The verb that makes a page."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metastore.cli.completion import complete_table
from metastore.cli.options import At, LocalSpark, Table, command
from metastore.cli.output import PlainOutput, end_stale
from metastore.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterator

    from metastore.api.report_functions import Report

Output = Annotated[Path, typer.Option("--output", "-o", help="The file to write.")]

Before = Annotated[str | None, typer.Option(help="A snapshot or a time to compare with.", show_default=False)]
Other = Annotated[
    str | None,
    typer.Argument(help="Another table to compare with.", show_default=False, autocompletion=complete_table),
]


@command
def report(
    output: PlainOutput,
    local: LocalSpark,
    table: Table,
    other: Other = None,
    file: Output = Path("report.html"),
    at: At = None,
    before: Before = None,
) -> None:
    """One HTML page about a table: distributions, what stands out, layout. It needs no network."""
    page = _make(local, table, at=at, before=before, other=other)
    try:
        page.save(file)
    except OSError as error:
        raise InvalidArgument("--output", f"{file} cannot be written: {error.strerror}") from error
    output.facts("report", {"file": str(file), "columns": page.columns, "bytes_written": file.stat().st_size})
    end_stale(output, current=page.current)


def _make(local: LocalSpark, table: str, **arguments: str | None) -> Report:
    import metastore  # noqa: PLC0415 - pyarrow is slow to import
    from metastore.path_names import is_location  # noqa: PLC0415 - as above

    if is_location(table):
        with _show_progress(table):
            return metastore.report(table, **arguments)
    with local.start() as spark, _show_progress(table):
        return metastore.report(spark, table, **arguments)


@contextmanager
def _show_progress(table: str) -> Iterator[None]:
    """Show progress on stderr: pages of thousands of columns take their time."""
    from metastore.spark_jobs.progress import make_progress  # noqa: PLC0415 - as above

    with closing(make_progress(progress=True, label=table)) as progress:
        progress.begin("reading statistics")
        yield
