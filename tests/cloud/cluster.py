"""A standalone Spark cluster on this machine whose hosts do not see each other's Pythons."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING

from sql import servers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LIMIT = 120
"""Seconds in which a cluster must have started."""
DRIVER_ENVIRONMENT = Path(sys.prefix)


def can_hide() -> bool:
    """Whether this user may give a process a view of its own of the file system."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    return subprocess.run([unshare, "-rm", "true"], check=False, capture_output=True).returncode == 0


def hide(folder: Path, command: Sequence[str]) -> list[str]:
    """Return a command that runs another one for which a folder is empty."""
    return ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder), *command]


def make_workers_python(folder: Path) -> Path:
    """Make an environment with nothing but numpy and pyarrow, as in the driver's environment, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for library in ("numpy", "numpy.libs", "pyarrow"):
        source = DRIVER_ENVIRONMENT / packages.relative_to(folder) / library
        if source.exists():
            shutil.copytree(source, packages / library, ignore=shutil.ignore_patterns("tests", "include", "*.pyx"))
    return folder / "bin" / "python"


class Cluster:
    """A master and two workers.

    Attributes:
        master: The address for `spark.master`.
        workers_python: The workers' Python, which the driver's host does not have.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = folder / "spark"
        self.workers_python = make_workers_python(folder / "workers")
        self.master = f"spark://127.0.0.1:{servers.free_port()}"
        self._status_port = servers.free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the processes, and wait until both workers are known to the master."""
        shutil.copytree(servers.HOME, self._home, symlinks=True, copy_function=_link, ignore=_ours)
        port = self.master.rpartition(":")[2]
        ports = ["--host", "127.0.0.1", "--port", port, "--webui-port", str(self._status_port)]
        self._launch("org.apache.spark.deploy.master.Master", *ports)
        for number in range(2):
            work_options = ["--work-dir", str(self._folder / f"work{number}"), "--host", "127.0.0.1"]
            resources = ["--cores", "1", "--memory", "1g"]
            self._launch("org.apache.spark.deploy.worker.Worker", *work_options, *resources, self.master)
        self._await_workers()

    def stop(self) -> None:
        """Stop the processes."""
        for process in reversed(self._processes):
            process.terminate()
            process.wait(LIMIT)

    def run_driver(self, arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a program with the driver's Python on a host without the workers' one."""
        command = hide(self._folder / "workers", [sys.executable, *arguments])
        return subprocess.run(
            command,
            env={**servers.environment(), **environment},
            check=False, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def archive(self) -> Path:
        """Pack the workers' Python as `spark.archives` takes it."""
        packed = self._folder / "environment.tar.gz"
        with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
            archive.add(self._folder / "workers", arcname=".")
        return packed

    def _launch(self, class_name: str, *arguments: str) -> None:
        java = [_java(), "-Xmx256m", "-cp", f"{self._home}/jars/*", class_name, *arguments]
        environment = {
            "PATH": f"{self.workers_python.parent}{os.pathsep}/usr/bin:/bin",
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_DIRS": str(self._folder),
            "SPARK_SCALA_VERSION": "2.13",  # Spark's scripts say it
        }
        with (self._folder / "cluster.log").open("ab") as log:
            command = hide(DRIVER_ENVIRONMENT, java)
            self._processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    def _await_workers(self) -> None:
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            if self._status().count('"ALIVE"') == 3:  # the master says it of itself, too
                return
            time.sleep(0.2)
        raise AssertionError((self._folder / "cluster.log").read_text()[-3000:])

    def _status(self) -> str:
        """Return the master's page, or nothing if the master has not started."""
        connection = HTTPConnection("127.0.0.1", self._status_port, timeout=LIMIT)
        try:
            connection.request("GET", "/json/")
            return connection.getresponse().read().decode()
        except OSError:
            return ""
        finally:
            connection.close()


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else str(shutil.which("java"))


def _link(source: str, target: str) -> None:
    """Link a file where that is possible: jars are large."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _ours(folder: str, names: list[str]) -> list[str]:
    """Our jar: workers run a Spark without it."""
    return [name for name in names if name.startswith("metastore-") or name == "__pycache__"]


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Run a cluster."""
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
