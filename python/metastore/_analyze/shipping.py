"""Ships the package with the job: executors need Python with numpy and pyarrow, nothing of ours."""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import metastore

if TYPE_CHECKING:
    from pyspark import SparkContext

_EPOCH = (1980, 1, 1, 0, 0, 0)


def ship_package(context: SparkContext) -> None:
    """Make this version of the package importable by the workers of a SparkContext.

    The whole package goes, not only what a task imports: the archive comes before an installed package on a worker's
    path, and must not hide parts of it.
    """
    from pyspark import SparkFiles  # noqa: PLC0415 - not needed to import this module

    content = _archive(Path(metastore.__file__).parent)
    name = f"pyspark-metastore-{hashlib.sha256(content).hexdigest()[:16]}.zip"
    root = Path(SparkFiles.getRootDirectory())
    # addPyFile leaves this mark in the Python that called it; another Python of the same Spark has to call it too.
    if str(root / name) in sys.path:
        return
    # Executors fetch the archive from this very file as long as the application lives.
    archive = root / "pyspark-metastore" / name
    if not archive.exists():
        archive.parent.mkdir(exist_ok=True)
        archive.write_bytes(content)
    context.addPyFile(str(archive))


@cache  # sources that change meanwhile are not those that run here
def _archive(package: Path) -> bytes:
    """Zip the package's Python sources; equal sources give equal bytes."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for source in sorted(package.rglob("*.py")):
            name = Path(package.name) / source.relative_to(package)
            entry = zipfile.ZipInfo(name.as_posix(), _EPOCH)
            archive.writestr(entry, source.read_bytes(), compress_type=zipfile.ZIP_DEFLATED)
    return sink.getvalue()
