"""Which columns of a table are reduced by a Spark job, and where the job finds their values."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from metastore._analyze.kernel import FileColumn
from metastore._analyze.shipping import ship
from metastore._analyze.table import placed, scattered
from metastore._analyze.table.cuts import COMPLETE, DUPLICATES
from metastore._analyze.table.pieces import FromFile
from metastore._analyze.table.placed import InFile
from metastore._analyze.table.reduction import DUPLICATES_ONLY, REDUCE, SCATTER, Listed, algorithm_of
from metastore._analyze.table.wanted import Wanted
from metastore._analyze.worker import unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import SparkContext

    from metastore._analyze.level import Source
    from metastore._analyze.place import Place
    from metastore._analyze.table.cuts import Lists
    from metastore._analyze.table.kept import Listing
    from metastore._analyze.table.list_nodes import FromNodes
    from metastore._analyze.table.pieces import Piece
    from metastore._analyze.table.placed import Earlier
    from metastore._analyze.table.scattered import Result, Target
    from metastore._tables.model import DataFile

AUTO, EXACT = "auto", "exact"


def chosen(lists: Lists, option: str, threshold: int) -> str:
    """The algorithm for a column.

    Lists that are cut are reduced as they are, unless exact frequencies are asked for: finding what they lack means
    to read the column again in every data file.
    """
    if option == EXACT:
        found = algorithm_of(lists, threshold)
        return SCATTER if found == REDUCE and lists.cut.any() else found
    if option == AUTO:
        return REDUCE if lists.cut.any() else algorithm_of(lists, threshold)
    return option


@dataclass(frozen=True)
class Jobs:
    """Where jobs run and what they read.

    Attributes:
        context: Where they run.
        store: Where objects are and lists go.
        files: The data files of the snapshot, by path, in the order of its list.
        local: Whether paths without a scheme are on the local file system.
        distribution: Columns, by their place in the snapshot's schema, of which lists tell where each value lives.
        earlier: Such lists of an earlier snapshot.
        field_ids: As of the table.
    """

    context: SparkContext
    store: Place
    files: Mapping[str, DataFile]
    local: bool
    distribution: frozenset[int] = frozenset()
    earlier: tuple[Earlier, ...] = ()
    field_ids: Mapping[str, int] = field(default_factory=dict)

    def can(self, one: Listing) -> bool:
        """Whether every value of a column is in a complete list or in a file that Python opens."""
        paths = zip(_paths(one.sources), one.lists.cut.tolist(), strict=True)
        return all(
            not cut or (path in self.files and unreadable(self.files[path], local=self.local) is None)
            for path, cut in paths
        )

    def run(self, columns: Mapping[int, Listing], targets: Mapping[int, Target], groups: Sequence[FromNodes]) -> Result:
        """Reduce columns."""
        ship(self.context)
        return scattered.run(self.context, self.store, [*groups, *self._pieces(columns)], targets)

    def _pieces(self, columns: Mapping[int, Listing]) -> Iterator[Piece]:
        complete = Wanted("frequencies")
        again: dict[str, dict[int, FileColumn]] = defaultdict(dict)
        for ordinal, one in columns.items():
            complete.add(ordinal, one.sources, one.tree.among(np.where(one.lists.cut, -1, 0)))
            for path, cut in zip(_paths(one.sources), one.lists.cut.tolist(), strict=True):
                if cut:
                    again[path][ordinal] = FileColumn.of(one.lists.column, self.field_ids)
        yield from complete.parts()
        for path, wanted in again.items():
            yield FromFile(self.files[path].location, wanted)

    def distribute(self, columns: Mapping[int, Listing], targets: Mapping[int, Target]) -> Result:
        """Make lists that tell where each value lives."""
        ship(self.context)
        files = len(self.files)
        found = placed.run(self.context, self.store, list(self._placed(columns, self.earlier)), targets, files)
        if found.unreadable and self.earlier:
            found = placed.run(self.context, self.store, list(self._placed(columns, ())), targets, files)
        return found

    def _placed(self, columns: Mapping[int, Listing], earlier: Sequence[Earlier]) -> Iterator[placed.Piece]:
        places = {path: place for place, path in enumerate(self.files)}
        complete = Wanted("frequencies")
        again: dict[str, dict[int, FileColumn]] = defaultdict(dict)
        for ordinal, listing in columns.items():
            lists, sources = listing.lists, listing.sources
            told = {place for one in earlier if ordinal in one.ordinals.values() for place in one.files.tolist()}
            paths = list(_paths(sources))
            at = np.array([-1 if places[path] in told else places[path] for path in paths], np.int64)
            complete.add(ordinal, sources, np.where(lists.cut, -1, at))
            for path, cut, place in zip(paths, lists.cut.tolist(), at.tolist(), strict=True):
                if cut and place >= 0:
                    again[path][ordinal] = FileColumn.of(lists.column, self.field_ids)
        for one in earlier:
            ordinals = {then: now for then, now in one.ordinals.items() if now in columns}
            if ordinals:
                yield replace(one, ordinals=ordinals)
        yield from complete.parts()
        for path, wanted in again.items():
            yield InFile(places[path], FromFile(self.files[path].location, wanted))


def listed_of(target: Target, found: scattered.Reduced) -> Listed:
    """What is known of a list that a job made."""
    if target.algorithm == DUPLICATES_ONLY and found.singles:
        return Listed(DUPLICATES, 1, target.algorithm, found.listed + found.singles, found.singles)
    return Listed(COMPLETE, 0, target.algorithm, found.listed, found.singles)


def _paths(sources: Sequence[Source]) -> Iterator[str]:
    for source in sources:
        yield from source.indexed.files["path"].take(source.files).to_pylist()
