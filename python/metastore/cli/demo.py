"""`metastore demo`: the product on real tables, in a few minutes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metastore.cli.options import Json  # noqa: TC001 - typer reads annotations at run time
from metastore.cli.output import reporting

if TYPE_CHECKING:
    from metastore._demo.measure import Measured
    from metastore._demo.story import Compared

Scale = Annotated[float, typer.Option(help="Scale factor of TPC-H: 0.1 is 600,000 lines.")]
Keep = Annotated[Path | None, typer.Option(help="Folder for the tables, to look around later.", show_default=False)]


def demo(*, scale: Scale = 0.1, keep: Keep = None, json: Json = False) -> None:
    """Real Iceberg tables, analyzed, and three queries with and without the Metastore."""
    with reporting(as_json=json) as output:
        from metastore._demo.story import Compared, Said, tell  # noqa: PLC0415 - not needed for --help

        began = time.perf_counter()
        told: list[dict[str, Any]] = []
        for part in tell(scale, keep):
            if isinstance(part, Said):
                output.say(part.text, heading=part.heading)
            elif isinstance(part, Compared):
                output.comparison(part.number, part.question.title, part.question.shown, lines(part), remarks(part))
                told.append(_document(part))
            elif not json:
                output.glance(part)
        output.note(f"{time.perf_counter() - began:.0f} s in all")
        if json:
            output.facts("demo", {"scale": scale, "queries": told})


def lines(compared: Compared) -> list[tuple[str, str, str]]:
    """The comparison as lines of name, without, with."""
    one, two, total = compared.without, compared.with_us, compared.files_total
    shown = [
        ("data files read", f"{one.files} of {total}", f"{two.files} of {total}"),
        ("rows read", f"{one.rows:,}", f"{two.rows:,}"),
        (f"rows expected ({compared.found:,} in truth)", _expected(one), _expected(two)),
        ("time, best of three", f"{one.seconds:.2f} s", f"{two.seconds:.2f} s"),
    ]
    if one.join or two.join:
        shown.insert(3, ("join planned as", one.join, two.join))
    return shown


def remarks(compared: Compared) -> list[str]:
    """What explains the numbers."""
    from metastore._demo.queries import remark  # noqa: PLC0415 - as above

    skipped = compared.without.files > compared.with_us.files
    example = f"One of the skipped files has {compared.reason}." if skipped and compared.reason else ""
    return [text for text in (remark(compared.question, compared.without, compared.with_us), example) if text]


def _expected(measured: Measured) -> str:
    from metastore.display.cells import size  # noqa: PLC0415 - as above

    return f"{measured.expected:,}" if measured.expected is not None else f"unknown ({size(measured.expected_bytes)})"


def _document(compared: Compared) -> dict[str, Any]:
    both = {"without": compared.without, "with": compared.with_us}
    numbers = ("files", "rows", "expected", "expected_bytes", "join", "seconds")
    return {
        "title": compared.question.title,
        "sql": compared.question.sql,
        "files_total": compared.files_total,
        "found": compared.found,
        **{name: {key: getattr(one, key) for key in numbers} for name, one in both.items()},
    }
