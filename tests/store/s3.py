"""An S3 server in a process of its own, and a proxy before it that loses, repeats and delays replies."""

from __future__ import annotations

import http.client
import random
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from pyarrow.fs import FileSelector

from metastore.store.credentials import Credentials, open_file_system
from store.local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "statistics"
KEY, SECRET = "PLANTEDKEY", "planted/secret+of=this#test"

_SERVER = """
import logging, sys, time
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").disabled = True
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@contextmanager
def running() -> Iterator[str]:
    """A server with an empty bucket; gives its address."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            host, port = process.stdout.readline().split()
            address = f"http://{host}:{port}"
            make_bucket(address, BUCKET)
            yield address
        finally:
            process.kill()


def make_bucket(address: str, name: str) -> None:
    """Make a bucket on a server."""
    make = urllib.request.Request(f"{address}/{name}", method="PUT")  # noqa: S310 - our own server
    urllib.request.urlopen(make).close()  # noqa: S310 - as above


def access(address: str) -> Credentials:
    return Credentials(
        {
            "access_key_id": KEY,
            "secret_access_key": SECRET,
            "endpoint": address,
            "region": "us-east-1",
            "client_options": {"allow_http": True, "timeout": "5s"},
        }
    )


def read_all(address: str, folder: str, part: str) -> dict[str, bytes]:
    """Read all objects of a folder, which begins with its bucket, that have this in their path."""
    system, root = open_file_system(f"s3a://{folder}", access(address))
    files = system.get_file_info(FileSelector(root, recursive=True))
    paths = [file.path for file in files if file.is_file and part in file.path]
    return {path: system.open_input_file(path).readall() for path in paths}


class Proxy(LocalServer):
    """Passes requests on, and then keeps what `trouble` says from the client.

    Args:
        address: Of the server behind it.
        trouble: Asked for every PUT: "lose" drops the reply, "repeat" sends the request twice and answers with the
            second reply, "refuse" answers 503 after the request was served, None answers as the server does.
    """

    def __init__(self, address: str, trouble: Any) -> None:
        super().__init__(_Passing)
        self.behind = address.removeprefix("http://")
        self.trouble = trouble
        self.caused = 0

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that were killed are no news."""


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _serve(self) -> None:
        self._pass_on(self._read_body())

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        del self.headers["Transfer-Encoding"]  # it is passed on as a whole
        body = b""
        while length := int(self.rfile.readline(), 16):
            body += self.rfile.read(length)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _pass_on(self, body: bytes) -> None:
        trouble = self.server.trouble(self.path) if self.command == "PUT" else None
        status, headers, answer = self._passed_on(body)
        if trouble:
            self.server.caused += 1
        if trouble == "repeat":
            status, headers, answer = self._passed_on(body)
        if trouble == "lose":
            self.close_connection = True
            return
        self.send_response(503 if trouble == "refuse" else status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "date", "server", "content-length"):
                self.send_header(name, value)
        size = dict(headers).get("Content-Length", len(answer)) if self.command == "HEAD" else len(answer)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(answer)

    def _passed_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(self.server.behind, timeout=30)
        try:
            connection.request(self.command, self.path, body, dict(self.headers))
            reply = connection.getresponse()
            return reply.status, reply.getheaders(), reply.read()
        finally:
            connection.close()

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 - the names that the base class asks for

    def log_message(self, *_: object) -> None:
        """Requests are no news."""


def sometimes(seed: int, share: float) -> Any:
    """Trouble for a share of all requests."""
    chance = random.Random(seed)
    return lambda _: chance.choice(("lose", "repeat", "refuse")) if chance.random() < share else None
