"""Real drivers, each with a mark in its environment by which whatever it leaves behind is found."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from sql import servers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LIMIT = 240
"""Seconds in which what takes a few must have happened."""
MARK = "METASTORE_TEST_DRIVER"

START = """
import json, sys, time
from pyspark.sql import SparkSession
import metastore

def start():
    builder = SparkSession.builder
    for key, value in json.loads(sys.argv[1]).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
"""
"""Begins a script whose first argument are the settings of its Spark."""

needs_proc = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="processes are looked up in /proc")


class Driver:
    """A driver that runs, its JVM and its Pythons.

    Attributes:
        process: The process that was started.
    """

    def __init__(self, process: subprocess.Popen[str], mark: str) -> None:
        self.process, self._mark = process, mark

    def processes(self) -> dict[int, str]:
        """Command lines of the processes that are alive."""
        process_ids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return {pid: words for pid in process_ids if (words := self._words(pid))}

    def pids(self, word: str) -> list[int]:
        return [pid for pid, words in self.processes().items() if word in words]

    def _words(self, pid: int) -> str:
        try:
            if self._mark.encode() not in Path(f"/proc/{pid}/environ").read_bytes():
                return ""
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            return "" if state == "Z" else Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except OSError:  # it has ended meanwhile
            return ""

    def ends(self) -> str:
        """Waits until it has ended and nothing is left of it; its output."""
        said = self.process.communicate(timeout=LIMIT)[0]
        deadline = time.monotonic() + LIMIT
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not self.processes(), said
        return said

    def says(self, word: str) -> str:
        """Waits for a line with this word."""
        lines = iter(self.process.stdout.readline, "")
        said = []
        for line in lines:
            said.append(line)
            if word in line:
                return line
        raise AssertionError("".join(said))


@contextmanager
def driver(
    command: Sequence[str],
    folder: Path,
    *,
    start_new_session: bool = False,
    output: int | IO[str] = subprocess.PIPE,
    **environment: str,
) -> Iterator[Driver]:
    """Starts a driver; it is killed at the end with all that it has started."""
    mark = str(uuid.uuid4())
    process = subprocess.Popen(
        list(command),
        env={**servers.environment(), "PYSPARK_PYTHON": sys.executable, MARK: mark, **environment},
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=start_new_session,
    )
    started = Driver(process, mark)
    try:
        yield started
    finally:
        process.kill()
        for pid in started.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def submit(script: Path, conf: Mapping[str, str]) -> list[str]:
    """`spark-submit` of a script."""
    return [str(servers.HOME / "bin/spark-submit"), *servers.options(conf), str(script)]


@contextmanager
def serving(main: str, port: int, conf: Mapping[str, str], folder: Path) -> Iterator[None]:
    """A server of Spark's, listening on a port; stopped at the end, when nothing may be left of it."""
    log = folder / "server.log"
    command = [str(servers.HOME / "bin/spark-submit"), *servers.options(conf), "--class", main, "spark-internal"]
    with log.open("w") as output, driver(command, folder, output=output) as server:
        _listens(server.process, port, log)
        yield
        server.process.terminate()
        server.ends()


def _listens(server: subprocess.Popen[str], port: int, log: Path) -> None:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"nothing listens on {port}: {log.read_text()}")
