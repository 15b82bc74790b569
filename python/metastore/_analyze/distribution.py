"""Which columns get lists that tell where each value lives, and what is known of that already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from metastore._analyze.asked import find_extra_columns
from metastore._analyze.table.placed import EarlierIndex
from metastore._format.files import FileKey, read_file_keys
from metastore._tables import refusals
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from metastore._analyze.asked import ColumnChoice
    from metastore._analyze.request import AnalyzeRequest
    from metastore._analyze.table.jobs import ValueJobs
    from metastore._format.columns import Column
    from metastore._format.manifest import Manifest, Snapshot
    from metastore._store import Store
    from metastore._tables.model import TableFacts


class ValueIndexExtra:
    """The distributions of values over data files of one ANALYZE.

    Attributes:
        failed: Columns without one that should have it, and why.
    """

    def __init__(
        self, spark: SparkSession, facts: TableFacts, request: AnalyzeRequest, asked: ColumnChoice, store: Store
    ) -> None:
        """Find out which columns are wanted."""
        self.failed: dict[str, str] = {}
        self._facts, self._store = facts, store
        wanted = find_extra_columns("distribution", spark, facts, request, asked, self.failed)
        self._wanted = frozenset(place for place, column in enumerate(facts.columns) if column in wanted)

    def is_current(self, entry: Snapshot) -> bool:
        """Tell whether a snapshot's entry has all that is wanted."""
        return not self._wanted or (self._wanted <= set(entry.distribution) and entry.placed is not None)

    def restore(self, entry: Snapshot) -> None:
        """Want what an entry has, too: it cannot be taken from it."""
        lost = {_identity(entry.columns[ordinal]) for ordinal in entry.distribution}
        self._wanted |= {place for place, column in enumerate(self._facts.columns) if _identity(column) in lost}

    def asked_of(self, jobs: ValueJobs, manifest: Manifest | None, snapshot: str) -> ValueJobs:
        """Have jobs make what is wanted, and what the newest entry has of the same snapshot."""
        entries = manifest.snapshots if manifest else ()
        places = {_identity(column): place for place, column in enumerate(self._facts.columns)}
        kept = {
            places[_identity(entry.columns[ordinal])]
            for entry in entries
            if entry.id == snapshot
            for ordinal in entry.distribution
            if _identity(entry.columns[ordinal]) in places
        }
        wanted = self._wanted | kept
        if not wanted:
            return jobs
        earlier = next((found for entry in reversed(entries) if (found := self._earlier(entry, wanted, places))), ())
        return replace(jobs, distribution=wanted, earlier=earlier)

    def note(self, made: Snapshot) -> None:
        """Note what could not be made."""
        names = (self._facts.columns[ordinal].name for ordinal in sorted(self._wanted - set(made.distribution)))
        self.failed |= {f"distribution of {name}": refusals.NOT_DISTRIBUTED for name in names}

    def _earlier(
        self, entry: Snapshot, wanted: frozenset[int], places: dict[tuple[str, str], int]
    ) -> tuple[EarlierIndex, ...]:
        now = {ordinal: places.get(_identity(entry.columns[ordinal]), -1) for ordinal in entry.distribution}
        now = {ordinal: place for ordinal, place in now.items() if place in wanted}
        if not now:
            return ()
        try:
            listed = self._store.get(entry.table_files, FileKey._fields)
        except DamagedObject:
            return ()
        live = {file.key: place for place, file in enumerate(self._facts.files)}
        files = np.array([live.get(key, -1) for key in read_file_keys(listed)], np.int64)
        if not (files >= 0).any():
            return ()
        held = [(ref.object, {i: now[i] for i in ref.columns if i in now}) for ref in entry.frequencies]
        return tuple(EarlierIndex(ref, ordinals, files) for ref, ordinals in held if ordinals)


def _identity(column: Column) -> tuple[str, str]:
    return column.key, column.type
