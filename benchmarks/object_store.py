"""An S3 server for benchmarks, and the CPU seconds and shuffled bytes of what is measured on it.

The server is moto's, in a process of its own: its seconds count for nobody, and both sides wait for the same one. A
proxy before it delays every request, as a network does.

    uv run python benchmarks/object_store.py http://127.0.0.1:5000 20     # a proxy that waits 20 ms a request
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from store import s3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


class _Delaying(s3._Passing):  # noqa: SLF001 - the handler of the proxy
    def _serve(self) -> None:
        time.sleep(self.server.delay)
        super()._serve()

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 - the names that the base class asks for


@contextmanager
def running(delay: float) -> Iterator[str]:
    """Runs a server with an empty bucket; gives its address.

    Args:
        delay: Seconds that each request waits.
    """
    with s3.running() as address:
        if not delay:
            yield address
            return
        command = [sys.executable, __file__, address, str(delay)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proxy:
            try:
                yield proxy.stdout.readline().strip()
            finally:
                proxy.kill()


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
    address, delay = sys.argv[1:]
    with s3.Proxy(address, lambda _: None) as proxy:
        proxy.RequestHandlerClass = _Delaying
        proxy.delay = float(delay)
        print(proxy.address, flush=True)
        time.sleep(1e6)


if __name__ == "__main__":
    main()
