"""The table format of directories of Parquet files, whose only metadata is their listing."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import TableFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore.adapters.shim_facts import ShimAnswer
    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile


_DIGITS = 32


def complete(answer: ShimAnswer) -> TableFacts:
    """Complete the facts of a directory of Parquet files.

    A column that a file lacks is unknown there: Spark may find it under its name in another case.
    """
    return replace(answer.facts, unsettled=frozenset(answer.unsettled))


def name_snapshot(files: Sequence[DataFile]) -> str:
    """Name the snapshot of a listing as the shim does: by a digest of the path, size and time of each file."""
    digest = hashlib.sha256()
    for file in sorted(files, key=_java_order):
        modified = file.modified or 0
        line = f"{file.path}\0{file.size}\0{modified}\n"
        digest.update(line.encode(errors="replace"))
    return digest.hexdigest()[:_DIGITS]


def _java_order(file: DataFile) -> bytes:
    """Return a sort key that orders paths as Java orders texts."""
    return file.path.encode("utf-16-be", "surrogatepass")


FORMAT = TableFormat(name="parquet", complete=complete, name_snapshot=name_snapshot)
