"""Every request names its bucket, and an answer about another bucket or other keys is not believed."""

from __future__ import annotations

import functools
import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyarrow import fs

from metastore.errors import MetastoreError, StoreNotReadable, StoreNotWritable, UnsupportedTable
from metastore.format.object_schemas import SKETCHES
from metastore.store import Store
from metastore.store.arrow_blobs import read_object, write_object
from metastore.store.credentials import Credentials, find_credentials, open_file_system
from metastore.store.folder import Folder
from store.local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CASES = json.loads((Path(__file__).parents[1] / "cases/buckets.json").read_text(encoding="utf-8"))["cases"]
VARIABLES = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
             "AWS_BUCKET", "AWS_BUCKET_NAME", "AWS_REGION", "AWS_DEFAULT_REGION", "STORAGE_EMULATOR_HOST")  # fmt: skip
KEYS = {"fs.s3a.access.key": "key", "fs.s3a.secret.key": "secret"}
SKETCH = pa.Table.from_pylist([{"column": 0, "file": 0, "theta": b"x"}], SKETCHES)
TABLE = "warehouse/t"
MISSING = "<Error><Code>NoSuchKey</Code></Error>"
EMPTY = "<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>"


@dataclass
class Server:
    """An HTTP server that is a proxy, too: it answers for all hosts, and writes down the requests.

    Attributes:
        requests: Method and URL of each request; of a request through TLS the host alone.
        answer: Makes status and body of a method and a path.
    """

    address: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    answer: Callable[[str, str], tuple[int, str]] = lambda _, path: (
        (200, EMPTY) if "list-type" in path else (404, MISSING)
    )


@pytest.fixture
def server(monkeypatch) -> Iterator[Server]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    recorded = Server()
    with serving(recorded):
        yield recorded


@contextmanager
def serving(recorded: Server) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def serve(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = self.path if "://" in self.path else f"http://{self.headers['Host']}{self.path}"
            recorded.requests.append((self.command, url))
            status, body = recorded.answer(self.command, urlsplit(url).path + "?" + urlsplit(url).query)
            self.reply(status, body.encode())

        def refuse(self) -> None:
            recorded.requests.append((self.command, f"https://{self.path.removesuffix(':443')}/"))
            self.reply(403, b"")
            self.close_connection = True

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = serve  # noqa: N815 - the names that the base class asks for
        do_CONNECT = refuse  # noqa: N815 - as above

        def log_message(self, *_: object) -> None:
            """Requests are no news."""

        def handle(self) -> None:
            with suppress(ConnectionError):
                super().handle()

    with LocalServer(Handler) as running:
        recorded.address = running.address
        yield


@pytest.fixture(params=CASES, ids=[case["case"] for case in CASES])
def case(request, server, monkeypatch) -> dict:
    """A case, whose requests all go through the server."""
    location = {"bucket": "lake", "settings": {}, "environment": {}, **request.param}
    through = {"HTTP_PROXY": server.address, "HTTPS_PROXY": server.address, "http_proxy": server.address}
    for name, value in {**through, "AWS_MAX_ATTEMPTS": "1", **location["environment"]}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    once = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    through_proxy = functools.partial(fs.S3FileSystem, proxy_options=server.address, retry_strategy=once)
    monkeypatch.setattr(fs, "S3FileSystem", through_proxy)
    return location


def find_access(case: dict) -> tuple[str, Credentials]:
    settings = {**KEYS, **{f"fs.s3a.{name}": value for name, value in case["settings"].items()}}
    uri = f"s3a://{case['bucket']}/{TABLE}/_metastore"
    return uri, find_credentials(uri, settings.get)


def check_requests(requests: list[tuple[str, str]], base: str, least: int) -> None:
    assert len(requests) >= least
    for method, url in requests:
        if base.startswith("https:"):
            assert url == f"https://{urlsplit(base).netloc}/", method
        elif "list-type=2" in url:
            assert url.startswith((f"{base.rstrip('/')}?", f"{base}?")), url
            assert f"prefix={TABLE.replace('/', '%2F')}" in url
        else:
            assert url.startswith(f"{base}{TABLE}/_metastore/"), url


def test_the_requests_of_the_driver(server, case):
    uri, access = find_access(case)
    if "refused" in case:
        with pytest.raises(UnsupportedTable, match=case["refused"]):
            Store.open(uri, access=access)
        return
    store = Store.open(uri, access=access, writable=True)
    for act in (store.read, store.ensure_writable):
        with suppress(MetastoreError):
            act()
        if case["url"].startswith("https:"):
            break  # the host is all that is seen, and retries take their time
    check_requests(server.requests, case["url"], 1)


def test_the_requests_of_workers(server, case):
    uri, access = find_access(case)
    if not case["url"]:
        with pytest.raises(UnsupportedTable, match=case["refused"]):
            open_file_system(uri, access)
        return
    name = f"sketches-{'0' * 8}-0000-0000-0000-{'0' * 12}.parquet"
    with suppress(MetastoreError):
        write_object(uri, "sketches", SKETCH, [1], access=access)
    with suppress(MetastoreError):
        read_object(uri, name, access=access)
    system, path = open_file_system(uri, access)
    with suppress(OSError):
        system.get_file_info(fs.FileSelector(f"{path}/log"))
    check_requests(server.requests, case.get("pyarrow", case["url"]), 2)


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_the_environment_alone_names_an_endpoint(server, monkeypatch, name):
    for key, value in {name: server.address, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}.items():
        monkeypatch.setenv(key, value)
    uri = f"s3a://lake/{TABLE}/_metastore"
    assert Store.open(uri).read() is None
    assert Folder(uri).names() == ()
    with suppress(MetastoreError):
        write_object(uri, "sketches", SKETCH, [1])
    check_requests(server.requests, f"{server.address}/lake/", 5)


def open_store(server: Server, *, writable: bool = False) -> Store:
    uri = f"s3a://lake/{TABLE}/_metastore"
    access = find_credentials(uri, {**KEYS, "fs.s3a.endpoint": server.address}.get)
    return Store.open(uri, access=access, writable=writable)


def open_folder(server: Server, monkeypatch) -> Folder:
    for key, value in {
        "AWS_ENDPOINT_URL": server.address,
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
    }.items():
        monkeypatch.setenv(key, value)
    return Folder(f"s3a://lake/{TABLE}")


def wrong_answer(error: str, status: int = 404) -> Callable[[str, str], tuple[int, str]]:
    """A server that takes the first folder for the bucket: its listings are those of all buckets."""
    buckets = (
        "<ListAllMyBucketsResult><Buckets><Bucket><Name>warehouse</Name></Bucket></Buckets></ListAllMyBucketsResult>"
    )
    return lambda _, path: (200, buckets) if "list-type" in path else (status, f"<Error>{error}</Error>")


WRONG = {
    "no such bucket": "<Code>NoSuchBucket</Code><BucketName>warehouse</BucketName>",
    "another bucket": "<Code>NoSuchKey</Code><Key>{key}</Key><BucketName>warehouse</BucketName>",
    "another key": "<Code>NoSuchKey</Code><Key>{short}</Key>",
    "a key with the bucket": "<Code>NoSuchKey</Code><Key>lake/{key}</Key>",
}


@pytest.mark.parametrize("error", WRONG.values(), ids=WRONG)
def test_a_server_that_loses_the_bucket_is_not_believed(server, monkeypatch, error):
    log = f"{TABLE}/_metastore/log/{1:020}.json"
    server.answer = wrong_answer(error.format(key=log, short=log.removeprefix("warehouse/")))
    with pytest.raises(StoreNotReadable, match=r"bucket|in place of") as raised:
        open_store(server).read()
    assert "fs.s3a.path.style.access" in str(raised.value)
    absent = f"{TABLE}/absent"
    server.answer = wrong_answer(error.format(key=absent, short=absent.removeprefix("warehouse/")))
    with pytest.raises(StoreNotReadable, match=r"bucket|in place of"):
        open_folder(server, monkeypatch).names()


@pytest.mark.parametrize(("error", "status"), [(WRONG["no such bucket"], 404), ("<Code>AccessDenied</Code>", 403)])
def test_nothing_is_written_into_another_bucket(server, error, status):
    server.answer = wrong_answer(error, status)
    with pytest.raises((StoreNotReadable, StoreNotWritable)):
        open_store(server, writable=True).ensure_writable()
    assert {method for method, _ in server.requests} == {"GET"}


@pytest.mark.parametrize(
    "key", ["other/log/1.json", f"{TABLE}/_metastore2/log/1.json", "log/00000000000000000001.json"]
)
def test_keys_outside_of_the_folder_are_an_error(server, monkeypatch, key):
    entry = f"<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><Size>3</Size></Contents>"
    listing = f"<ListBucketResult><Name>lake</Name><KeyCount>1</KeyCount>{entry}</ListBucketResult>"
    server.answer = lambda _, path: (200, listing) if "list-type" in path else (404, MISSING)
    with pytest.raises(StoreNotReadable, match=key):
        open_store(server).read()
    if not key.startswith(TABLE):
        with pytest.raises(StoreNotReadable, match=key):
            open_folder(server, monkeypatch).names()


def test_a_missing_key_of_the_right_bucket_is_believed(server, monkeypatch):
    key = f"{TABLE}/_metastore/log/{1:020}.json"
    error = f"<Error><Code>NoSuchKey</Code><Key>{key}</Key><BucketName>lake</BucketName></Error>"
    server.answer = lambda _, path: (200, EMPTY) if "list-type" in path else (404, error)
    assert open_store(server).read() is None
    assert open_folder(server, monkeypatch).names() == ()


@pytest.mark.parametrize(
    ("settings", "url"),
    [({}, "https://storage.googleapis.com"), ({"fs.gs.storage.root.url": "https://storage.googleapis.com/"}, "https://storage.googleapis.com"),
     ({"fs.gs.storage.root.url": "{address}"}, "{address}")],
)  # fmt: skip
def test_the_server_of_a_google_bucket(server, settings, url):
    settings = {name: value.format(address=server.address) for name, value in settings.items()}
    access = find_credentials("gs://lake/t", {"fs.gs.auth.type": "UNAUTHENTICATED", **settings}.get)
    assert access.options.get("base_url", "https://storage.googleapis.com") == url.format(address=server.address)
    if settings.get("fs.gs.storage.root.url") == server.address:
        assert Store.open("gs://lake/t", access=access).read() is None
        system, path = open_file_system("gs://lake/t", access)
        assert system.get_file_info(f"{path}/x").type == fs.FileType.NotFound
        assert all("/lake" in url for _, url in server.requests)
        assert len(server.requests) >= 3


@pytest.mark.parametrize("suffix", ["core.windows.net", "core.chinacloudapi.cn", "fabric.microsoft.com"])
def test_the_servers_of_an_azure_account(suffix):
    system, path = open_file_system(f"abfss://c@acc.dfs.{suffix}/t", Credentials({"account_key": "a2V5"}))
    account, blob, files = (
        system.__reduce__()[1][0][name] for name in ("account_name", "blob_storage_authority", "dfs_storage_authority")
    )
    assert (path, account, blob, files) == ("c/t", "acc", f".blob.{suffix}", f".dfs.{suffix}")
