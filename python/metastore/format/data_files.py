"""What tells one data file of a table from all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.object_part import ANY_ROWS
from metastore.format.objects import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_NAMED = ("name", "length", "sha256", "footer_length", "footer_sha256")


class FileKey(NamedTuple):
    """The identity of a data file in its table: docs/format.md, "Identity".

    Attributes:
        path: As the statistics spell it.
        size: Bytes.
        modified: Modification time in milliseconds, where a file may be replaced under its path; else None.
    """

    path: str
    size: int
    modified: int | None = None


def read_file_keys(rows: pa.Table) -> list[FileKey]:
    """The keys of the data files that a table lists."""
    known = [name for name in FileKey._fields if name in rows.column_names]
    return list(map(FileKey, *(rows.column(name).to_pylist() for name in known)))


def list_detail_objects(files: pa.Table, kind: str) -> set[tuple[str, int, str]]:
    """The detail objects of one kind that a list of data files names."""
    columns = (files[f"{kind}_{what}"].to_pylist() for what in ("name", "length", "sha256"))
    return {named for named in zip(*columns, strict=True) if named[0] is not None}


def describe_detail(kind: str, ref: ObjectRef) -> dict[str, Any]:
    """What a row of `files` says of a detail object."""
    return {f"{kind}_{what}": getattr(ref, what) for what in _NAMED}


class DetailFiles(NamedTuple):
    """Data files whose details of one kind are in one object: their ordinals in the block, and those in the object."""

    ref: ObjectRef
    files: NDArray[np.int64]
    inside: NDArray[np.int64]


def find_detail_files(files: pa.Table, kind: str) -> Iterator[DetailFiles]:
    """The detail objects of one kind that rows of `files` name."""
    files = files.filter(pc.is_valid(files[f"{kind}_name"]))
    if not files.num_rows:
        return
    codes = files[f"{kind}_name"].combine_chunks().dictionary_encode().indices.to_numpy()
    ordinals, inside = (files[name].to_numpy().astype(np.int64) for name in ("file", f"{kind}_file"))
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == code)
        name, length, *digests = (files[f"{kind}_{what}"][int(rows[0])].as_py() for what in _NAMED)
        yield DetailFiles(ObjectRef(name, length, digests[0], ANY_ROWS, *digests[1:]), ordinals[rows], inside[rows])
