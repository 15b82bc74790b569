"""Shows the progress of a job on stderr."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from metastore.visible_text import make_visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_TICK = 0.2  # seconds, as the next two
_FIRST_LINE = 0.5
_LINE_EVERY = 10.0
_BAR = 20
_NARROWEST_BAR = 5
_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class StageProgress:
    """The finished part of a stage.

    Attributes:
        files: The number of finished data files.
        total: The number of all data files.
        rows: The number of rows in finished data files.
        share: The finished share of the work, 0 to 1.
    """

    files: int
    total: int
    rows: int
    share: float


class Progress(Protocol):
    """Receives the stages of a job."""

    def begin(self, stage: str, done: Callable[[], StageProgress] | None = None) -> None:
        """Note that a stage begins; `done` returns its progress, in any thread and at any time."""

    def close(self) -> None:
        """Note that the job has ended."""


class TextStream(Protocol):
    """The part of a text stream that is needed here."""

    def isatty(self) -> bool:
        """Return whether it is a terminal."""

    def write(self, text: str, /) -> object:
        """Write a text."""

    def flush(self) -> object:
        """Flush the texts that were written."""


class NoProgress:
    """Shows nothing."""

    def begin(self, stage: str, done: Callable[[], StageProgress] | None = None) -> None:
        """Ignore the stage."""

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class _Stage:
    name: str
    began: float
    done: Callable[[], StageProgress] | None


class ProgressLine:
    """Shows the stage of a job: a line that is overwritten on a terminal, else a line every ten seconds.

    A job that takes less than half a second gets no line in a file.
    """

    def __init__(self, label: str, stream: TextStream | None = None) -> None:
        self._label = make_visible(label)
        self._stream: TextStream = stream or sys.stderr
        self._overwrites = self._stream.isatty()
        self._written = 0
        self._closed = threading.Event()
        self._stage = _Stage("", time.monotonic(), None)
        self._thread = threading.Thread(target=self._run, name="metastore-progress", daemon=True)

    def begin(self, stage: str, done: Callable[[], StageProgress] | None = None) -> None:
        self._stage = _Stage(stage, time.monotonic(), done)
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        """See `Progress`; the line of a terminal is cleared."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._written:
            self._write("\r" + " " * self._written + "\r")

    def _run(self) -> None:
        due = time.monotonic() + _FIRST_LINE
        while not self._closed.wait(_TICK):
            stage = self._stage
            now = time.monotonic()
            seconds = now - stage.began
            if self._overwrites:
                self._overwrite(_format_line(self._label, stage, seconds))
            elif now >= due:
                due = now + _LINE_EVERY
                self._write(f"{self._label}: {_format_stage(stage, seconds)}\n")

    def _overwrite(self, line: str) -> None:
        self._write("\r" + line.ljust(self._written))
        self._written = len(line)

    def _write(self, text: str) -> None:
        with suppress(Exception):  # the stream may be closed: the job goes on
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def show_stage(progress: Progress, stage: str) -> Iterator[None]:
    """Show the stage of a job that has only one."""
    progress.begin(stage)
    try:
        yield
    finally:
        progress.close()


def make_progress(progress: bool | Progress, label: str) -> Progress:  # noqa: FBT001 - the public parameter's type
    """Turn the public `progress` argument into a `Progress`."""
    if not isinstance(progress, bool):
        return progress
    return ProgressLine(label) if progress else NoProgress()


def _format_line(label: str, stage: _Stage, seconds: float) -> str:
    """Format a line of a terminal; its last column stays free, for some terminals wrap there."""
    width = shutil.get_terminal_size().columns - 1
    text = _format_stage(stage, seconds)
    bar = min(_BAR, width - len(label) - len(text) - len(": [] "))
    if stage.done is not None and bar >= _NARROWEST_BAR:
        filled = int(bar * stage.done().share)
        text = f"[{'#' * filled}{'-' * (bar - filled)}] {text}"
    room = max(width - len(text) - len(": "), 0)
    if len(label) > room:
        label = "…" + label[len(label) - room + 1 :]
    return f"{label}: {text}"[:width]


def _format_stage(stage: _Stage, seconds: float) -> str:
    if stage.done is None:
        return f"{stage.name}, {seconds:.0f} s"
    done = stage.done()
    text = f"{stage.name} {done.files}/{done.total} files"
    if not done.share:
        return f"{text}, {seconds:.0f} s"
    rate = f", {_format_number(done.rows / seconds)} rows/s" if seconds and done.rows else ""
    remaining = _format_duration(seconds / done.share - seconds)
    return f"{text}{rate}, {remaining} left"


def _format_number(number: float) -> str:
    """Format a number in three digits at most, such as 1.2M."""
    for scale, letter in _SCALES:
        if number >= scale:
            scaled = number / scale
            return f"{scaled:.1f}{letter}" if scaled < 10 else f"{scaled:.0f}{letter}"
    return f"{number:.0f}"


def _format_duration(seconds: float) -> str:
    """Format a time in one or two digits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
