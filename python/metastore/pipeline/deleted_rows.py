"""The deleted rows of data files: as they were counted before, or counted now where other files delete rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import describe_format
from metastore.adapters.spark_errors import raise_as_ours
from metastore.errors import DamagedObject
from metastore.format.data_files import FileKey, read_file_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.manifest import Manifest, Snapshot
    from metastore.store import Store


DeletedFile = tuple[FileKey, str]
"""A data file, and the digest of the files that may delete its rows."""


@dataclass(frozen=True)
class DeletedRows:
    """A table whose deleted rows are counted.

    Attributes:
        counted: Paths of the data files whose rows were counted by this run.
        read: Paths of those that were read for it.
    """

    facts: TableFacts
    counted: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()


def recall_deleted_rows(facts: TableFacts, store: Store) -> TableFacts:
    """Take over what analyzed snapshots say of data files that the same files delete rows of."""
    wanted = {(file.key, file.delete_files) for file in _find_uncounted(facts)}
    manifest = store.read() if wanted else None
    if manifest is None or manifest.table.uuid != facts.uuid:
        return facts
    return _with_counts(facts, _read_counts(store, manifest, wanted))


def count_deleted_rows(spark: SparkSession, facts: TableFacts) -> DeletedRows:
    """Count the deleted rows of the data files that do not have their number yet."""
    uncounted = _find_uncounted(facts)
    count = describe_format(facts.format).count_deleted_rows
    if not uncounted or count is None:
        return DeletedRows(facts)
    with raise_as_ours(facts.name):
        rows = count(spark, facts, uncounted)
    counts = {(file.key, str(file.delete_files)): rows[file.path] for file in uncounted}
    read = frozenset(file.path for file in uncounted if file.has_equality_deletes)
    return DeletedRows(_with_counts(facts, counts), frozenset(rows), read)


def _find_uncounted(facts: TableFacts) -> list[DataFile]:
    if describe_format(facts.format).count_deleted_rows is None:
        return []
    return [file for file in facts.files if file.deleted_rows is None]


def _read_counts(
    store: Store, manifest: Manifest, wanted: Iterable[tuple[FileKey, str | None]]
) -> dict[DeletedFile, int]:
    """The numbers that snapshots have, the newest first, until all that are wanted are there."""
    missing = set(wanted)
    counts: dict[DeletedFile, int] = {}
    for snapshot in reversed(manifest.snapshots):
        stored = _read_snapshot_counts(store, snapshot)
        counts |= {file: rows for file, rows in stored.items() if file in missing}
        missing -= counts.keys()
        if not missing:
            break
    return counts


def _read_snapshot_counts(store: Store, snapshot: Snapshot) -> dict[DeletedFile, int]:
    try:
        listed = store.get(snapshot.table_files, [*FileKey._fields, "delete_files", "deleted_rows"])
    except DamagedObject:
        return {}
    digests, rows = (listed.column(name).to_pylist() for name in ("delete_files", "deleted_rows"))
    return {
        (key, digest): deleted
        for key, digest, deleted in zip(read_file_keys(listed), digests, rows, strict=True)
        if digest is not None and deleted is not None
    }


def _with_counts(facts: TableFacts, counts: Mapping[DeletedFile, int]) -> TableFacts:
    return replace(facts, files=tuple(_with_count(file, counts) for file in facts.files))


def _with_count(file: DataFile, counts: Mapping[DeletedFile, int]) -> DataFile:
    if file.deleted_rows is not None:
        return file
    deleted = counts.get((file.key, str(file.delete_files)))
    if deleted is None:
        return file
    return replace(file, deletes=file.delete_files if deleted else None, deleted_rows=deleted)
