"""The statistics of a snapshot: what its live data files have in common, written as table-level objects."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.errors import DamagedObject
from metastore.format.manifest import Snapshot, iterate_objects
from metastore.format.object_layout import ROW_GROUPS, size_row_groups
from metastore.format.object_schemas import TABLE_FILES
from metastore.kernel.statistic_rows import table_sketch_rows, table_summary_rows
from metastore.store.block_files import DEPTHS
from metastore.store.prefetch import DetailPrefetch
from metastore.table_level.column_groups import AGGREGATE_KIND
from metastore.table_level.group_cache import GroupCache
from metastore.table_level.live_statistics import LiveStatistics
from metastore.table_level.table_details import TableDetailResult, TableDetailWriter, TableLevelOptions
from metastore.table_level.user_defined_level import UserDefinedLevel
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.objects import ObjectRef
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.statistics import Statistic
    from metastore.store import Store
    from metastore.store.coverage import Coverage
    from metastore.table_level.value_jobs import ValueJobs

_LOG = get_logger(__name__)

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
    nodes = GroupCache(store, AGGREGATE_KIND, refs)
    own = UserDefinedLevel(store, coverage.blocks, facts.files, statistics)
    extra = own.reduce(facts.columns)
    rows, depth = [], 0
    ordinals = {column.key: place for place, column in enumerate(facts.columns)}
    with ThreadPoolExecutor() as threads:
        early = DetailPrefetch(store, () if refs else coverage.live_blocks, threads)
        details = TableDetailWriter(store, options, threads, early, refs, jobs)
        for known in LiveStatistics(store, coverage.blocks, facts.files, nodes).read_columns(facts.columns):
            reduced = replace(known.statistics, extra=extra.get((known.column.key, known.column.type), {}))
            rows.append((ordinals[known.column.key], reduced, known.rows.num_rows))
            details.add(ordinals[known.column.key], known, reduced)
            depth = max(depth, DEPTHS[known.computed])
        store.ensure_writable()
        sketches = threads.submit(_put, store, "table-sketches", table_sketch_rows(rows))
        files = threads.submit(store.put, "table-files", *_one_group(_files_table(facts.files, coverage)))
        written = details.write()
        rows = [(place, _with_details(found, place, written), covered) for place, found, covered in rows]
        summary = _put(store, "table-summary", table_summary_rows(rows))
    snapshot = Snapshot(
        computed=next(name for name, rank in DEPTHS.items() if rank == depth),
        table_files=files.result(),
        summary=summary,
        sketches=sketches.result(),
        frequencies_asked=options.algorithm,
        **_refer_details(written),
        **_describe(facts, coverage),
    )
    kept = (*nodes.finish(), *written.nodes)
    objects = len(list_snapshot_objects(snapshot)) + len(set(kept).difference(refs))
    return TableLevel(snapshot, objects, own.failed, kept)


def _refer_details(written: TableDetailResult) -> Mapping[str, Any]:
    return {
        "frequencies": written.frequencies.result(),
        "distribution": written.distribution,
        "placed": written.index_coverage,
        "histograms": written.histograms.result(),
    }


def _with_details(known: ColumnStatistics, place: int, written: TableDetailResult) -> ColumnStatistics:
    """A column with what its list and its histogram say of it: summaries and details are of one source."""
    listed = written.lists.get(place)
    found = known if listed is None else listed.apply_to(known)
    return replace(found, percentiles=written.percentiles.get(place, found.percentiles))


def _describe(facts: TableFacts, coverage: Coverage) -> Mapping[str, Any]:
    files, live = facts.files, facts.live_rows
    return {
        "id": snapshot_id(facts),
        "analyzed_at": datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "columns": facts.columns,
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
    return store.put(kind, ordered, size_row_groups(ordered.column("column"), -(-ordered.num_rows // ROW_GROUPS)))


def _one_group(table: pa.Table) -> tuple[pa.Table, list[int]]:
    return table, [table.num_rows] if table.num_rows else []


def _files_table(files: Sequence[DataFile], coverage: Coverage) -> pa.Table:
    best = [coverage.deepest_block(file) for file in files]
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


def snapshot_id(facts: TableFacts) -> str:
    """Name the snapshot in the manifest; a table that was never written has one too."""
    return facts.snapshot or NEVER_WRITTEN
