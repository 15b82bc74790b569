"""Writes the table level and commits it together with new blocks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pyarrow as pa

from metastore._analyze.coverage import DEPTHS
from metastore._analyze.kernel import table_sketch_rows, table_summary_rows
from metastore._analyze.level import LiveStatistics
from metastore._analyze.own_level import UserDefinedLevel, newest_versions
from metastore._analyze.stored_nodes import GroupAggregates, GroupAggregateWriter
from metastore._analyze.table.early import DetailPrefetch
from metastore._analyze.table.written import TableDetailWriter
from metastore._format.layout import size_row_groups
from metastore._format.manifest import Manifest, Snapshot, iterate_objects
from metastore._format.schemas import TABLE_FILES
from metastore._store.salvage import repair_snapshot
from metastore._visible import get_logger
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from metastore._analyze.coverage import Coverage
    from metastore._analyze.kernel import ColumnStatistics
    from metastore._analyze.table.jobs import ValueJobs
    from metastore._analyze.table.written import TableDetailResult, TableLevelOptions
    from metastore._format.manifest import Block, TableIdentity
    from metastore._format.objects import ObjectRef
    from metastore._store import Store
    from metastore._tables.model import DataFile, TableFacts
    from metastore.statistics import Statistic

_LOG = get_logger(__name__)
_ROW_GROUPS = 16
NEVER_WRITTEN = "none"


@dataclass(frozen=True)
class TableLevel:
    """The reduction of one snapshot.

    Attributes:
        snapshot: Its entry for the manifest.
        objects: How many objects were written for it.
        failed: User-defined statistics that could not be merged, and why.
        nodes: The objects with its partial merges.
    """

    snapshot: Snapshot
    objects: int
    failed: Mapping[str, str]
    nodes: tuple[ObjectRef, ...] = ()


def write_table_level(
    store: Store,
    facts: TableFacts,
    coverage: Coverage,
    options: TableLevelOptions,
    statistics: Sequence[Statistic] = (),
    jobs: ValueJobs | None = None,
    nodes: Sequence[ObjectRef] = (),
) -> TableLevel:
    """Reduce what is known of the live files and write it."""
    try:
        return _written(store, facts, coverage, options, statistics, jobs, nodes)
    except DamagedObject as damage:  # a block's are told in another way
        _LOG.warning("partial merges are made again: %s", damage)
        return _written(store, facts, coverage, options, statistics, jobs, ())


def _written(
    store: Store,
    facts: TableFacts,
    coverage: Coverage,
    options: TableLevelOptions,
    statistics: Sequence[Statistic],
    jobs: ValueJobs | None,
    refs: Sequence[ObjectRef],
) -> TableLevel:
    rows, depth = [], 0
    nodes = GroupAggregates(store, refs)
    own = UserDefinedLevel(store, coverage.blocks, facts.files, statistics)
    extra = own.reduced(facts.columns)
    writer = GroupAggregateWriter(store, nodes)
    ordinals = {column.key: place for place, column in enumerate(facts.columns)}
    with ThreadPoolExecutor() as threads:
        early = DetailPrefetch(store, () if refs else coverage.used, threads)
        details = TableDetailWriter(store, options, threads, early, refs, jobs)
        for known in LiveStatistics(store, coverage.blocks, facts.files, nodes).columns(facts.columns):
            reduced = replace(known.reduced, extra=extra.get((known.column.key, known.column.type), {}))
            rows.append((ordinals[known.column.key], reduced, known.rows.num_rows))
            details.add(ordinals[known.column.key], known, reduced)
            writer.add(known.merge)
            depth = max(depth, DEPTHS[known.computed])
        store.ensure_writable()
        sketches = threads.submit(_put, store, "table-sketches", table_sketch_rows(rows))
        files = threads.submit(store.put, "table-files", *_one_group(_files_table(facts.files, coverage)))
        written = details.write()
        rows = [(place, _with_details(found, place, written), covered) for place, found, covered in rows]
        summary = _put(store, "table-summary", table_summary_rows(rows))
    snapshot = Snapshot(
        id=snapshot_id(facts),
        analyzed_at=datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        computed=next(name for name, rank in DEPTHS.items() if rank == depth),
        columns=facts.columns,
        table_files=files.result(),
        summary=summary,
        sketches=sketches.result(),
        frequencies=written.frequencies.result(),
        frequencies_asked=options.algorithm,
        distribution=written.distribution,
        placed=written.placed,
        histograms=written.histograms.result(),
        **_totals(facts, coverage),
    )
    kept = (*writer.finish(), *written.nodes)
    return TableLevel(
        snapshot, len(list_snapshot_objects(snapshot)) + len(set(kept).difference(refs)), own.failed, kept
    )


def _with_details(known: ColumnStatistics, place: int, written: TableDetailResult) -> ColumnStatistics:
    """A column with what its list and its histogram say of it: summaries and details are of one source."""
    listed = written.listed.get(place)
    found = known if listed is None else listed.applied(known)
    return replace(found, percentiles=written.percentiles.get(place, found.percentiles))


def _totals(facts: TableFacts, coverage: Coverage) -> Mapping[str, Any]:
    files, live = facts.files, facts.live_rows
    return {
        "exact": facts.is_physical,
        "files": sum(1 for file in files if coverage.holds(file)),
        "files_total": len(files),
        "rows": live,
        "physical_rows": sum(file.physical_rows for file in files),
        "size_bytes": sum(file.size for file in files),
        "live_size_bytes": None if live is None else sum(map(_live_size, files)),
    }


def _live_size(file: DataFile) -> int:
    live = file.live_rows
    return file.size * live // file.rows if file.rows and live is not None else file.size


def _put(store: Store, kind: str, table: pa.Table) -> ObjectRef | None:
    if table.num_rows == 0:
        return None
    ordered = table.sort_by("column")
    return store.put(kind, ordered, size_row_groups(ordered.column("column"), -(-ordered.num_rows // _ROW_GROUPS)))


def _one_group(table: pa.Table) -> tuple[pa.Table, list[int]]:
    return table, [table.num_rows] if table.num_rows else []


def _files_table(files: Sequence[DataFile], coverage: Coverage) -> pa.Table:
    best = [coverage.best(file) for file in files]
    values = {
        "block": [found and found.block.id for found in best],
        "file": [found and found.ordinals[file.key] for file, found in zip(files, best, strict=True)],
        "path": [file.path for file in files],
        "size": [file.size for file in files],
        "rows": [file.rows for file in files],
        "deletes": [file.deletes for file in files],
        "deleted_rows": [file.deleted_rows for file in files],
        "log_files": [None] * len(files),
        "modified": [file.modified for file in files],
    }
    return pa.table([pa.array(values[field.name], field.type) for field in TABLE_FILES], schema=TABLE_FILES)


def list_snapshot_objects(snapshot: Snapshot) -> dict[str, int]:
    """Name the objects of a snapshot's entry, with their lengths."""
    return {ref.name: ref.length for ref in iterate_objects(snapshot)}


class ManifestChange:
    """A commit as a change of whatever manifest is the newest.

    Attributes:
        base: Ids of the blocks that the manifest had when the change was applied last.
    """

    def __init__(
        self,
        identity: TableIdentity,
        blocks: tuple[Block, ...],
        instead: Mapping[str, Block | None],
        snapshot: Snapshot,
        settings: Mapping[str, Any],
        nodes: tuple[ObjectRef, ...] = (),
        damaged: frozenset[str] = frozenset(),
    ) -> None:
        """Describe the change."""
        self.base: frozenset[str] = frozenset()
        self._identity = identity
        self._blocks = blocks
        self._instead = instead
        self._snapshot = snapshot
        self._settings = dict(settings)
        self._nodes = nodes
        self._damaged = damaged

    def __call__(self, old: Manifest | None) -> Manifest:
        """Apply the change."""
        start = old or Manifest(table=self._identity)
        self.base = frozenset(block.id for block in start.blocks)
        found = (self._instead.get(block.id, block) for block in start.blocks)
        kept = tuple(block for block in found if block is not None)
        added = tuple(block for block in self._blocks if block.id not in self.base | self._instead.keys())
        entries = [entry for one in start.snapshots if (entry := repair_snapshot(one, self._damaged)) is not None]
        others = (entry for entry in entries if entry.id != self._snapshot.id)
        snapshot = self._with_ranks(entries)
        own = newest_versions(block.statistics for block in kept + added)
        settings = {**self._settings, "statistics": own} if own else self._settings
        return replace(start, blocks=kept + added, snapshots=(*others, snapshot), settings=settings, nodes=self._nodes)

    def _with_ranks(self, entries: Sequence[Snapshot]) -> Snapshot:
        """The entry with the ranks that another writer committed for the same snapshot meanwhile."""
        mine = self._snapshot
        same = (entry for entry in entries if (entry.id, entry.columns) == (mine.id, mine.columns))
        return mine if mine.ranks else replace(mine, ranks=next((entry.ranks for entry in same), ()))


def snapshot_id(facts: TableFacts) -> str:
    """Name the snapshot in the manifest; a table that was never written has one too."""
    return facts.snapshot or NEVER_WRITTEN
