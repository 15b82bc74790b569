"""What tells one data file of a table from all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


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


def file_keys(rows: pa.Table) -> list[FileKey]:
    """The keys of the data files that a table lists.

    Args:
        rows: At least `path` and `size`; objects of earlier versions have no `modified`.

    Returns:
        One key a row, in order.

    Example:
        >>> import pyarrow as pa
        >>> file_keys(pa.table({"path": ["a.parquet"], "size": [9]}))
        [FileKey(path='a.parquet', size=9, modified=None)]
    """
    known = [name for name in FileKey._fields if name in rows.column_names]
    return list(map(FileKey, *(rows.column(name).to_pylist() for name in known)))


def detail_objects(files: pa.Table, kind: str) -> set[tuple[str, int, str]]:
    """The detail objects of one kind that a list of data files names.

    Args:
        files: Rows of `files`.
        kind: One of `schemas.DETAILS`.

    Returns:
        Name, length and SHA-256 of each.

    Example:
        >>> import pyarrow as pa
        >>> one = {"sketches_name": "sketches-1", "sketches_length": 9, "sketches_sha256": "ab"}
        >>> detail_objects(pa.Table.from_pylist([one, one]), "sketches")
        {('sketches-1', 9, 'ab')}
    """
    columns = (files[f"{kind}_{what}"].to_pylist() for what in ("name", "length", "sha256"))
    return {named for named in zip(*columns, strict=True) if named[0] is not None}
