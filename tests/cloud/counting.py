"""A proxy before an S3 server that counts and delays requests, and treats some as slow and broken servers do."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from store import s3

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SLOW_SECONDS = 2.0
"""Seconds of each request of a slow server."""
FOLDER = "_metastore"
REFUSED = b"<?xml version='1.0'?><Error><Code>InternalError</Code><Message>refused</Message></Error>"


@dataclass(frozen=True)
class Request:
    """A request that was answered.

    Attributes:
        method: Its method; LIST for a listing.
        key: The object, or the prefix of a listing.
        bytes: The bytes that were asked for; empty for the whole object.
        begin: When it came, in seconds.
        end: When it was answered.
    """

    method: str
    key: str
    bytes: str
    begin: float
    end: float


def count_rounds(requests: Sequence[Request]) -> int:
    """Count round trips: the most requests of which each came after the answer to the one before."""
    rounds = 0
    last_end = float("-inf")
    for request in sorted(requests, key=lambda entry: entry.end):
        if request.begin >= last_end:
            rounds += 1
            last_end = request.end
    return rounds


class CountingProxy(s3.Proxy):
    """A proxy that counts the requests for statistics.

    Args:
        address: Address of the server behind it.
        delay: Seconds that each request waits.

    Attributes:
        fault: What happens to requests for statistics: None, "silent", "slow" or "errors".
    """

    def __init__(self, address: str, delay: float = 0.0) -> None:
        super().__init__(address, lambda _: None)
        self.RequestHandlerClass = _Counting
        self.delay = delay
        self.fault: str | None = None
        self._lifted = threading.Event()
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._failures = 0

    def record(self, action: Callable[[], object]) -> list[Request]:
        """Return the requests for statistics that an action makes, in the order of their coming."""
        self._requests = []
        action()
        with self._lock:
            return sorted(self._requests, key=lambda entry: entry.begin)

    def note(self, request: Request) -> None:
        """Count a request."""
        with self._lock:
            self._requests.append(request)

    def begin_fault(self, fault: str) -> None:
        """Treat requests for statistics so from now on."""
        self._lifted.clear()
        self.fault = fault

    def end_fault(self) -> None:
        """Answer as usual; connections that never got an answer end."""
        self.fault = None
        self._lifted.set()

    def wait_for_end(self) -> None:
        """Wait until the fault ends."""
        self._lifted.wait()

    def is_to_fail(self) -> bool:
        """Whether this request is one of every second."""
        with self._lock:
            self._failures += 1
            return self._failures % 2 == 1


class _Counting(s3._Passing):
    server: CountingProxy

    def _serve(self) -> None:
        begin = time.monotonic()
        body = self._read_body()
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        is_listing = self.command == "GET" and "list-type" in query
        key = "".join(query.get("prefix", [])) if is_listing else unquote(address.path).strip("/").partition("/")[2]
        if FOLDER not in key.split("/"):
            self._pass_on(body)
            return
        if not self._is_broken():
            time.sleep(self.server.delay)
            self._pass_on(body)
        method = "LIST" if is_listing else self.command
        self.server.note(Request(method, key, self.headers.get("Range", ""), begin, time.monotonic()))

    def _is_broken(self) -> bool:
        """Whether the request gets no answer, or an error."""
        match self.server.fault:
            case "silent":
                self.server.wait_for_end()
                self.close_connection = True
                return True
            case "slow":
                time.sleep(SLOW_SECONDS)
            case "errors" if self.server.is_to_fail():
                self.send_response(503 if self.command == "HEAD" else 500)
                self.send_header("Content-Length", "0" if self.command == "HEAD" else str(len(REFUSED)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(REFUSED)
                return True
        return False

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 - the names that the base class asks for
