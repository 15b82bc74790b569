"""Data files as the rows of a block's list name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.object_part import ANY_ROWS
from metastore.format.objects import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_REFERENCE_FIELDS = ("name", "length", "sha256", "footer_length", "footer_sha256")


class FileKey(NamedTuple):
    """The identity of a data file in its table: docs/format.md, "Identity".

    Attributes:
        path: Its path as the statistics spell it.
        size: Bytes.
        modified: Modification time in milliseconds, if a file may be replaced under its path; else None.
    """

    path: str
    size: int
    modified: int | None = None


def read_file_keys(rows: pa.Table) -> list[FileKey]:
    """Read the keys of the data files that a table lists."""
    columns = [rows.column(name).to_pylist() for name in FileKey._fields if name in rows.column_names]
    return list(map(FileKey, *columns))


def list_detail_objects(files: pa.Table, kind: str) -> set[tuple[str, int, str]]:
    """List name, length and digest of the detail objects of one kind that a list of data files names."""
    return set(_list_fields(files, kind, ("name", "length", "sha256")))


def _list_fields(files: pa.Table, kind: str, fields: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """List fields of the detail objects of one kind, once for each data file that names one."""
    files = files.filter(pc.is_valid(files[f"{kind}_name"]))
    columns = [files[f"{kind}_{field}"].to_pylist() for field in fields]
    return zip(*columns, strict=True)


def describe_detail(kind: str, ref: ObjectRef) -> dict[str, Any]:
    """Describe a detail object by fields of a row of `files`."""
    return {f"{kind}_{field}": getattr(ref, field) for field in _REFERENCE_FIELDS}


class DetailFiles(NamedTuple):
    """Data files whose details of one kind are in one object.

    Attributes:
        ref: The object.
        files: The ordinals of the data files in the block.
        inside: Their ordinals in the object.
    """

    ref: ObjectRef
    files: NDArray[np.int64]
    inside: NDArray[np.int64]


def list_detail_references(files: pa.Table, kind: str) -> set[ObjectRef]:
    """List the references to the detail objects of one kind that a list of data files names."""
    references = set()
    for values in _list_fields(files, kind, _REFERENCE_FIELDS):
        fields = dict(zip(_REFERENCE_FIELDS, values, strict=True))
        references.add(ObjectRef(rows=ANY_ROWS, **fields))
    return references


def find_detail_files(files: pa.Table, kind: str) -> Iterator[DetailFiles]:
    """Find the detail objects of one kind that rows of `files` name."""
    files = files.filter(pc.is_valid(files[f"{kind}_name"]))
    if not files.num_rows:
        return
    codes = files[f"{kind}_name"].combine_chunks().dictionary_encode().indices.to_numpy()
    ordinals = files["file"].to_numpy().astype(np.int64)
    inside = files[f"{kind}_file"].to_numpy().astype(np.int64)
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == code)
        ref = _read_reference(files, kind, int(rows[0]))
        yield DetailFiles(ref, ordinals[rows], inside[rows])


def _read_reference(files: pa.Table, kind: str, row: int) -> ObjectRef:
    fields = {field: files[f"{kind}_{field}"][row].as_py() for field in _REFERENCE_FIELDS}
    return ObjectRef(rows=ANY_ROWS, **fields)
