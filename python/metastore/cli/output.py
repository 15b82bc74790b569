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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from metastore.cli.termination import describe_stop, stop_exit_code
from metastore.contract import read_contract
from metastore.errors import MetastoreError, TableNotFound
from metastore.path_names import is_location, name_folder
from metastore.visible_text import make_json_visible, make_lines_visible, make_visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from metastore.answers import Answer
    from metastore.cli.doctor_checks import CheckResult
    from metastore.reading.pruned_files import PrunedFiles


OK, FAILED, STALE = 0, 1, 3
"""Exit codes; those of errors stand in the contract."""

VERSION_OF_DOCUMENT = 1
TEXT_WIDTH = 100


class PlainOutput:
    """How a command tells its result: text without colours and frames, every row in full, for pipes."""

    def answer(self, answer: Answer) -> None:
        """Shows an answer."""
        from metastore.display.plain_text import render_complete  # noqa: PLC0415 - pyarrow is slow to import

        _write(render_complete(answer))

    def listing(self, answer: Answer, nothing: str) -> None:
        """Shows an answer, or says what it means that it has no rows."""
        if answer:
            self.answer(answer)
        else:
            self.note(nothing)

    def glance(self, answer: Answer) -> None:
        """Shows an answer among other things: what fits a page."""
        from metastore.display.plain_text import render  # noqa: PLC0415 - as above

        _write(render(answer, TEXT_WIDTH))

    def facts(self, kind: str, facts: Mapping[str, Any]) -> None:  # noqa: ARG002 - text needs no kind
        """Shows named values."""
        width = max(map(len, facts), default=0)
        for name, value in facts.items():
            _write(make_visible(f"{name.ljust(width)}  {_shown(name, value)}".rstrip()))

    def say(self, text: str, *, heading: bool = False) -> None:
        """Tells the next line of a story."""
        _write(f"\n{text}" if heading else textwrap.fill(text, TEXT_WIDTH))

    def comparison(
        self, number: int, title: str, sql: str, lines: Sequence[tuple[str, str, str]], remarks: Sequence[str]
    ) -> None:
        """Shows a query and its measurements without and with the Metastore."""
        from metastore.display.plain_text import align_cells  # noqa: PLC0415 - not needed for --help

        _write(f"\nQuery {number}: {title}\n")
        _write(textwrap.indent(sql, "    ") + "\n")
        table = align_cells([("", "without", "with the Metastore"), *lines], [False, True, True])
        _write(textwrap.indent("\n".join(table), "  ") + "\n")
        for remark in remarks:
            _write(textwrap.fill(remark, TEXT_WIDTH, initial_indent="  ", subsequent_indent="  "))

    def end(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Ends a story; its facts stand in the one document of `--json`."""

    def findings(self, findings: Sequence[CheckResult]) -> None:
        """Shows what the doctor found."""
        width = max(len(one.check) for one in findings)
        for one in findings:
            _write(make_visible(f"{one.state.ljust(7)}  {one.check.ljust(width)}  {one.detail}"))
            if one.fix and one.state != "ok":
                _write(f"{'':7}  {'':{width}}  fix: {one.fix}")

    def text(self, kind: str, text: str) -> None:  # noqa: ARG002 - as above
        """Shows one value alone, for scripts to take."""
        _write(make_visible(text))

    def paths(self, files: PrunedFiles) -> None:
        """Names data files, for another program to read."""
        for path in files:
            _write(make_visible(path))
        for line in repr(files).splitlines():
            self.note(line)

    def note(self, text: str) -> None:
        """Says something beside the result."""
        _write(make_visible(text), err=True)

    def error(self, error: MetastoreError) -> None:
        """Says why there is no result."""
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
        _console().print(make_lines_visible(f"\n{text}" if heading else text), style="bold" if heading else "")

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
        self.facts("doctor", {"findings": [vars(one) for one in findings]})

    def text(self, kind: str, text: str) -> None:
        self.facts(kind, {kind: text})

    def error(self, error: MetastoreError) -> None:
        self.facts("error", {"code": error.code, "message": error.message, "hint": error.hint})

    def glance(self, *_: Any, **__: Any) -> None: ...

    say = comparison = note = glance


@contextmanager
def open_output(*, as_json: bool) -> Iterator[PlainOutput]:
    """The output of one command; an error of ours or of Spark, or a Ctrl-C, is shown and becomes the exit code.

    Raises:
        typer.Exit: With the code that stands for the error.
    """
    output: PlainOutput = JsonOutput() if as_json else ConsoleOutput() if sys.stdout.isatty() else PlainOutput()
    try:
        yield output
    except KeyboardInterrupt as stop:
        _write(describe_stop(stop), err=True)
        raise typer.Exit(stop_exit_code(stop)) from stop
    except MetastoreError as error:
        output.error(_with_folder(_in_shell_words(error)))
        raise typer.Exit(error_exit_code(error)) from error
    except Exception as error:
        behind = _stop_behind(error)
        if behind is not None:
            _write(describe_stop(behind), err=True)
            raise typer.Exit(stop_exit_code(behind)) from error
        if not _is_of_spark(error):
            raise
        output.error(_SparkError(_first_line(error)))
        raise typer.Exit(FAILED) from error


def _in_shell_words(error: MetastoreError) -> MetastoreError:
    """The error, with a hint that names commands."""
    from metastore.cli.shell_hints import phrase_hint  # noqa: PLC0415 - not needed for --help

    error.hint = make_visible(phrase_hint(error))
    return error


def _with_folder(error: MetastoreError) -> MetastoreError:
    """The error; of a name that no table and no database has it tells of the folder of that name."""
    is_missing = isinstance(error, TableNotFound) or "there is no database" in error.message
    name = str(getattr(error, "table", "")) if is_missing else ""
    if name and not is_location(name) and Path(name).is_dir():
        named = name_folder(f"./{name}")
        also = f", in statements {named}" if named else ""
        error.hint = f"{error.hint} The folder of that name is ./{name}{also}.".lstrip()
    return error


def _stop_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The Ctrl-C while whose consequences were undone an error was raised: a Spark that ends answers no more."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return error
        error = error.__cause__ or error.__context__
    return None


class _SparkError(MetastoreError):
    code = "SPARK_ERROR"


def _is_of_spark(error: Exception) -> bool:
    # By name: importing Spark takes a second, and the reading commands do without.
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return not modules.isdisjoint({"pyspark", "py4j"})


def _first_line(error: Exception) -> str:
    # What py4j says begins with "An error occurred while calling o12.sql."; the Java exception is in the next line.
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("An error occurred while calling")] or lines
    return told[0] if told else type(error).__name__


def error_exit_code(error: MetastoreError) -> int:
    """The exit code that stands for an error."""
    codes: Mapping[str, int] = {one["code"]: one["exit_code"] for one in read_contract("errors")["errors"]}
    return codes.get(error.code, FAILED)


def show(output: PlainOutput, answer: Answer) -> None:
    """Shows an answer and leaves with 3 where the table has changed since.

    Raises:
        typer.Exit: The answer is stale.
    """
    output.answer(answer)
    end_stale(output, current=answer.current)


def end_stale(output: PlainOutput, *, current: bool | None) -> None:
    """Leaves with 3 where the table has changed since.

    Raises:
        typer.Exit: It has.
    """
    if current is False:
        output.note("The table has changed since it was analyzed: metastore analyze brings this up to date.")
        raise typer.Exit(STALE)


def _dump(document: Mapping[str, Any]) -> None:
    typer.echo(make_json_visible(json.dumps(_plain(document), ensure_ascii=False, allow_nan=False, default=str)))


def _write(text: str, *, err: bool = False) -> None:
    """Writes lines for people; whatever they quote was written by others."""
    typer.echo(make_lines_visible(text), err=err)


def _console() -> Console:
    from rich.console import Console  # noqa: PLC0415 - not needed for --help

    size = shutil.get_terminal_size()  # rich takes a terminal without escape sequences for 80 wide, whatever it is
    return Console(width=size.columns, height=size.lines, highlight=False, markup=False, emoji=False)


def _plain(value: Any) -> Any:
    """JSON knows no NaN, no times, no bytes and no numbers of numpy."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _shown(name: str, value: Any) -> str:
    from metastore.display.cells import (  # noqa: PLC0415 - spares every other use its time
        format_bytes,
        format_cell,
    )

    if isinstance(value, list | tuple):  # of texts, or of pairs of a subject and a reason
        return "; ".join(one if isinstance(one, str) else ": ".join(one) for one in value)
    return format_bytes(value) if name.startswith("bytes_") and isinstance(value, int) else format_cell(name, value)
