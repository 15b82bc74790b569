"""Makes a job that never ends by itself: one data file is replaced by a pipe that nobody writes to."""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMIT = 60
PATIENCE = 10


@contextmanager
def blocked(path: str) -> Iterator[None]:
    """While it lasts, who opens the file waits."""
    file = Path(path)
    backup = file.with_name(f"{file.name}.kept")
    file.rename(backup)
    os.mkfifo(file)
    try:
        yield
    finally:
        file.unlink()
        backup.rename(file)


def is_read(path: str) -> bool:
    """Whether some process waits for the pipe, after the time that Spark gives to a killed task's Python.

    Looking wakes who waits: it is done once, at the end.
    """
    time.sleep(PATIENCE)
    return wake(path)


def wake(path: str) -> bool:
    """Has who waits for the pipe find it empty, and tells whether anybody did."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return False
    return True


def wait_until(condition: Callable[[], bool], description: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, description
        time.sleep(0.05)
