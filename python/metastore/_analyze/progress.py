"""Progress of a job, on stderr."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_TICK = 0.2
_LINE_EVERY = 10.0
_BAR = 30


class Progress(Protocol):
    """Told how far a job is."""

    def update(self, done: int, total: int) -> None:
        """Note that `done` of `total` data files are finished."""

    def close(self) -> None:
        """Note that there is nothing more to come."""


class Silent:
    """Says nothing."""

    def update(self, done: int, total: int) -> None:
        """Ignore the numbers."""

    def close(self) -> None:
        """Do nothing."""


class Lines:
    """A bar on a terminal, a line now and then anywhere else.

    Example:
        >>> Lines("db.sales").update(3, 12)
    """

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self._label = label
        self._stream = stream or sys.stderr
        self._bar = self._stream.isatty()
        self._started = self._said = time.monotonic()

    def update(self, done: int, total: int) -> None:
        """Show the numbers, where they are not shown too often."""
        if self._bar:
            filled = _BAR * done // max(total, 1)
            bar = "#" * filled + "-" * (_BAR - filled)
            self._stream.write(f"\r{self._label} [{bar}] {done}/{total} files")
        elif time.monotonic() - self._said >= _LINE_EVERY:
            self._said = time.monotonic()
            self._stream.write(f"{self._label}: {done} of {total} files, {self._said - self._started:.0f} s\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line of the bar."""
        if self._bar:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def progress_of(asked: bool | Progress, label: str) -> Progress:  # noqa: FBT001 - the public parameter's type
    """Turn the public `progress` argument into something that can be told.

    Example:
        >>> isinstance(progress_of(False, "t"), Silent)
        True
    """
    if isinstance(asked, bool):
        return Lines(label) if asked else Silent()
    return asked


class Watch:
    """Reports a counter regularly while a job blocks the thread that started it.

    Example:
        >>> with Watch(Silent(), lambda: 1, 2):
        ...     pass
    """

    def __init__(self, progress: Progress, done: Callable[[], int], total: int) -> None:
        self._progress = progress
        self._done = done
        self._total = total
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metastore-progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(_TICK):
            self._progress.update(self._done(), self._total)
        self._progress.update(self._done(), self._total)
