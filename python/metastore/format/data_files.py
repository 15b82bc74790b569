"""Data files of a table, and the rows of `files` that name their statistics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metastore.format.counts import subtract
from metastore.format.object_part import ANY_ROWS
from metastore.format.object_schemas import DETAILS
from metastore.format.objects import ObjectRef

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

_REFERENCE_FIELDS = ["name", "length", "sha256", "footer_length", "footer_sha256"]


class FileKey(NamedTuple):
    """The identity of a data file in its table: docs/format.md, "Identity".

    Attributes:
        path: Its path as the statistics spell it.
        size: Bytes.
        modified: Modification time in milliseconds, if a file may be replaced under its path; version of its rows, if
            log files change them; else None.
    """

    path: str
    size: int
    modified: int | None = None


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One immutable data file of a snapshot.

    Attributes:
        path: Its path as statistics name it: docs/format.md, "Identity".
        size: Bytes.
        rows: Physical rows, deleted ones included; None if the table's metadata does not have their number.
        format: `parquet`, `orc` or `avro`.
        partition: Partition field to value as text, of the file's own partitioning.
        constants: Column key to stored value, for columns whose value in all rows the table's metadata decides.
        unknown: Keys of columns whose values the table's metadata decides, but which are unknown.
        encrypted: Whether the file is encrypted, and only the engine has the key.
        deletes: Digest of the deletes of rows of the file; None without any.
        deleted_rows: Number of deleted rows; None if unknown.
        delete_files: Digest of the files that may delete rows of the file; None without such files, and if the table's
            metadata has the number of deleted rows.
        has_equality_deletes: Whether rows may be deleted by their values; to count these, the data file is read.
        open_location: URI by which the file is opened, if `path` is not one.
        modified: Modification time, or version of the rows, as in `FileKey`.
        has_log_files: Whether log files change its rows: its rows are what Spark makes of all these files.
        names: Column key to the column's name in the file, if it differs from the name in the key.
    """

    path: str
    size: int
    rows: int | None
    format: str
    partition: Mapping[str, str | None] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    encrypted: bool = False
    deletes: str | None = None
    deleted_rows: int | None = 0
    open_location: str = ""
    modified: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    delete_files: str | None = None
    has_equality_deletes: bool = False
    has_log_files: bool = False

    @property
    def key(self) -> FileKey:
        """The identity of the data file in its table."""
        return FileKey(self.path, self.size, self.modified)

    @property
    def live_rows(self) -> int | None:
        """Rows that are not deleted; None if unknown."""
        return subtract(self.rows, self.deleted_rows)

    @property
    def physical_rows(self) -> int:
        """The number of rows, which ANALYZE counts first if it is unknown."""
        if self.rows is None:
            raise ValueError(f"the rows of {self.path} were not counted")
        return self.rows

    @property
    def location(self) -> str:
        """URI or local path by which the file is opened."""
        return self.open_location or self.path


def read_file_keys(rows: pa.Table) -> list[FileKey]:
    """Read the keys of the data files that a table lists."""
    columns = [rows.column(name).to_pylist() for name in FileKey._fields if name in rows.column_names]
    return list(map(FileKey, *columns))


def select_files(files: Iterable[DataFile], paths: Container[str]) -> tuple[DataFile, ...]:
    """Select the data files at some paths."""
    return tuple(file for file in files if file.path in paths)


def leave_out_files(files: Iterable[DataFile], paths: Container[str]) -> tuple[DataFile, ...]:
    """Select the data files that are not at some paths."""
    return tuple(file for file in files if file.path not in paths)


def divide_by_log_files(files: Iterable[DataFile]) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """Divide data files into those with log files, and all others."""
    files = tuple(files)
    merged = tuple(file for file in files if file.has_log_files)
    stored = tuple(file for file in files if not file.has_log_files)
    return merged, stored


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


def list_detail_references(files: pa.Table, kinds: Iterable[str] = DETAILS) -> set[ObjectRef]:
    """List the references to detail objects of some kinds in a list of data files."""
    references = set()
    for kind in kinds:
        named = files.filter(pc.is_valid(files[f"{kind}_name"]))
        rows = named.select([f"{kind}_{field}" for field in _REFERENCE_FIELDS]).rename_columns(_REFERENCE_FIELDS)
        for fields in rows.group_by(_REFERENCE_FIELDS).aggregate([]).to_pylist():
            fields["length"] = fields["length"] or 0  # rows of a damaged list may not have it
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
