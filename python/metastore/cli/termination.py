"""Ctrl-C and SIGTERM end a command with one line and the exit code that shells know: 130 and 143.

Both are raised in the main thread, so that what a command has begun is undone where it was begun: a Spark is ended, a
temporary folder removed. Where that thread is in a library's call that does not look for signals, as one that waits for
a store, or where the undoing takes too long or a second Ctrl-C is pressed, the process ends as it is: whatever it
writes appears as a whole or not at all.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


PATIENCE_SECONDS = 15.0
"""How long undoing may take: a Spark that stops takes a few."""

_LINES = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class TerminationSignal(KeyboardInterrupt):
    """SIGTERM, where a Ctrl-C would be raised."""


def listen_for_signals() -> None:
    """Let signals end this process from now on; signals that the parent process ignores stay ignored."""
    watched = [number for number in _LINES if signal.getsignal(number) is not signal.SIG_IGN]
    for number in watched:
        signal.signal(number, _raise)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    Thread(target=_insist, args=(reader,), name="metastore-signals", daemon=True).start()


def stop_exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that was stopped.

    Example:
        >>> stop_exit_code(KeyboardInterrupt()), stop_exit_code(TerminationSignal())
        (130, 143)
    """
    return 128 + _signal_of(stop)


def describe_stop(stop: KeyboardInterrupt) -> str:
    """Return the line that a stopped command prints.

    Example:
        >>> describe_stop(KeyboardInterrupt())
        'interrupted'
    """
    return _LINES[_signal_of(stop)]


def _signal_of(stop: KeyboardInterrupt) -> signal.Signals:
    return signal.SIGTERM if isinstance(stop, TerminationSignal) else signal.SIGINT


def _raise(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - what `signal` calls
    logging.disable()  # py4j logs the call that is cut off, with its stack, and each that fails while a Spark ends
    raise TerminationSignal if number == signal.SIGTERM else KeyboardInterrupt


def _insist(reader: int) -> None:
    """End the process if the main thread does not do so in time."""
    number = _next(reader)
    while number not in _LINES:
        number = _next(reader)
    select.select([reader], [], [], PATIENCE_SECONDS)
    sys.stderr.write(f"{_LINES[signal.Signals(number)]}\n")
    sys.stderr.flush()
    os._exit(128 + number)


def _next(reader: int) -> int:
    return os.read(reader, 1)[0]
