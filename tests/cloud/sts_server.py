"""A service that gives keys of roles."""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from cloud.rest_catalog import VendedKey
from store.local_server import LocalServer

if TYPE_CHECKING:
    from cloud.rest_catalog import Guard

_ANSWER = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
<AssumedRoleUser><AssumedRoleId>AROA:metastore</AssumedRoleId><Arn>arn:aws:sts::1:assumed-role/r/s</Arn></AssumedRoleUser>
<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>role/secret+of={key}</SecretAccessKey>
<SessionToken>token-of-{key}</SessionToken><Expiration>{end}</Expiration></Credentials>
</AssumeRoleResult></AssumeRoleResponse>"""


class StsServer(LocalServer):
    """The service: each answer has a new key that opens one prefix.

    Args:
        guard: The guard that learns the keys.
        prefix: The part of the store that they open.
        seconds: For how long they are valid.
    """

    def __init__(self, guard: Guard, prefix: str, seconds: float) -> None:
        super().__init__(_Answering)
        self.guard = guard
        self.prefix = prefix
        self.seconds = seconds
        self.roles = 0

    def assume_role(self) -> str:
        """Answer with a new key."""
        self.roles += 1
        key = f"ROLE{uuid.uuid4().hex[:12].upper()}"
        end = time.time() + self.seconds
        self.guard.keys[key] = VendedKey(self.prefix, end)
        return _ANSWER.format(key=key, end=datetime.fromtimestamp(end, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StsServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = self.server.assume_role().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Requests are no news."""
