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
