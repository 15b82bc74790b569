"""What tells one data file of a table from all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from metastore.format.documents import to_document

if TYPE_CHECKING:
    import pyarrow as pa

    from metastore.format.objects import ObjectRef


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
    named = to_document(ref)
    return {f"{kind}_{what}": named[what] for what in ("name", "length", "sha256", "footer_length", "footer_sha256")}
