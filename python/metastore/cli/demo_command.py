"""`metastore demo`: the product on real tables, in a few minutes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metastore.cli.options import command
from metastore.cli.output import PlainOutput

if TYPE_CHECKING:
    from metastore.demo.measurement import Measurement
    from metastore.demo.story import Comparison


Scale = Annotated[float, typer.Option(help="Scale factor of TPC-H: 0.1 is 600,000 lines.")]
Keep = Annotated[Path | None, typer.Option(help="Folder for the tables, to look around later.", show_default=False)]


@command
def demo(output: PlainOutput, *, scale: Scale = 0.1, keep: Keep = None) -> None:
    """Real Iceberg tables, analyzed, and three queries with and without the Metastore."""
    from metastore.demo.story import Comparison, StoryLine, tell_story  # noqa: PLC0415 - not needed for --help

    began = time.perf_counter()
    told: list[dict[str, Any]] = []
    for part in tell_story(scale, keep):
        if isinstance(part, StoryLine):
            output.say(part.text, heading=part.heading)
        elif isinstance(part, Comparison):
            output.comparison(
                part.number, part.question.title, part.question.shown, comparison_lines(part), explain_comparison(part)
            )
            told.append(_document(part))
        else:
            output.glance(part)
    output.note(f"{time.perf_counter() - began:.0f} s in all")
    output.end("demo", {"scale": scale, "queries": told})


def comparison_lines(compared: Comparison) -> list[tuple[str, str, str]]:
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


def explain_comparison(compared: Comparison) -> list[str]:
    """What explains the numbers."""
    from metastore.demo.questions import explain_difference  # noqa: PLC0415 - as above

    skipped = compared.without.files > compared.with_us.files
    example = f"One of the skipped files has {compared.reason}." if skipped and compared.reason else ""
    return [
        text for text in (explain_difference(compared.question, compared.without, compared.with_us), example) if text
    ]


def _expected(measured: Measurement) -> str:
    from metastore.display.cells import format_bytes  # noqa: PLC0415 - as above

    return (
        f"{measured.expected:,}"
        if measured.expected is not None
        else f"unknown ({format_bytes(measured.expected_bytes)})"
    )


def _document(compared: Comparison) -> dict[str, Any]:
    both = {"without": compared.without, "with": compared.with_us}
    numbers = ("files", "rows", "expected", "expected_bytes", "join", "seconds")
    return {
        "title": compared.question.title,
        "sql": compared.question.sql,
        "files_total": compared.files_total,
        "found": compared.found,
        **{name: {key: getattr(one, key) for key in numbers} for name, one in both.items()},
    }
