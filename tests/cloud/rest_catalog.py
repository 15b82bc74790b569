"""An Iceberg REST catalog that hands out keys with each table, and a guard before an S3 server that knows them.

The catalog keeps tables as pyiceberg does. Every answer about a table has new keys, for the table alone, that the guard
accepts until they expire.
"""

from __future__ import annotations

import html
import json
import re
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.table.update import update_table_metadata

from store import s3
from store.local_server import LocalServer

NAMESPACE = "db"
_CREDENTIAL = re.compile(r"Credential=([^/,]+)/")
_KEY = re.compile(r"<Key>([^<]*)</Key>")
_PREFIX = re.compile(r"(?:^|&)prefix=([^&]*)")


@dataclass(frozen=True)
class VendedKey:
    """A key that the catalog handed out.

    Attributes:
        prefix: The part of the bucket, with its folder, that the key opens.
        expires: When it ends, in seconds since 1970.
        without: A part of that for which there is another key.
    """

    prefix: str
    expires: float
    without: str | None = None

    def opens(self, path: str) -> bool:
        """Whether the key opens an object, or all objects of a prefix."""
        if self.without is not None and path.startswith(f"{self.without}/"):
            return False
        return f"{path}/".startswith(f"{self.prefix}/")


class Guard(s3.Proxy):
    """A proxy before an S3 server that refuses requests without a valid key.

    Args:
        address: Address of the server behind it.
    """

    def __init__(self, address: str) -> None:
        super().__init__(address, lambda _: None)
        self.RequestHandlerClass = _Guarded
        self.keys: dict[str, VendedKey] = {}
        self.requests: list[str] = []
        self.refused: list[str] = []

    def explain_refusal(self, path: str, headers: Any, body: bytes) -> str | None:
        """Say why a request is refused; None if it is not."""
        credential = _CREDENTIAL.search(headers.get("Authorization", ""))
        key = self.keys.get(credential[1]) if credential else None
        if key is None:
            return "InvalidAccessKeyId"
        if key.expires < time.time():
            return "ExpiredToken"
        return None if all(map(key.opens, _list_places(path, body))) else "AccessDenied"


def _list_places(path: str, body: bytes) -> list[str]:
    """List what a request is about: an object, all objects of a prefix, or those that are to be deleted."""
    address = urlsplit(path)
    decoded = unquote(address.path).strip("/")
    if address.query == "delete":
        return [f"{decoded}/{html.unescape(key)}" for key in _KEY.findall(body.decode())]
    prefix = _PREFIX.search(address.query)
    return [f"{decoded}/{unquote(prefix[1])}/" if prefix else f"{decoded}/"]


class _Guarded(s3._Passing):
    server: Guard

    def _serve(self) -> None:
        request = f"{self.command} {self.path}"
        self.server.requests.append(request)
        body = self._read_body()
        reason = self.server.explain_refusal(self.path, self.headers, body)
        if reason is None:
            self._pass_on(body)
            return
        self.server.refused.append(f"{reason} {request}")
        answer = f"<?xml version='1.0'?><Error><Code>{reason}</Code><Message>{reason}</Message></Error>".encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 - the names that the base class asks for


@dataclass
class Vending:
    """The way in which the catalog hands out keys.

    Attributes:
        seconds: For how long a key is valid.
        as_storage_credentials: Whether keys come as credentials of a prefix, as newer catalogs send them.
        signs: Whether no key is handed out: the catalog signs each request itself.
        settings: Settings of S3 that come with each key.
    """

    seconds: float = 3600
    as_storage_credentials: bool = False
    signs: bool = False
    settings: dict[str, str] = field(default_factory=dict)


class RestCatalog(LocalServer):
    """The catalog.

    Args:
        behind: Address of the S3 server itself, to which the catalog writes the tables' metadata.
        guard: The guard, whose address its clients get with their keys.
        name: The catalog's name, and the folder of its tables.
    """

    def __init__(self, behind: str, guard: Guard, name: str) -> None:
        super().__init__(_Answering)
        self.behind = behind
        self.guard = guard
        self.name = name
        self.vending = Vending()
        self.tables: dict[str, str] = {}
        self.requests: list[str] = []
        self.lock = threading.Lock()
        properties = {"s3.endpoint": behind, "s3.access-key-id": s3.KEY, "s3.secret-access-key": s3.SECRET}
        self.io = load_file_io({**properties, "s3.region": "us-east-1"})

    def create(self, request: dict[str, Any]) -> dict[str, Any]:
        """Create a table."""
        name = request["name"]
        location = request.get("location") or f"s3://{s3.BUCKET}/{self.name}/{NAMESPACE}/{name}"
        spec = request.get("partition-spec")
        order = request.get("write-order")
        metadata = new_table_metadata(
            Schema.model_validate(request["schema"]),
            PartitionSpec.model_validate(spec) if spec else UNPARTITIONED_PARTITION_SPEC,
            SortOrder.model_validate(order) if order else UNSORTED_SORT_ORDER,
            location,
            request.get("properties", {}),
        )
        self._write(name, metadata)
        return self.load(name)

    def commit(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """Change a table."""
        commit = CommitTableRequest.model_validate({"identifier": {"namespace": [NAMESPACE], "name": name}, **request})
        with self.lock:
            base = self._read(name)
            for requirement in commit.requirements:
                requirement.validate(base)
            self._write(name, update_table_metadata(base, commit.updates))
        return self.load(name)

    def load(self, name: str) -> dict[str, Any]:
        """Answer with a table and new keys for it."""
        metadata = self._read(name)
        answer = {"metadata-location": self.tables[name], "metadata": json.loads(metadata.model_dump_json())}
        if self.vending.signs:
            signer = {"signer.uri": self.address, "signer.endpoint": "v1/aws/s3/sign"}
            return {**answer, "config": {**self._name_server(), **signer, "s3.remote-signing-enabled": "true"}}
        if self.vending.as_storage_credentials:
            return {**answer, "config": self._name_server(), **self.credentials(name)}
        return {**answer, "config": self._vend(metadata.location)}

    def sign(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sign a request, so that the guard lets it pass: no server here looks at the signature itself."""
        key = f"SIGNED{self.name.upper()}"
        self.guard.keys[key] = VendedKey(f"{s3.BUCKET}/{self.name}", time.time() + self.vending.seconds)
        scope = f"Credential={key}/20260101/us-east-1/s3/aws4_request"
        signature = f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=0"
        return {"uri": request["uri"], "headers": {**request["headers"], "Authorization": [signature]}}

    def credentials(self, name: str) -> dict[str, Any]:
        """Answer with new keys of a table: one for its data files, and one for all else."""
        location = self._read(name).location
        data = f"{location}/data"
        keys = {location: self._vend(location, without=data), data: self._vend(data)}
        return {"storage-credentials": [{"prefix": prefix, "config": config} for prefix, config in keys.items()]}

    def _vend(self, location: str, without: str = "") -> dict[str, str]:
        key = f"VENDED{uuid.uuid4().hex[:12].upper()}"
        expires = time.time() + self.vending.seconds
        self.guard.keys[key] = VendedKey(_find_place(location), expires, _find_place(without) or None)
        return {
            "s3.access-key-id": key,
            "s3.secret-access-key": f"vended/secret+of={key}",
            "s3.session-token": f"token-of-{key}",
            "s3.session-token-expires-at-ms": str(int(expires * 1000)),
            **self._name_server(),
            **self.vending.settings,
        }

    def _name_server(self) -> dict[str, str]:
        return {"s3.endpoint": self.guard.address, "s3.path-style-access": "true", "client.region": "us-east-1"}

    def _read(self, name: str) -> Any:
        return FromInputFile.table_metadata(self.io.new_input(self.tables[name]))

    def _write(self, name: str, metadata: Any) -> None:
        metadata_path = f"{metadata.location}/metadata/{uuid.uuid4()}.metadata.json"
        ToOutputFile.table_metadata(metadata, self.io.new_output(metadata_path))
        self.tables[name] = metadata_path


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: RestCatalog

    def _serve(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = json.loads(body) if body else {}
        status, answer = self._answer(urlsplit(self.path).path.strip("/").split("/")[1:], request)
        self.send_response(status)
        data = b"" if answer is None else json.dumps(answer).encode()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _answer(self, path: list[str], request: dict[str, Any]) -> tuple[int, Any]:
        catalog = self.server
        method = self.command
        match path:
            case ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case ["aws", "s3", "sign"]:
                return 200, catalog.sign(request)
            case ["namespaces"]:
                return 200, {"namespaces": [[NAMESPACE]], "namespace": [NAMESPACE], "properties": {}}
            case ["namespaces", name]:
                return (200, {"namespace": [name], "properties": {}}) if name == NAMESPACE else _missing(name)
            case ["namespaces", _, "tables"] if method == "POST":
                return 200, catalog.create(request)
            case ["namespaces", _, "tables"]:
                return 200, {"identifiers": [{"namespace": [NAMESPACE], "name": name} for name in catalog.tables]}
            case ["namespaces", _, "tables", name, *_] if name not in catalog.tables:
                return _missing(name)
            case ["namespaces", _, "tables", name, *part]:
                return self._answer_about_table(name, part, request)
        return _missing("/".join(path))

    def _answer_about_table(self, name: str, part: list[str], request: dict[str, Any]) -> tuple[int, Any]:
        if part == ["metrics"]:
            return 204, None
        if part == ["credentials"]:
            return 200, self.server.credentials(name)
        if self.command == "POST":
            return 200, self.server.commit(name, request)
        if self.command == "DELETE":
            del self.server.tables[name]
            return 204, None
        return 200, self.server.load(name)

    do_GET = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 - the names that the base class asks for

    def log_message(self, *_: object) -> None:
        """Requests are no news."""


def _find_place(location: str) -> str:
    """The bucket and folder of a location."""
    return location.partition("://")[2].rstrip("/")


def _missing(name: str) -> tuple[int, Any]:
    kind = "NoSuchTableException"
    return 404, {"error": {"message": f"{name} does not exist", "type": kind, "code": 404}}
