"""What a statement asks for column by column besides statistics: exact ranks, and lists of where each value lives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types
from pyspark.errors import PySparkException

from metastore.adapters import refusals
from metastore.adapters.spark_errors import find_cause
from metastore.errors import DamagedObject
from metastore.format.data_files import FileKey, read_file_keys
from metastore.table_level.snapshot_level import snapshot_id
from metastore.table_level.value_index_job import EarlierIndex
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.manifest import Manifest, RanksRef, Snapshot
    from metastore.format.table_column import Column
    from metastore.store import Store
    from metastore.table_level.rank_sort import RankSort
    from metastore.table_level.value_jobs import ValueJobs


_LOG = get_logger(__name__)

_File = tuple[FileKey, str | None]


@dataclass(frozen=True)
class Extra(ABC):
    """Something that a snapshot's entry has of chosen columns.

    Attributes:
        ordinals: The columns that are to have it.
        failed: Columns without it that should have it, and why.
    """

    facts: TableFacts
    store: Store
    ordinals: frozenset[int]
    failed: Mapping[str, str]

    @abstractmethod
    def stored_ordinals(self, entry: Snapshot) -> frozenset[int]:
        """The columns of an entry that have it."""

    def is_current(self, entry: Snapshot) -> bool:
        """Tell whether a snapshot's entry has all that is wanted."""
        return self.ordinals <= self.stored_ordinals(entry)

    def with_lost(self, entry: Snapshot) -> Extra:
        """Want what a damaged entry has, too: it cannot be taken from it."""
        return replace(self, ordinals=self.ordinals.union(self._present_ordinals(entry).values()))

    def extend_jobs(self, jobs: ValueJobs, manifest: Manifest | None) -> ValueJobs:  # noqa: ARG002 - most do not
        """Have the jobs of the table level make it."""
        return jobs

    @abstractmethod
    def finish(self, made: Snapshot, manifest: Manifest | None) -> Extra:
        """Make what those jobs did not make, and note what could not be made."""

    def add_to(self, entry: Snapshot) -> Snapshot:
        """Put into a snapshot's entry what is not there yet."""
        return entry

    def _present_ordinals(self, entry: Snapshot) -> dict[int, int]:
        """The columns of an entry that have it and are still there, to where they are now."""
        now = {_identity(column): ordinal for ordinal, column in enumerate(self.facts.columns)}
        mapping = self.facts.name_mapping
        columns = entry.columns if mapping is None else mapping.resolve_snapshot(entry).columns
        found = {ordinal: now.get(_identity(columns[ordinal])) for ordinal in self.stored_ordinals(entry)}
        return {then: ordinal for then, ordinal in found.items() if ordinal is not None}


def _identity(column: Column) -> tuple[str, str, str | None]:
    return column.key, column.type, column.collation


@dataclass(frozen=True)
class ValueIndexExtra(Extra):
    """Lists of where each value lives: they are made with the value counts of the table level."""

    def stored_ordinals(self, entry: Snapshot) -> frozenset[int]:
        return frozenset(entry.distribution)

    def is_current(self, entry: Snapshot) -> bool:
        return not self.ordinals or (super().is_current(entry) and entry.placed is not None)

    def extend_jobs(self, jobs: ValueJobs, manifest: Manifest | None) -> ValueJobs:
        """Have jobs make what is wanted, and what the newest entry has of the same snapshot."""
        entries = manifest.snapshots if manifest else ()
        same = (entry for entry in entries if entry.id == snapshot_id(self.facts))
        wanted = self.ordinals.union(*(self._present_ordinals(entry).values() for entry in same))
        if not wanted:
            return jobs
        earlier = next((found for entry in reversed(entries) if (found := self._find_earlier(entry, wanted))), ())
        return replace(jobs, distribution=wanted, earlier=earlier)

    def finish(self, made: Snapshot, manifest: Manifest | None) -> Extra:  # noqa: ARG002 - as of `Extra`
        names = (self.facts.columns[ordinal].name for ordinal in sorted(self.ordinals.difference(made.distribution)))
        failed = {f"distribution of {name}": refusals.NOT_DISTRIBUTED for name in names}
        return replace(self, failed={**self.failed, **failed})

    def _find_earlier(self, entry: Snapshot, wanted: frozenset[int]) -> tuple[EarlierIndex, ...]:
        now = {then: ordinal for then, ordinal in self._present_ordinals(entry).items() if ordinal in wanted}
        keys = (_read_table_files(self.store, entry) or []) if now else []
        live = {file.key: place for place, file in enumerate(self.facts.files)}
        files = np.array([live.get(key, -1) for key, _ in keys], np.int64)
        if not (files >= 0).any():
            return ()
        lists = [(ref.object, {i: now[i] for i in ref.columns if i in now}) for ref in entry.frequencies]
        return tuple(EarlierIndex(ref, ordinals, files) for ref, ordinals in lists if ordinals)


@dataclass(frozen=True)
class RanksExtra(Extra):
    """Exact ranks: from the stored ones, where only data files were added since.

    Attributes:
        sort: The jobs that make them.
        made: What was made; None before.
    """

    sort: RankSort
    made: tuple[RanksRef, ...] | None = None

    def stored_ordinals(self, entry: Snapshot) -> frozenset[int]:
        return _ranked_ordinals(entry.ranks)

    def finish(self, made: Snapshot, manifest: Manifest | None) -> Extra:  # noqa: ARG002 - as of `Extra`
        """Sort what is wanted and is not there, once for all rounds."""
        if self.made is not None:
            return self
        failed = dict(self.failed)
        return replace(self, made=self._make(manifest, failed), failed=failed)

    def add_to(self, entry: Snapshot) -> Snapshot:
        return replace(entry, ranks=self.made or ())

    def _make(self, manifest: Manifest | None, failed: dict[str, str]) -> tuple[RanksRef, ...]:
        files = {(file.key, file.deletes): file for file in self.facts.files}
        base, before = self._find_base(manifest, frozenset(files))
        added = [file for key, file in files.items() if key not in before]
        stored = _ranked_ordinals(base)
        if added or not base:
            base = self._sort(sorted(self.ordinals & stored), added, base, failed)
        return base + self._sort(sorted(self.ordinals - stored), self.facts.files, (), failed)

    def _find_base(
        self, manifest: Manifest | None, live: frozenset[_File]
    ) -> tuple[tuple[RanksRef, ...], frozenset[_File]]:
        """The newest stored ranks of files that are all still there as they were, and these files."""
        for entry in reversed(manifest.snapshots if manifest else ()):
            stored = self.stored_ordinals(entry)
            if not stored or self._present_ordinals(entry) != {one: one for one in stored}:
                continue
            listed = _read_table_files(self.store, entry)
            keys = frozenset(listed or ())
            is_sound = listed is not None and keys <= live
            if is_sound and not self.store.find_absent({ref.object.name: ref.object.length for ref in entry.ranks}):
                return entry.ranks, keys
        return (), frozenset()

    def _sort(
        self, ordinals: Sequence[int], files: Sequence[DataFile], known: tuple[RanksRef, ...], failed: dict[str, str]
    ) -> tuple[RanksRef, ...]:
        if not ordinals:
            return ()
        try:
            return self.sort.sort_columns(ordinals, files, known)
        except (PySparkException, Py4JError) as failure:
            cause = find_cause(failure)
        if known:
            _LOG.warning("ranks are computed anew: %s", cause)
            return self._sort(ordinals, self.facts.files, (), failed)
        failed |= {f"ranks of {self.facts.columns[ordinal].name}": cause for ordinal in ordinals}
        return ()


def _ranked_ordinals(ranks: Iterable[RanksRef]) -> frozenset[int]:
    return frozenset(ordinal for ref in ranks for ordinal in ref.columns)


def _read_table_files(store: Store, entry: Snapshot) -> list[_File] | None:
    """The data files of a snapshot with their deletes; None where the list is damaged."""
    try:
        listed = store.get(entry.table_files, [*FileKey._fields, "deletes"])
    except DamagedObject:
        return None
    return list(zip(read_file_keys(listed), listed.column("deletes").to_pylist(), strict=True))
