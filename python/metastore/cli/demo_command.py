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

    start = time.perf_counter()
    queries: list[dict[str, Any]] = []
    for part in tell_story(scale, keep):
        if isinstance(part, StoryLine):
            output.say(part.text, heading=part.heading)
        elif isinstance(part, Comparison):
            _show_comparison(output, part)
            queries.append(_document(part))
        else:
            output.glance(part)
    output.note(f"{time.perf_counter() - start:.0f} s in all")
    output.end("demo", {"scale": scale, "queries": queries})


def _show_comparison(output: PlainOutput, comparison: Comparison) -> None:
    question = comparison.question
    lines = comparison_lines(comparison)
    output.comparison(comparison.number, question.title, question.shown, lines, explain_comparison(comparison))


def comparison_lines(compared: Comparison) -> list[tuple[str, str, str]]:
    """Return the comparison as lines of name, without, with."""
    without = compared.without
    with_us = compared.with_us
    total = compared.files_total
    lines = [
        ("data files read", f"{without.files} of {total}", f"{with_us.files} of {total}"),
        ("rows read", f"{without.rows:,}", f"{with_us.rows:,}"),
        (f"rows expected ({compared.matching_rows:,} in truth)", _format_expected(without), _format_expected(with_us)),
    ]
    if without.join or with_us.join:
        lines.append(("join planned as", without.join, with_us.join))
    lines.append(("time, best of three", f"{without.seconds:.2f} s", f"{with_us.seconds:.2f} s"))
    return lines


def explain_comparison(compared: Comparison) -> list[str]:
    """Return the sentences that explain the numbers."""
    sentences = []
    difference = compared.explain_difference()
    if difference:
        sentences.append(difference)
    if compared.reason and compared.without.files > compared.with_us.files:
        sentences.append(f"One of the skipped files has {compared.reason}.")
    return sentences


def _format_expected(measurement: Measurement) -> str:
    from metastore.display.numbers import format_bytes  # noqa: PLC0415 - as above

    if measurement.expected is None:
        return f"unknown ({format_bytes(measurement.expected_bytes)})"
    return f"{measurement.expected:,}"


def _document(compared: Comparison) -> dict[str, Any]:
    return {
        "title": compared.question.title,
        "sql": compared.question.sql,
        "files_total": compared.files_total,
        "found": compared.matching_rows,
        "without": _numbers(compared.without),
        "with": _numbers(compared.with_us),
    }


def _numbers(measurement: Measurement) -> dict[str, Any]:
    names = ("files", "rows", "expected", "expected_bytes", "join", "seconds")
    return {name: getattr(measurement, name) for name in names}
