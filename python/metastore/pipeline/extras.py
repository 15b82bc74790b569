"""Which columns get exact ranks, and from what: the stored ones, where only data files were added since."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types
from pyspark.errors import PySparkException

from metastore import settings
from metastore.adapters import refusals
from metastore.adapters.spark_errors import find_cause
from metastore.errors import DamagedObject
from metastore.format.data_files import FileKey, read_file_keys
from metastore.format.manifest import FULL
from metastore.pipeline.request import find_columns
from metastore.table_level.value_index_job import EarlierIndex
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.manifest import Manifest, Snapshot
    from metastore.format.manifest_references import RanksRef
    from metastore.format.table_column import Column
    from metastore.pipeline.request import AnalyzeRequest
    from metastore.store import Store
    from metastore.table_level.rank_sort import RankSort
    from metastore.table_level.value_jobs import ValueJobs


ColumnChoice = bool | tuple[str, ...]
PARTITION_REFUSAL = "it is made of the whole table: leave the partition out"


def find_extra_columns(
    what: str,
    spark: SparkSession,
    facts: TableFacts,
    request: AnalyzeRequest,
    asked: ColumnChoice,
    failed: dict[str, str],
) -> set[Column]:
    """Find the columns that are to have something."""
    if request.depth != FULL:
        return set()
    listed = facts.properties.get(f"metastore.{what}.columns", "")
    names = [*settings.get(f"spark.metastore.{what}.columns", spark), *map(str.strip, listed.split(","))]
    sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    found: set[Column] = set()
    if asked is True:
        found.update(column for column in request.columns if column.encoding is not None)
    elif asked:
        found.update(find_columns(facts, asked, case_sensitive=sensitive))
    missing: dict[str, str] = {}
    configured = find_columns(facts, list(filter(None, names)), case_sensitive=sensitive, failed=missing)
    failed |= {f"{what} of {name}": reason for name, reason in missing.items()}
    found.update(set(configured) & set(request.columns))
    if found and len(request.files) < len(facts.files):
        failed |= {f"{what} of {column.name}": PARTITION_REFUSAL for column in found}
        return set()
    return found


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


_LOG = get_logger(__name__)
NOT_ORDERED = "values of its type have no order that is kept"

_File = tuple[FileKey, str | None]


class RanksExtra:
    """The exact ranks of one ANALYZE.

    Attributes:
        failed: Columns without ranks that should have them, and why.
    """

    def __init__(self, jobs: RankSort, request: AnalyzeRequest, asked: ColumnChoice, store: Store) -> None:
        """Find out which columns are wanted."""
        self.failed: dict[str, str] = {}
        self._jobs, self._facts, self._store = jobs, jobs.facts, store
        self._ordinals = self._wanted(request, asked)
        self._made: tuple[RanksRef, ...] | None = None

    def is_current(self, entry: Snapshot) -> bool:
        """Tell whether a snapshot's entry has all that is wanted."""
        return self._ordinals <= {ordinal for ref in entry.ranks for ordinal in ref.columns}

    def restore(self, entry: Snapshot) -> None:
        """Want the ranks that an entry has, too: they cannot be taken from it."""
        lost = {_ordered_identity(entry.columns[ordinal]) for ref in entry.ranks for ordinal in ref.columns}
        places = enumerate(self._facts.columns)
        self._ordinals |= {place for place, column in places if _ordered_identity(column) in lost}

    def of(self, manifest: Manifest | None) -> tuple[RanksRef, ...]:
        """Compute what is wanted and is not there."""
        if self._made is None:
            self._made = self._make(manifest)
        return self._made

    def _make(self, manifest: Manifest | None) -> tuple[RanksRef, ...]:
        files = {_key(file): file for file in self._facts.files}
        base, before = self._base(manifest, frozenset(files))
        added = [file for key, file in files.items() if key not in before]
        held = {ordinal for ref in base for ordinal in ref.columns}
        if not added and base:
            return base + self._computed(sorted(self._ordinals - held), self._facts.files, ())
        merged = self._computed(sorted(self._ordinals & held), added, base)
        return merged + self._computed(sorted(self._ordinals - held), self._facts.files, ())

    def _base(self, manifest: Manifest | None, live: frozenset[_File]) -> tuple[tuple[RanksRef, ...], frozenset[_File]]:
        """The newest stored ranks of files that are all still there as they were, and these files."""
        for entry in reversed(manifest.snapshots if manifest else ()):
            if not entry.ranks or not self._same_columns(entry):
                continue
            try:
                listed = self._store.get(entry.table_files, [*FileKey._fields, "deletes"])
            except DamagedObject:
                continue
            keys = frozenset(zip(read_file_keys(listed), listed.column("deletes").to_pylist(), strict=True))
            if keys <= live and not self._store.find_absent(
                {ref.object.name: ref.object.length for ref in entry.ranks}
            ):
                return entry.ranks, keys
        return (), frozenset()

    def _same_columns(self, entry: Snapshot) -> bool:
        columns = self._facts.columns
        held = {ordinal for ref in entry.ranks for ordinal in ref.columns}
        return all(
            ordinal < len(columns) and _ordered_identity(columns[ordinal]) == _ordered_identity(entry.columns[ordinal])
            for ordinal in held
        )

    def _computed(
        self, ordinals: Sequence[int], files: Sequence[DataFile], known: tuple[RanksRef, ...]
    ) -> tuple[RanksRef, ...]:
        if not ordinals:
            return ()
        try:
            return self._jobs.ranks(ordinals, files, known)
        except (PySparkException, Py4JError) as failure:
            cause = find_cause(failure)
        if known:
            _LOG.warning("ranks are computed anew: %s", cause)
            return self._computed(ordinals, self._facts.files, ())
        self.failed |= {f"ranks of {self._facts.columns[ordinal].name}": cause for ordinal in ordinals}
        return ()

    def _wanted(self, request: AnalyzeRequest, asked: ColumnChoice) -> frozenset[int]:
        found = find_extra_columns("ranks", self._jobs.spark, self._facts, request, asked, self.failed)
        unordered = {column for column in found if column.encoding is None or column.collation is not None}
        self.failed |= {f"ranks of {column.name}": NOT_ORDERED for column in unordered}
        return frozenset(place for place, column in enumerate(self._facts.columns) if column in found - unordered)


def _key(file: DataFile) -> _File:
    return file.key, file.deletes


def _ordered_identity(column: Column) -> tuple[Any, ...]:
    return column.key, column.type, column.collation
