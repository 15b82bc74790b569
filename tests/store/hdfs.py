"""A real HDFS, name node and data node in a process of their own, and a proxy that loses what is said about renames."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from metastore import jars

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Self

_MAIN = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
_LIMIT = 120


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """An empty HDFS with its data in a folder; gives the name node's host and port."""
    details, log = folder / "details.json", folder / "hdfs.log"
    path = os.pathsep.join([str(jars.fetch("hdfs")), str(jars.fetch("junit")), f"{jars.pyspark_jars()}/*"])
    java = Path(os.environ["JAVA_HOME"]) / "bin/java" if "JAVA_HOME" in os.environ else shutil.which("java")
    command = [str(java), "-Xmx384m", f"-Dtest.build.data={folder}", f"-Dhadoop.log.dir={folder}", "-cp", path, _MAIN]
    options = ["-nomr", "-format", "-writeDetails", str(details), "-D", "dfs.replication=1"]
    with (
        log.open("w") as output,
        subprocess.Popen([*command, *options], cwd=folder, stdout=output, stderr=output) as it,
    ):
        try:
            yield f"127.0.0.1:{_port(it, details, log)}"
        finally:
            it.kill()


def _port(process: subprocess.Popen[bytes], details: Path, log: Path) -> int:
    deadline = time.monotonic() + _LIMIT
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        with suppress(FileNotFoundError, ValueError):
            return int(json.loads(details.read_text())["namenode_port"])
        time.sleep(0.1)
    raise AssertionError(f"HDFS does not start: {log.read_text()}")


class Proxy:
    """Passes bytes between clients and a name node, and breaks connections that ask for a rename.

    Args:
        address: Of the name node.
        trouble: Asked for every rename: "lose" keeps the reply from the client, "drop" keeps the request from the name
            node, None passes both on.
    """

    def __init__(self, address: str, trouble: Callable[[], str | None]) -> None:
        host, port = address.split(":")
        self.behind = (host, int(port))
        self.trouble = trouble
        self.caused = 0
        self._listening = socket.create_server(("127.0.0.1", 0))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                _Connection(self, client, socket.create_connection(self.behind)).start()


class _Connection:
    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.lost = False

    def start(self) -> None:
        for work in (self._requests, self._replies):
            threading.Thread(target=work, daemon=True).start()

    def _requests(self) -> None:
        with suppress(OSError):
            while data := self.client.recv(1 << 16):
                trouble = self.proxy.trouble() if b"\x07rename2" in data else None
                self.proxy.caused += trouble is not None
                self.lost = trouble is not None
                if trouble != "drop":
                    self.server.sendall(data)
                else:
                    break
        self._close()

    def _replies(self) -> None:
        with suppress(OSError):
            while (data := self.server.recv(1 << 16)) and not self.lost:
                self.client.sendall(data)
        self._close()

    def _close(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
