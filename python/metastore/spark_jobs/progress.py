"""How far a job is, on stderr."""

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


_TICK = 0.2
_FIRST_LINE = 0.5
_LINE_EVERY = 10.0
_BAR = 20
_NARROWEST_BAR = 5
_SCALES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True)
class StageProgress:
    """What is done of a stage.

    Attributes:
        files: Data files that are finished.
        total: All data files.
        rows: Rows in those that are finished.
        share: How much of the work that is, 0 to 1.
    """

    files: int
    total: int
    rows: int
    share: float


class Progress(Protocol):
    """Told what a job does."""

    def begin(self, stage: str, done: Callable[[], StageProgress] | None = None) -> None:
        """Note that a stage begins, and how to ask what is done of it: in any thread, at any time."""

    def close(self) -> None:
        """Note that there is nothing more to come."""


class TextStream(Protocol):
    """What of a text stream is needed here."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""

    def write(self, text: str, /) -> object:
        """Take a text."""

    def flush(self) -> object:
        """Hand on what was taken."""


class NoProgress:
    """Says nothing."""

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
    """Says what a job does, from its first second on: a line that is overwritten on a terminal, else a line at times.

    What takes less than half a second is not worth a line.
    """

    def __init__(self, label: str, stream: TextStream | None = None) -> None:
        self._label = make_visible(label)
        self._stream: TextStream = stream or sys.stderr
        self._overwrites = self._stream.isatty()
        self._written = 0
        self._over = threading.Event()
        self._stage = _Stage("", time.monotonic(), None)
        self._thread = threading.Thread(target=self._run, name="metastore-progress", daemon=True)

    def begin(self, stage: str, done: Callable[[], StageProgress] | None = None) -> None:
        self._stage = _Stage(stage, time.monotonic(), done)
        if not self._thread.is_alive():
            self._thread.start()

    def close(self) -> None:
        """See `Progress`; a line of a terminal is empty then."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._written:
            self._write("\r" + " " * self._written + "\r")

    def _run(self) -> None:
        due = time.monotonic() + _FIRST_LINE
        while not self._over.wait(_TICK):
            stage, now = self._stage, time.monotonic()
            if self._overwrites:
                self._overwrite(_fitted(self._label, stage, now - stage.began))
            elif now >= due:
                due = now + _LINE_EVERY
                self._write(f"{self._label}: {_told(stage, now - stage.began)}\n")

    def _overwrite(self, line: str) -> None:
        self._write("\r" + line.ljust(self._written))
        self._written = len(line)

    def _write(self, text: str) -> None:
        with suppress(Exception):  # nobody listens any more: the job goes on
            self._stream.write(text)
            self._stream.flush()


@contextmanager
def show_stage(progress: Progress, stage: str) -> Iterator[None]:
    """Let a job of one stage be told of while it lasts."""
    progress.begin(stage)
    try:
        yield
    finally:
        progress.close()


def make_progress(asked: bool | Progress, label: str) -> Progress:  # noqa: FBT001 - the public parameter's type
    """Turn the public `progress` argument into something that can be told."""
    if isinstance(asked, bool):
        return ProgressLine(label) if asked else NoProgress()
    return asked


def _fitted(label: str, stage: _Stage, seconds: float) -> str:
    """One line of a terminal, whose last column stays free: some go to the next line with it."""
    width = shutil.get_terminal_size().columns - 1
    told = _told(stage, seconds)
    share = stage.done().share if stage.done else None
    bar = min(_BAR, width - len(label) - len(told) - len(": [] "))
    if share is not None and bar >= _NARROWEST_BAR:
        filled = int(bar * share)
        told = f"[{'#' * filled}{'-' * (bar - filled)}] {told}"
    room = max(width - len(told) - len(": "), 0)
    name = label if len(label) <= room else "…" + label[len(label) - room + 1 :]
    return f"{name}: {told}"[:width]


def _told(stage: _Stage, seconds: float) -> str:
    done = stage.done() if stage.done else None
    if done is None:
        return f"{stage.name}, {seconds:.0f} s"
    told = f"{stage.name} {done.files}/{done.total} files"
    if not done.share:
        return f"{told}, {seconds:.0f} s"
    rate = f", {_short(done.rows / seconds)} rows/s" if seconds and done.rows else ""
    return f"{told}{rate}, {_duration(seconds / done.share - seconds)} left"


def _short(number: float) -> str:
    """A number in three digits at most: 1.2M."""
    for scale, letter in _SCALES:
        if number >= scale:
            scaled = number / scale
            return f"{scaled:.1f}{letter}" if scaled < 10 else f"{scaled:.0f}{letter}"
    return f"{number:.0f}"


def _duration(seconds: float) -> str:
    """A time in one or two digits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
