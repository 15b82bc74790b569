"""The statistics of a snapshot: what its live data files have in common, written as table-level objects."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.errors import DamagedObject
from metastore.format.extra_value import decode_value, encode_value
from metastore.format.manifest import FULL, Snapshot, iterate_objects
from metastore.format.object_layout import ROW_GROUPS, size_row_groups, split_evenly
from metastore.format.object_schemas import TABLE_FILES
from metastore.kernel.statistic_rows import table_sketch_rows, table_summary_rows
from metastore.kernel.user_defined import UserFunctionError, encode_user_value, merge_user_values
from metastore.store.block_files import DEPTHS
from metastore.store.prefetch import DetailPrefetch
from metastore.table_level.column_groups import AGGREGATE_KIND
from metastore.table_level.group_cache import GroupCache
from metastore.table_level.live_statistics import LiveStatistics
from metastore.table_level.table_details import TableDetailResult, TableDetailWriter, TableLevelOptions
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.objects import ObjectRef
    from metastore.format.table_column import Column
    from metastore.kernel.column_statistics import ColumnStatistics
    from metastore.statistics import Statistic
    from metastore.store import Store
    from metastore.store.block_files import BlockFiles, ColumnKey
    from metastore.store.coverage import Coverage
    from metastore.table_level.value_jobs import ValueJobs


_VALUES_AT_ONCE = 1 << 20

ValuesByFile = dict[int, bytes]
"""Stored value by place of the data file."""


class UserDefinedLevel:
    """The user-defined statistics of a snapshot's live files, reduced column by column."""

    def __init__(
        self, live: LiveStatistics, blocks: Sequence[BlockFiles], count: int, statistics: Sequence[Statistic]
    ) -> None:
        """Look which versions there are; no value is read yet. There are so many live files."""
        self._live, self._count = live, count
        self._known = {one.name: one for one in statistics}
        stored = (one.block.statistics for one in blocks if one.block.computed == FULL)
        self._versions = {name: version for versions in stored for name, version in versions.items()}
        """Of each statistic the version that counts: that of the function at hand, else the newest stored."""
        self._has_values = bool(self._versions)
        self._versions |= {name: one.version for name, one in self._known.items()}
        self.failed: dict[str, str] = {}

    def reduce(self, columns: Sequence[Column]) -> dict[ColumnKey, dict[str, bytes]]:
        """Reduce what is known of some columns."""
        step = max(1, _VALUES_AT_ONCE // max(self._count, 1)) if self._has_values else len(columns) or 1
        found: dict[ColumnKey, dict[str, bytes]] = {}
        for start in range(0, len(columns), step):
            found |= self._reduced(columns[start : start + step])
        return found

    def _reduced(self, columns: Sequence[Column]) -> dict[ColumnKey, dict[str, bytes]]:
        found: dict[tuple[ColumnKey, str], ValuesByFile] = defaultdict(dict)
        for indexed, column, places, extras in self._live.read_user_defined(columns):
            stored = indexed.block.statistics.items()
            names = {name for name, version in stored if self._versions[name] == version}
            for place, extra in zip(places, extras, strict=True):
                for name in names & extra.keys():
                    found[(column.key, column.type), name].setdefault(place, extra[name])
        labels = {(column.key, column.type): column.name for column in columns}
        reduced: dict[ColumnKey, dict[str, bytes]] = defaultdict(dict)
        for (key, name), values in found.items():
            whole = self._whole(name, labels[key], values) if len(values) == self._count else None
            reduced[key][name] = encode_value(None) if whole is None else whole
        return reduced

    def _whole(self, name: str, column: str, values: ValuesByFile) -> bytes | None:
        """The value of the table; None where the files' values do not tell it."""
        if len(values) == 1:
            return next(iter(values.values()))
        statistic = self._known.get(name)
        if statistic is None or statistic.merge is None:
            return None
        try:
            parts = [decode_value(values[place]).as_py() for place in sorted(values)]
            return encode_user_value(merge_user_values(statistic, parts))
        except (UserFunctionError, DamagedObject) as failure:
            self.failed[f"{name}({column})"] = f"merge: {failure}"
            return None


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
    columns = facts.columns + options.expressions
    nodes = GroupCache(store, AGGREGATE_KIND, refs)
    live = LiveStatistics(store, coverage.blocks, facts.files, nodes)
    own = UserDefinedLevel(live, coverage.blocks, len(facts.files), statistics)
    extra = own.reduce(columns)
    rows, depth = [], 0
    ordinals = {column.key: place for place, column in enumerate(columns)}
    with ThreadPoolExecutor() as threads:
        early = DetailPrefetch(store, () if refs else coverage.live_blocks, threads)
        details = TableDetailWriter(store, options, threads, early, refs, jobs)
        for known in live.read_columns(columns):
            reduced = replace(known.statistics, extra=extra.get((known.column.key, known.column.type), {}))
            rows.append((ordinals[known.column.key], reduced, known.rows.num_rows))
            details.add(ordinals[known.column.key], known, reduced)
            depth = max(depth, DEPTHS[known.computed])
        store.ensure_writable()
        sketches = threads.submit(_put, store, "table-sketches", table_sketch_rows(rows))
        files = threads.submit(store.put, "table-files", *_files_table(facts.files, coverage))
        written = details.write()
        rows = [(place, _with_details(found, place, written), covered) for place, found, covered in rows]
        summary = _put(store, "table-summary", table_summary_rows(rows))
    snapshot = Snapshot(
        computed=next(name for name, rank in DEPTHS.items() if rank == depth),
        table_files=files.result(),
        summary=summary,
        sketches=sketches.result(),
        expressions=options.expressions,
        **_refer_details(written, options),
        **_describe(facts, coverage),
    )
    kept = (*nodes.finish(), *written.nodes)
    objects = len(list_snapshot_objects(snapshot)) + len(set(kept).difference(refs))
    return TableLevel(snapshot, objects, own.failed, kept)


def _refer_details(written: TableDetailResult, options: TableLevelOptions) -> Mapping[str, Any]:
    return {
        "frequencies_asked": options.algorithm,
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
        "columns": _name_columns(facts, coverage),
        "exact": facts.is_physical,
        "files": sum(1 for file in files if coverage.holds(file)),
        "files_total": len(files),
        "rows": live,
        "physical_rows": sum(file.physical_rows for file in files),
        "size_bytes": sum(file.size for file in files),
        "live_size_bytes": None if live is None else sum(map(_live_size, files)),
    }


def _name_columns(facts: TableFacts, coverage: Coverage) -> tuple[Column, ...]:
    """The table's columns, with the names that they have in data files without field ids, where there are any."""
    blocks = (indexed.block for indexed in coverage.live_blocks)
    mapped = {column.key: column.mapped_key for block in blocks for column in block.columns if column.mapped_key}
    return tuple(replace(column, key=mapped.get(column.key, column.key)) for column in facts.columns)


def _live_size(file: DataFile) -> int:
    live = file.live_rows
    return file.size * live // file.rows if file.rows and live is not None else file.size


def _put(store: Store, kind: str, table: pa.Table) -> ObjectRef | None:
    if table.num_rows == 0:
        return None
    ordered = table.sort_by("column")
    return store.put(kind, ordered, size_row_groups(ordered.column("column"), -(-ordered.num_rows // ROW_GROUPS)))


def _files_table(files: Sequence[DataFile], coverage: Coverage) -> tuple[pa.Table, list[int]]:
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
        "delete_files": [file.delete_files for file in files],
    }
    table = pa.table([pa.array(values[field.name], field.type) for field in TABLE_FILES], schema=TABLE_FILES)
    return table, split_evenly(table.num_rows, 1)


def list_snapshot_objects(snapshot: Snapshot) -> dict[str, int]:
    """Name the objects of a snapshot's entry, with their lengths."""
    return {ref.name: ref.length for ref in iterate_objects(snapshot)}


def snapshot_id(facts: TableFacts) -> str:
    """Name the snapshot in the manifest; a table that was never written has one too."""
    return facts.snapshot or NEVER_WRITTEN
