"""Which columns get exact ranks, and from what: the stored ones, where only data files were added since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types
from pyspark.errors import PySparkException

from metastore._analyze.asked import find_extra_columns
from metastore._analyze.failures import find_cause
from metastore._format.files import FileKey, read_file_keys
from metastore._visible import get_logger
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from metastore._analyze.asked import ColumnChoice
    from metastore._analyze.ranks import RankSort
    from metastore._analyze.request import AnalyzeRequest
    from metastore._format.columns import Column
    from metastore._format.manifest import Manifest, Snapshot
    from metastore._format.references import RanksRef
    from metastore._store import Store
    from metastore._tables.model import DataFile

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
        lost = {_identity(entry.columns[ordinal]) for ref in entry.ranks for ordinal in ref.columns}
        places = enumerate(self._facts.columns)
        self._ordinals |= {place for place, column in places if _identity(column) in lost}

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
            if keys <= live and not self._store.absent({ref.object.name: ref.object.length for ref in entry.ranks}):
                return entry.ranks, keys
        return (), frozenset()

    def _same_columns(self, entry: Snapshot) -> bool:
        columns = self._facts.columns
        held = {ordinal for ref in entry.ranks for ordinal in ref.columns}
        return all(
            ordinal < len(columns) and _identity(columns[ordinal]) == _identity(entry.columns[ordinal])
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


def _identity(column: Column) -> tuple[Any, ...]:
    return column.key, column.type, column.collation
