"""An S3 server for benchmarks, and the CPU seconds and shuffled bytes of what is measured on it.

The server is moto's, in a process of its own: its seconds count for nobody, and both sides wait for the same one. A
proxy before it delays every request, as a network does. The proxy can also serve one large object from a file: moto
would copy all of it for each request.

    uv run python benchmarks/object_store.py http://127.0.0.1:5000 0.02     # a proxy that waits 20 ms a request
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyarrow.fs import S3FileSystem

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from store import s3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


LARGE_KEY = "large/data.parquet"
"""The object that is served from a file. The server behind has an empty one of this name."""
_LARGE_PATH = f"/{s3.BUCKET}/{LARGE_KEY}"
_ETAG_OF_EMPTY = '"d41d8cd98f00b204e9800998ecf8427e"'
_SIZE_IN_LISTING = re.compile(rb"(data\.parquet</Key>.*?<Size>)\d+", re.DOTALL)


class _Delaying(s3._Passing):  # noqa: SLF001 - the handler of the proxy
    def _serve(self) -> None:
        time.sleep(self.server.delay)
        is_large = self.server.file is not None and urlsplit(self.path).path == _LARGE_PATH
        if is_large and self.command == "GET":
            self._send_file(self.server.file)
        else:
            super()._serve()

    def _passed_on(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Passes a request on; in the answer the large object has the size of the file."""
        status, headers, answer = super()._passed_on(body)
        if self.server.file is None:
            return status, headers, answer
        size = str(self.server.file.stat().st_size)
        if self.command == "HEAD" and urlsplit(self.path).path == _LARGE_PATH:
            headers = list({**dict(headers), "Content-Length": size}.items())
        return status, headers, _SIZE_IN_LISTING.sub(rb"\g<1>" + size.encode(), answer)

    def _send_file(self, file: Path) -> None:
        size = file.stat().st_size
        byte_range = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "bytes=0-"))
        first, last = byte_range[1], byte_range[2]
        begin = int(first) if first else size - int(last)
        end = min(int(last) + 1, size) if first and last else size
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("ETag", _ETAG_OF_EMPTY)
        self.send_header("Last-Modified", self.date_time_string(file.stat().st_mtime))
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        with file.open("rb") as opened:
            self.connection.sendfile(opened, begin, end - begin)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 - the names that the base class asks for


@contextmanager
def running(delay: float, large: Path | None = None) -> Iterator[str]:
    """Runs a server with an empty bucket; gives its address.

    Args:
        delay: Seconds that each request waits.
        large: The file of the large object, if there is to be one.
    """
    with s3.running() as address:
        if not delay and large is None:
            yield address
            return
        if large is not None:
            _put_empty_object(address)
        command = [sys.executable, __file__, address, str(delay), *filter(None, [large])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
            try:
                yield proxy.stdout.readline().strip()
            finally:
                proxy.kill()


def _put_empty_object(address: str) -> None:
    """Puts an empty object in the place of the large one, by one request, so that it has the tag of an empty object."""
    keys = {"access_key": s3.KEY, "secret_key": s3.SECRET, "region": "us-east-1"}
    system = S3FileSystem(**keys, endpoint_override=address, allow_delayed_open=True)
    system.open_output_stream(f"{s3.BUCKET}/{LARGE_KEY}").close()


def children() -> set[int]:
    """The processes that this one has started and that still run."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    return set(map(int, listed.split()))


def shuffled_bytes(spark: SparkSession) -> int:
    """Bytes that Spark's stages have written for exchanges so far."""
    jvm = spark._jvm  # noqa: SLF001 - as in `metastore.jvm_session`
    store = spark._jsparkSession.sparkContext().statusStore()  # noqa: SLF001 - as above
    no_quantiles = spark.sparkContext._gateway.new_array(jvm.double, 0)  # noqa: SLF001 - as above
    stages = store.stageList(None, False, False, no_quantiles, None)  # noqa: FBT003 - a method of Java
    return sum(stages.apply(number).shuffleWriteBytes() for number in range(stages.size()))


def main() -> None:
    """Runs the proxy until it is killed."""
    address, delay, *files = sys.argv[1:]
    with s3.Proxy(address, lambda _: None) as proxy:
        proxy.RequestHandlerClass = _Delaying
        proxy.delay = float(delay)
        proxy.file = Path(files[0]) if files else None
        print(proxy.address, flush=True)
        time.sleep(1e6)


if __name__ == "__main__":
    main()
