"""The one way out: commands hand over answers, notes and errors, an output decides how they look.

Answers go to stdout, everything else to stderr, so that a pipe gets nothing but the answer.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from contextlib import contextmanager
from datetime import datetime
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from metastore.cli.termination import describe_stop, stop_exit_code
from metastore.contract import read_contract
from metastore.errors import MetastoreError, TableNotFound
from metastore.path_names import is_location, name_folder
from metastore.visible_text import make_json_visible, make_lines_visible, make_visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from metastore.answers import Answer
    from metastore.cli.doctor_checks import CheckResult
    from metastore.reading.pruned_files import PrunedFiles


OK, FAILED, STALE = 0, 1, 3
"""Exit codes; those of errors stand in the contract."""

VERSION_OF_DOCUMENT = 1
TEXT_WIDTH = 100


class PlainOutput:
    """Text without colours and frames, every row in full, for pipes."""

    def answer(self, answer: Answer) -> None:
        """Show an answer."""
        from metastore.display.plain_text import render_complete  # noqa: PLC0415 - pyarrow is slow to import

        _write(render_complete(answer))

    def listing(self, answer: Answer, nothing: str) -> None:
        """Show an answer, or a note if it has no rows."""
        if answer:
            self.answer(answer)
        else:
            self.note(nothing)

    def glance(self, answer: Answer) -> None:
        """Show an answer between other texts, as far as it fits a page."""
        from metastore.display.plain_text import render  # noqa: PLC0415 - as above

        _write(render(answer, TEXT_WIDTH))

    def facts(self, kind: str, facts: Mapping[str, Any]) -> None:  # noqa: ARG002 - text needs no kind
        """Show named values."""
        width = max(map(len, facts), default=0)
        for name, value in facts.items():
            line = f"{name.ljust(width)}  {_format_fact(name, value)}"
            _write(make_visible(line.rstrip()))

    def say(self, text: str, *, heading: bool = False) -> None:
        """Show the next line of a story."""
        _write(f"\n{text}" if heading else textwrap.fill(text, TEXT_WIDTH))

    def comparison(
        self, number: int, title: str, sql: str, lines: Sequence[tuple[str, str, str]], remarks: Sequence[str]
    ) -> None:
        """Show a query and its measurements without and with the Metastore."""
        from metastore.display.plain_text import AlignedColumn, align_columns  # noqa: PLC0415 - not needed for --help

        _write(f"\nQuery {number}: {title}\n")
        _write(textwrap.indent(sql, "    ") + "\n")
        names, without, with_us = zip(*lines, strict=True)
        table = align_columns(
            [
                AlignedColumn(["", *names]),
                AlignedColumn(["without", *without], is_number=True),
                AlignedColumn(["with the Metastore", *with_us], is_number=True),
            ]
        )
        _write(textwrap.indent("\n".join(table), "  ") + "\n")
        for remark in remarks:
            _write(textwrap.fill(remark, TEXT_WIDTH, initial_indent="  ", subsequent_indent="  "))

    def end(self, kind: str, facts: Mapping[str, Any]) -> None:
        """End a story; its facts stand in the one document of `--json`."""

    def findings(self, findings: Sequence[CheckResult]) -> None:
        """Show the results of the doctor's checks."""
        width = max(len(result.check) for result in findings)
        for result in findings:
            state = result.state.ljust(7)
            check = result.check.ljust(width)
            _write(make_visible(f"{state}  {check}  {result.detail}"))
            if result.fix:
                _write(f"{'':7}  {'':{width}}  fix: {result.fix}")

    def text(self, kind: str, text: str) -> None:  # noqa: ARG002 - as above
        """Show one value alone, for scripts to take."""
        _write(make_visible(text))

    def paths(self, files: PrunedFiles) -> None:
        """List data files, for another program to read."""
        for path in files:
            _write(make_visible(path))
        self.notes(repr(files).splitlines())

    def note(self, text: str) -> None:
        """Write a remark beside the result."""
        _write(make_visible(text), err=True)

    def notes(self, texts: Iterable[str]) -> None:
        """Write several remarks."""
        for text in texts:
            self.note(text)

    def error(self, error: MetastoreError) -> None:
        """Write why there is no result."""
        _write(f"error: [{error.code}] {error.message}", err=True)
        if error.hint:
            _write(f"  {error.hint}", err=True)


class ConsoleOutput(PlainOutput):
    """Tables that fit the terminal, with colours unless NO_COLOR is set."""

    def answer(self, answer: Answer) -> None:
        _console().print(answer)

    def glance(self, answer: Answer) -> None:
        self.answer(answer)

    def say(self, text: str, *, heading: bool = False) -> None:
        if heading:
            text = f"\n{text}"
        _console().print(make_lines_visible(text), style="bold" if heading else "")

    def comparison(
        self, number: int, title: str, sql: str, lines: Sequence[tuple[str, str, str]], remarks: Sequence[str]
    ) -> None:
        from metastore.display.terminal import render_comparison  # noqa: PLC0415 - as above

        _console().print(render_comparison(number, title, sql, lines, remarks))


class JsonOutput(PlainOutput):
    """One JSON document on stdout, also for errors; `version` grows when fields change their meaning.

    Stories and notes are for people: what they say also stands in the document.
    """

    def answer(self, answer: Answer) -> None:
        _dump(answer.to_dict())

    def listing(self, answer: Answer, nothing: str) -> None:  # noqa: ARG002 - the document has no rows
        self.answer(answer)

    def facts(self, kind: str, facts: Mapping[str, Any]) -> None:
        _dump({"version": VERSION_OF_DOCUMENT, "kind": kind, **facts})

    def end(self, kind: str, facts: Mapping[str, Any]) -> None:
        self.facts(kind, facts)

    def paths(self, files: PrunedFiles) -> None:
        names = ("table", "filter", "snapshot", "current", "total", "analyzed", "paths", "with_deletes", "unused")
        self.facts("prune", {name: getattr(files, name) for name in names})

    def findings(self, findings: Sequence[CheckResult]) -> None:
        self.facts("doctor", {"findings": list(map(vars, findings))})

    def text(self, kind: str, text: str) -> None:
        self.facts(kind, {kind: text})

    def error(self, error: MetastoreError) -> None:
        self.facts("error", {"code": error.code, "message": error.message, "hint": error.hint})

    def glance(self, *_: Any, **__: Any) -> None: ...

    say = comparison = note = glance


@contextmanager
def open_output(*, as_json: bool) -> Iterator[PlainOutput]:
    """Open the output of one command; an error of ours or of Spark, or a Ctrl-C, is shown and becomes the exit code.

    Raises:
        typer.Exit: With the code that stands for the error.
    """
    output = _choose_output(as_json=as_json)
    try:
        yield output
    except KeyboardInterrupt as stop:
        raise _exit_stopped(stop) from stop
    except MetastoreError as error:
        error.hint = make_visible(_phrase_hint(error))
        _mention_folder(error)
        output.error(error)
        raise typer.Exit(error_exit_code(error)) from error
    except Exception as error:
        interrupt = _find_stop(error)
        if interrupt is not None:
            raise _exit_stopped(interrupt) from error
        if not _is_of_spark(error):
            raise
        output.error(_SparkError(_find_message(error)))
        raise typer.Exit(FAILED) from error


def _choose_output(*, as_json: bool) -> PlainOutput:
    if as_json:
        return JsonOutput()
    if sys.stdout.isatty():
        return ConsoleOutput()
    return PlainOutput()


def _exit_stopped(stop: KeyboardInterrupt) -> typer.Exit:
    _write(describe_stop(stop), err=True)
    return typer.Exit(stop_exit_code(stop))


def _phrase_hint(error: MetastoreError) -> str:
    """The hint of an error, with commands."""
    from metastore.cli.shell_hints import phrase_hint  # noqa: PLC0415 - not needed for --help

    return phrase_hint(error)


def _mention_folder(error: MetastoreError) -> None:
    """Add to the hint of a missing table or database the folder of the same name, if there is one."""
    name = _missing_name(error)
    if not name or is_location(name) or not Path(name).is_dir():
        return
    sql_name = name_folder(f"./{name}")
    in_statements = f", in statements {sql_name}" if sql_name else ""
    error.hint = f"{error.hint} The folder of that name is ./{name}{in_statements}.".lstrip()


def _missing_name(error: MetastoreError) -> str:
    """The name of the table or database that is not there; empty for another error."""
    if isinstance(error, TableNotFound) or "there is no database" in error.message:
        return str(getattr(error, "table", ""))
    return ""


def _find_stop(error: BaseException | None) -> KeyboardInterrupt | None:
    """The Ctrl-C that an error followed from: a Spark that ends answers no more."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return error
        error = error.__cause__ or error.__context__
    return None


class _SparkError(MetastoreError):
    code = "SPARK_ERROR"


def _is_of_spark(error: Exception) -> bool:
    # By name: importing Spark takes a second, and the reading commands do without.
    packages = {ancestor.__module__.partition(".")[0] for ancestor in type(error).__mro__}
    return not packages.isdisjoint({"pyspark", "py4j"})


def _find_message(error: Exception) -> str:
    # A text of py4j begins with "An error occurred while calling o12.sql."; the Java exception is in the next line.
    stripped_lines = map(str.strip, str(error).splitlines())
    lines = [line.removeprefix(": ") for line in stripped_lines if line]
    reasons = [line for line in lines if not line.startswith("An error occurred while calling")]
    first, *_ = [*reasons, *lines, type(error).__name__]
    return first


def error_exit_code(error: MetastoreError) -> int:
    """Return the exit code that stands for an error."""
    errors = read_contract("errors")["errors"]
    codes: Mapping[str, int] = {entry["code"]: entry["exit_code"] for entry in errors}
    return codes.get(error.code, FAILED)


def show(output: PlainOutput, answer: Answer) -> None:
    """Show an answer and leave with 3 if the table has changed since.

    Raises:
        typer.Exit: The answer is stale.
    """
    output.answer(answer)
    end_stale(output, current=answer.current)


def end_stale(output: PlainOutput, *, current: bool | None) -> None:
    """Leave with 3 if the table has changed since.

    Raises:
        typer.Exit: It has.
    """
    if current is False:
        output.note("The table has changed since it was analyzed: metastore analyze brings this up to date.")
        raise typer.Exit(STALE)


def _dump(document: Mapping[str, Any]) -> None:
    text = json.dumps(_to_json(document), ensure_ascii=False, allow_nan=False, default=str)
    typer.echo(make_json_visible(text))


def _write(text: str, *, err: bool = False) -> None:
    """Write lines for people; characters that others wrote and nobody sees are escaped."""
    typer.echo(make_lines_visible(text), err=err)


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - not needed for --help

    size = shutil.get_terminal_size()  # rich takes a terminal without escape sequences for 80 wide, whatever it is
    return Console(width=size.columns, height=size.lines, highlight=False, markup=False, emoji=False)


@singledispatch
def _to_json(value: Any) -> Any:
    """The value in types of JSON, which has no NaN, no times, no bytes and no numbers of numpy."""
    if hasattr(value, "item"):
        return _to_json(value.item())
    return value


@_to_json.register(dict)
def _object_to_json(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): _to_json(value) for key, value in values.items()}


@_to_json.register(list)
@_to_json.register(tuple)
def _array_to_json(values: Iterable[Any]) -> list[Any]:
    return list(map(_to_json, values))


@_to_json.register
def _bytes_to_json(value: bytes) -> str:
    return value.hex().upper()


@_to_json.register
def _time_to_json(value: datetime) -> str:
    return value.isoformat()


@_to_json.register
def _number_to_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _format_fact(name: str, value: Any) -> str:
    from metastore.display.cells import format_cell  # noqa: PLC0415 - not needed for --help
    from metastore.display.numbers import format_bytes  # noqa: PLC0415 - as above

    if isinstance(value, list | tuple):
        return "; ".join(map(_format_entry, value))
    if name.startswith("bytes_") and isinstance(value, int):
        return format_bytes(value)
    return format_cell(name, value)


def _format_entry(entry: str | Sequence[str]) -> str:
    """A text, or a pair of a subject and a reason."""
    return entry if isinstance(entry, str) else ": ".join(entry)
