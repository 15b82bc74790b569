"""Exact ranks and value indexes: additions to a snapshot for chosen columns."""

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

    from numpy.typing import NDArray

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.manifest import RanksRef, Snapshot
    from metastore.format.table_column import Column
    from metastore.store import Store
    from metastore.table_level.rank_sort import RankSort
    from metastore.table_level.value_jobs import ValueJobs


_LOG = get_logger(__name__)

_File = tuple[FileKey, str | None]


@dataclass(frozen=True)
class Extra(ABC):
    """A part of a snapshot's entry that exists for chosen columns only.

    Attributes:
        ordinals: The chosen columns.
        failed: Chosen columns that cannot have the extra, and why.
    """

    facts: TableFacts
    store: Store
    ordinals: frozenset[int]
    failed: Mapping[str, str]

    @abstractmethod
    def stored_ordinals(self, entry: Snapshot) -> frozenset[int]:
        """Return the ordinals of the columns that have the extra in an entry."""

    def is_current(self, entry: Snapshot) -> bool:
        """Return whether a snapshot's entry has the extra for all chosen columns."""
        return self.ordinals <= self.stored_ordinals(entry)

    def with_columns_of(self, entry: Snapshot) -> Extra:
        """Choose the columns of a damaged entry as well: their ranks or indexes have to be computed again."""
        present = self._present_ordinals(entry).values()
        return replace(self, ordinals=self.ordinals.union(present))

    def extend_jobs(self, jobs: ValueJobs, stored: Sequence[Snapshot]) -> ValueJobs:  # noqa: ARG002 - most do not
        """Add the extra's work to the jobs of the table level, given the stored entries."""
        return jobs

    @abstractmethod
    def finish(self, new_entry: Snapshot, stored: Sequence[Snapshot]) -> Extra:
        """Finish the extra after the jobs of the table level have made a new entry; note the columns that failed."""

    def add_to(self, entry: Snapshot) -> Snapshot:
        """Add the extra to a snapshot's entry, unless the jobs did."""
        return entry

    def _present_ordinals(self, entry: Snapshot) -> dict[int, int]:
        """Map the ordinals in an entry to the table's ordinals now; columns that were dropped are left out."""
        ordinals = {_identity(column): ordinal for ordinal, column in enumerate(self.facts.columns)}
        columns = self.facts.resolve_snapshot(entry).columns
        present = {}
        for stored in self.stored_ordinals(entry):
            ordinal = ordinals.get(_identity(columns[stored]))
            if ordinal is not None:
                present[stored] = ordinal
        return present


def _identify_file(file: DataFile) -> _File:
    return file.key, file.deletes


def _identity(column: Column) -> tuple[str, str, str | None]:
    return column.key, column.type, column.collation


@dataclass(frozen=True)
class ValueIndexExtra(Extra):
    """Value indexes: the jobs of the table level make them with the value counts."""

    def stored_ordinals(self, entry: Snapshot) -> frozenset[int]:
        return frozenset(entry.distribution)

    def is_current(self, entry: Snapshot) -> bool:
        if not self.ordinals:
            return True
        return entry.placed is not None and super().is_current(entry)

    def extend_jobs(self, jobs: ValueJobs, stored: Sequence[Snapshot]) -> ValueJobs:
        """Make the jobs index the chosen columns, and the columns that stored entries of this snapshot have indexed."""
        ordinals = set(self.ordinals)
        for entry in stored:
            if entry.id == snapshot_id(self.facts):
                ordinals.update(self._present_ordinals(entry).values())
        if not ordinals:
            return jobs
        return replace(jobs, distribution=frozenset(ordinals), earlier=self._find_earlier(stored, ordinals))

    def finish(self, new_entry: Snapshot, stored: Sequence[Snapshot]) -> Extra:  # noqa: ARG002 - as of `Extra`
        failed = dict(self.failed)
        for ordinal in sorted(self.ordinals.difference(new_entry.distribution)):
            failed[f"distribution of {self.facts.columns[ordinal].name}"] = refusals.NOT_DISTRIBUTED
        return replace(self, failed=failed)

    def _find_earlier(self, stored: Sequence[Snapshot], ordinals: set[int]) -> tuple[EarlierIndex, ...]:
        """Find the newest stored indexes of these columns that cover live data files."""
        for entry in reversed(stored):
            present = self._present_ordinals(entry)
            columns = {stored_ordinal: now for stored_ordinal, now in present.items() if now in ordinals}
            indexes = self._select_indexes(entry, columns) if columns else ()
            if indexes:
                return indexes
        return ()

    def _select_indexes(self, entry: Snapshot, columns: Mapping[int, int]) -> tuple[EarlierIndex, ...]:
        """Return the indexes of columns, by their ordinals in the entry and now; none if all data files are gone."""
        files = self._locate_files(entry)
        if not (files >= 0).any():
            return ()
        indexes = []
        for ref in entry.frequencies:
            ordinals = {ordinal: columns[ordinal] for ordinal in ref.columns if ordinal in columns}
            if ordinals:
                indexes.append(EarlierIndex(ref.object, ordinals, files))
        return tuple(indexes)

    def _locate_files(self, entry: Snapshot) -> NDArray[np.int64]:
        """Return the position of each of an entry's data files in the table now, or -1."""
        positions = {file.key: position for position, file in enumerate(self.facts.files)}
        listed = _read_table_files(self.store, entry) or ()
        positions_of_listed = [positions.get(key, -1) for key, _ in listed]
        return np.array(positions_of_listed, np.int64)


@dataclass(frozen=True)
class RanksExtra(Extra):
    """Exact ranks; if only data files were added since, the stored ranks are extended.

    Attributes:
        sort: The jobs that compute ranks.
        new_ranks: The ranks that this run computed, or None before it did.
    """

    sort: RankSort
    new_ranks: tuple[RanksRef, ...] | None = None

    def stored_ordinals(self, entry: Snapshot) -> frozenset[int]:
        return _ranked_ordinals(entry.ranks)

    def finish(self, new_entry: Snapshot, stored: Sequence[Snapshot]) -> Extra:  # noqa: ARG002 - as of `Extra`
        """Sort the columns without stored ranks, once for all rounds."""
        if self.new_ranks is not None:
            return self
        failed = dict(self.failed)
        new_ranks = self._compute_ranks(stored, failed)
        return replace(self, new_ranks=new_ranks, failed=failed)

    def add_to(self, entry: Snapshot) -> Snapshot:
        return replace(entry, ranks=self.new_ranks or ())

    def _compute_ranks(self, entries: Sequence[Snapshot], failed: dict[str, str]) -> tuple[RanksRef, ...]:
        base, ranked_files = self._find_base(entries, frozenset(map(_identify_file, self.facts.files)))
        added = [file for file in self.facts.files if _identify_file(file) not in ranked_files]
        stored = _ranked_ordinals(base)
        if added:
            to_extend = sorted(self.ordinals & stored)
            base = self._sort(to_extend, added, base, failed)
        to_create = sorted(self.ordinals - stored)
        return base + self._sort(to_create, self.facts.files, (), failed)

    def _find_base(
        self, entries: Sequence[Snapshot], live: frozenset[_File]
    ) -> tuple[tuple[RanksRef, ...], frozenset[_File]]:
        """Find the newest stored ranks to which files can be added, and the files that they cover."""
        for entry in reversed(entries):
            files = self._find_ranked_files(entry, live)
            if files is not None:
                return entry.ranks, files
        return (), frozenset()

    def _find_ranked_files(self, entry: Snapshot, live: frozenset[_File]) -> frozenset[_File] | None:
        """Return the files that an entry's ranks cover; None if a column, file or object has changed or is gone."""
        if not self._has_current_columns(entry):
            return None
        listed = _read_table_files(self.store, entry)
        if listed is None or not live.issuperset(listed):
            return None
        lengths = {ref.object.name: ref.object.length for ref in entry.ranks}
        return None if self.store.find_absent(lengths) else frozenset(listed)

    def _has_current_columns(self, entry: Snapshot) -> bool:
        """Return whether an entry has ranks, all of columns that are still there under their ordinals."""
        stored = self.stored_ordinals(entry)
        unchanged = {ordinal: ordinal for ordinal in stored}
        return bool(stored) and self._present_ordinals(entry) == unchanged

    def _sort(
        self, ordinals: Sequence[int], files: Sequence[DataFile], base: tuple[RanksRef, ...], failed: dict[str, str]
    ) -> tuple[RanksRef, ...]:
        if not ordinals:
            return ()
        try:
            return self.sort.sort_columns(ordinals, files, base)
        except (PySparkException, Py4JError) as failure:
            cause = find_cause(failure)
        if base:
            _LOG.warning("ranks are computed anew: %s", cause)
            return self._sort(ordinals, self.facts.files, (), failed)
        for ordinal in ordinals:
            failed[f"ranks of {self.facts.columns[ordinal].name}"] = cause
        return ()


def _ranked_ordinals(ranks: Iterable[RanksRef]) -> frozenset[int]:
    return frozenset(ordinal for ref in ranks for ordinal in ref.columns)


def _read_table_files(store: Store, entry: Snapshot) -> list[_File] | None:
    """Read the data files of a snapshot with their deletes, or None if the list is damaged."""
    try:
        listed = store.get(entry.table_files, [*FileKey._fields, "deletes"])
    except DamagedObject:
        return None
    keys = read_file_keys(listed)
    deletes = listed.column("deletes").to_pylist()
    return list(zip(keys, deletes, strict=True))
