"""Counts the deleted rows of data files, and reuses the numbers that are stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from metastore.adapters.descriptors import describe_format
from metastore.adapters.spark_errors import leave_out_unreadable, raise_as_ours
from metastore.adapters.spark_rows import opens_other_files
from metastore.adapters.table_facts import Refusal
from metastore.errors import DamagedObject
from metastore.format.counts import join_counts
from metastore.format.data_files import FileKey, read_file_keys, select_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.manifest import Manifest, Snapshot
    from metastore.store import Store


DeletedFile = tuple[FileKey, str]
"""A data file, and the digest of the files that may delete its rows."""


@dataclass(frozen=True)
class DeletedRows:
    """A table whose deleted rows are counted.

    Attributes:
        counted: Paths of the data files whose deleted rows this run counted.
        read: Paths of the data files that it read to count them.
    """

    facts: TableFacts
    counted: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()


def recall_deleted_rows(facts: TableFacts, store: Store, manifest: Manifest) -> TableFacts:
    """Reuse the stored numbers of deleted rows, for data files whose delete files have not changed."""
    uncounted = {(file.key, file.delete_files) for file in _find_uncounted(facts)}
    if not uncounted:
        return facts
    return _with_counts(facts, _read_counts(store, manifest.snapshots, uncounted))


def count_deleted_rows(spark: SparkSession, facts: TableFacts) -> DeletedRows:
    """Count the deleted rows of the data files whose number is unknown; it stays unknown if Spark cannot count them."""
    uncounted = _find_uncounted(facts)
    count = describe_format(facts.format).count_deleted_rows
    if not uncounted or count is None:
        return DeletedRows(facts)
    with raise_as_ours(facts.name):
        parts, unreadable = leave_out_unreadable(
            uncounted,
            partial(count, spark, facts),
            python_errors={},
            opens_others=opens_other_files(spark, facts),
        )
    rows = join_counts(parts)
    counted = select_files(uncounted, rows)
    counts = {_identify(file): rows[file.path] for file in counted}
    read = frozenset(file.path for file in counted if file.has_equality_deletes)
    refused = tuple(Refusal(file.subject, f"its deleted rows are not counted: {file.reason}") for file in unreadable)
    return DeletedRows(
        facts=replace(_with_counts(facts, counts), refused=facts.refused + refused),
        counted=frozenset(rows),
        read=read,
    )


def _identify(file: DataFile) -> DeletedFile:
    return file.key, str(file.delete_files)


def _find_uncounted(facts: TableFacts) -> list[DataFile]:
    """Return the data files whose number of deleted rows is unknown and can be counted."""
    if describe_format(facts.format).count_deleted_rows is None:
        return []
    return [file for file in facts.files if file.deleted_rows is None]


def _read_counts(
    store: Store, snapshots: Sequence[Snapshot], files: Iterable[tuple[FileKey, str | None]]
) -> dict[DeletedFile, int]:
    """Read the stored numbers of these files, each from the newest snapshot that has it."""
    missing = set(files)
    counts: dict[DeletedFile, int] = {}
    for snapshot in reversed(snapshots):
        stored = _read_snapshot_counts(store, snapshot)
        counts |= {file: rows for file, rows in stored.items() if file in missing}
        missing.difference_update(stored)
        if not missing:
            break
    return counts


def _read_snapshot_counts(store: Store, snapshot: Snapshot) -> dict[DeletedFile, int]:
    try:
        listed = store.get(snapshot.table_files, [*FileKey._fields, "delete_files", "deleted_rows"])
    except DamagedObject:
        return {}
    return _list_counts(listed)


def _list_counts(listed: pa.Table) -> dict[DeletedFile, int]:
    """Read the known numbers of deleted rows from a list of data files."""
    is_counted = pc.and_(pc.is_valid(listed["delete_files"]), pc.is_valid(listed["deleted_rows"]))
    counted = listed.filter(is_counted)
    files = zip(read_file_keys(counted), counted["delete_files"].to_pylist(), strict=True)
    return dict(zip(files, counted["deleted_rows"].to_pylist(), strict=True))


def _with_counts(facts: TableFacts, counts: Mapping[DeletedFile, int]) -> TableFacts:
    files = tuple(_with_count(file, counts) for file in facts.files)
    return replace(facts, files=files)


def _with_count(file: DataFile, counts: Mapping[DeletedFile, int]) -> DataFile:
    deleted = counts.get(_identify(file))
    if deleted is None:  # the file has its number already, or none is stored
        return file
    deletes = file.delete_files if deleted else None
    return replace(file, deletes=deletes, deleted_rows=deleted)
