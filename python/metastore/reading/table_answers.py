"""The statistics of one table, read from where they are stored."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from metastore.adapters.identifiers import find_column
from metastore.answers import Answer, Summary
from metastore.errors import InvalidArgument, MetastoreError, NoStatistics
from metastore.format.object_schemas import ENCODED_TYPES
from metastore.format.table_column import Column, is_compatible
from metastore.reading import column_details, exact_ranks, extra_columns, summary_rows, views
from metastore.reading.column_answers import USER_DEFINED, add_user_defined, shape_answer
from metastore.reading.discovery import discover_all, report_missing
from metastore.reading.distribution_changes import MEASURES as MOVED
from metastore.reading.distribution_changes import compare_distributions, explain_unknown
from metastore.reading.file_answers import FileAnswers
from metastore.reading.folder import Folder
from metastore.reading.snapshot import SnapshotAnswer
from metastore.reading.snapshot_files import count_known_columns, read_statistics
from metastore.reading.summary_changes import compare_summaries, sort_by_change
from metastore.reading.summary_rows import FileCounts
from metastore.reading.views import NARROWED
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from metastore.format.manifest import Snapshot

_LOG = get_logger(__name__)


class Statistics(FileAnswers):
    """The statistics of one table, as `metastore.open` gives them: no Spark, no JVM.

    What it shows is the manifest of the moment it was opened; open again to see later ones.
    """

    def __repr__(self) -> str:
        return f"Statistics({self.table!r}, snapshots={len(self._snapshots)})"

    def summary(self, file: str | None = None, at: str | int | datetime | None = None) -> Summary:
        """One row per column: bounds, distinct values, quantiles, nulls."""
        shown = self._at(at)
        described = self._summary_rows(file, shown)
        answer = self._answer(Summary, "summary", described, shown, _own_fields(described))
        return answer if file else replace(answer, measure_ranks=partial(self._measure_quartiles, shown))

    def files(self, at: str | int | datetime | None = None) -> Answer:
        """One row per data file of the table."""
        shown = self._answering(at, self._snapshots)
        if shown is None:
            return self._answer(Answer, "files", [])
        described = self._describe_files(shown)
        listed = self._lineage.listed if self._lineage and at is None and not shown.is_requested else ()
        if listed:
            known = dict(zip(self._list_keys(shown.snapshot), described, strict=True))
            described = [known.get(file.key) or summary_rows.describe_new_file(file) for file in listed]
        return self._answer(Answer, "files", described, shown)

    def _describe_files(self, shown: SnapshotAnswer) -> list[summary_rows.Row]:
        """The rows of `files` of an analyzed snapshot, in its order."""
        stored, columns = self._stored(shown.snapshot), shown.columns
        known = count_known_columns(stored, columns)
        listed = stored.files.select(["path", "size", "rows", "deleted_rows"]).to_pylist()
        more = zip(stored.partitions, stored.is_covered().tolist(), known.tolist(), strict=True)
        return [
            {**row, "partition": dict(partition) if partition else None, "analyzed": covered, "columns_analyzed": count}
            for row, (partition, covered, count) in zip(listed, more, strict=True)
        ]

    def columns(self, column: str | None = None, at: str | int | datetime | None = None) -> Answer:
        """One row per data file and column that has statistics."""
        shown = self._at(at)
        return self._answer(Answer, "columns", self._column_rows(column, None, shown), shown)

    def diff(
        self,
        before: str | int | datetime,
        after: str | int | datetime | None = None,
        *,
        distributions: bool = False,
        added: bool = False,
    ) -> Answer:
        """One row per column and measure of the summary that differs between two snapshots, the largest change first.

        Args:
            before: A snapshot, or a time.
            after: The other one; the current snapshot if None.
            distributions: Whether two more rows for each column of both tell how far its distribution has moved.
            added: Whether the data files that came after the first are compared with the table at the first. Files that
                others were rewritten to do not count; where it is not known which came, `reason` says why.
        """
        shown, old = self._at(after, "after"), self._at(before, "before")
        if added:
            rows = self._compare_added(old, shown, distributions=distributions)
            return self._answer(Answer, "diff", rows, shown)
        described, former = (self._summary_rows(None, one) for one in (shown, old))
        answer = self._answer(Answer, "diff", compare_summaries(former, described, self._zone), shown)
        return add_distributions(answer, old.snapshot.id, shown.snapshot.id, [self]) if distributions else answer

    def _compare_added(
        self, old: SnapshotAnswer, shown: SnapshotAnswer, *, distributions: bool
    ) -> list[summary_rows.Row]:
        """How the data files that came after a snapshot differ from the table at it."""
        from metastore.reading.added_files import (  # noqa: PLC0415 - no other answer merges statistics
            UnknownAddedFilesError,
            find_added_files,
            reduce_added_files,
        )

        try:
            added = find_added_files(self._store, self._list_between(old.snapshot, shown.snapshot))
        except UnknownAddedFilesError as error:
            unmoved = [
                explain_unknown(column.name, measure, str(error))
                for column in (shown.columns if distributions else ())
                for measure in MOVED
            ]
            return [explain_unknown(None, "count", str(error)), *unmoved]
        assert self._place.manifest is not None  # noqa: S101 - a snapshot came from it
        files = reduce_added_files(self._store, self._place.manifest, shown.snapshot, added, self.table)
        count = FileCounts(len(added), len(added), len(added))
        described = SnapshotAnswer(files.snapshot, shown.current, shown.columns, is_requested=True, files=count)
        place = replace(
            self._place, store=files.store, manifest=replace(self._place.manifest, snapshots=(files.snapshot,))
        )
        rows = compare_summaries(
            self._summary_rows(None, old), Statistics(place, self._zone).describe_columns(described), self._zone
        )
        if not distributions:
            return rows
        before = partial(self._details_of, old)
        former = {column.name for column in old.columns}
        names = [column.name for column in shown.columns if column.name in former]
        return sort_by_change([*rows, *compare_distributions(names, before, files.details)])

    def _details_of(self, shown: SnapshotAnswer, column: str) -> column_details.ColumnDetails:
        return self._details(column, None, shown)[0]

    def _list_between(self, first: Snapshot, last: Snapshot) -> list[Snapshot]:
        """The analyzed snapshots from one to another, both among them, in the order in which they were made."""
        ids = [one.id for one in self._snapshots]
        start, end = ids.index(first.id), ids.index(last.id)
        if start > end:
            raise InvalidArgument("added", f"snapshot {last.id} was analyzed before {first.id}", "Exchange the two.")
        line = self._lineage.ancestors(last.id) if self._lineage is not None else ()
        between = [one for one in self._snapshots[start + 1 : end] if one.id in line or not line]
        return [first, *between, last] if start < end else [first]

    def details(self, column: str, at: str | int | datetime | None = None) -> column_details.ColumnDetails:
        """What is kept of a column beside its summary, as it is stored."""
        return self._details(column, None, self._at(at))[0]

    def names(self, at: str | int | datetime | None = None) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self._at(at).columns]

    def snapshots(self) -> Answer:
        """One row per analyzed snapshot, oldest first."""
        described = [
            {
                "snapshot": one.id,
                "analyzed_at": summary_rows.parse_instant(one.analyzed_at),
                **{name: getattr(one, name) for name in ("files", "files_total", "rows")},
                "columns": len(one.columns),
                "current": self._is_current(one),
                **{name: getattr(one, name) for name in ("size_bytes", "live_size_bytes")},
            }
            for one in self._snapshots
        ]
        return self._answer(Answer, "snapshots", described)

    def view(self, name: str, column: str | None = None, file: str | None = None) -> pa.Table:
        """A view as the data source shows it: the answer's columns and the typed ones of docs/format.md."""
        _check_narrowing(name, column, file)
        if name == "summary":
            shown = self._at(None)
            described = self._summary_rows(file, shown)
            only = find_column(shown.described, column, self.table).name if column else None
            own_fields = _own_fields(described)
            rows = [row for row in described if only in (None, row["column_name"])]
            return views.build_view(name, add_user_defined(rows, own_fields), own_fields)
        if name == "columns":
            return views.build_view(name, self._column_rows(column, file, self._at(None)))
        if name == "ranks":
            return exact_ranks.build_ranks_view(self._store, self._at(None), column, self.table)
        if name in views.NAMES:
            return self._distribution_view(name, column, file)
        return (self.files() if name == "files" else self.snapshots()).to_arrow()

    def schema(self, name: str, column: str | None = None, file: str | None = None) -> pa.Schema:
        """The columns of a view: those of every table, and in `summary` one for each user-defined statistic."""
        if name == views.WIDE:
            columns = self._at(None).columns
            return views.build_wide_schema([find_column(columns, column, self.table)] if column else columns)
        own_fields = _own_fields(self._summary_rows(file, self._at(None))) if name == "summary" else []
        return pa.schema([*views.VIEWS[name], *own_fields])

    def check(self, name: str, column: str | None = None, file: str | None = None) -> None:
        """Tells whether a view can be read."""
        _check_narrowing(name, column, file)
        if name in NARROWED:
            shown = self._at(None)
            wanted = find_column(shown.described, column, self.table) if column else None
            if wanted is not None and name in views.NAMES:
                self._require_values(wanted)
            if file:
                self._place_of(file, self._stored(shown.snapshot))

    def to_table_row(self) -> summary_rows.Row:
        """The row of this table among others, as `tables` shows them."""
        identity = self._place.manifest.table if self._place.manifest else None
        newest = self._answering(None, self._snapshots)
        return {
            "table": self.table,
            "format": identity.format if identity else None,
            "location": self.location,
            "snapshot": newest.snapshot.id if newest else None,
            "current": newest.current if newest else None,
            "analyzed_at": summary_rows.parse_instant(newest.snapshot.analyzed_at) if newest else None,
        }

    def _distribution_view(self, name: str, column: str | None, file: str | None) -> pa.Table:
        shown = self._at(None)
        columns = shown.columns
        wanted = [find_column(columns, column, self.table)] if column else [one for one in columns if one.encoding]
        found = []
        for one in wanted:
            with suppress(NoStatistics):
                found.append(self._details(one.name, file, shown))
        if name == views.FREQUENCIES:
            return views.build_frequencies_view(found, self._zone)
        return (
            views.build_histograms_view(found)
            if name == views.HISTOGRAMS
            else views.build_wide_view(found, wanted, self._zone)
        )

    def _summary_rows(self, file: str | None, shown: SnapshotAnswer) -> list[summary_rows.Row]:
        return self._of_file(file, shown) if file else self.describe_columns(shown)

    def _measure_quartiles(self, shown: SnapshotAnswer) -> Mapping[str, float | None]:
        """How exact the quartiles of columns are, by their names; nothing if it cannot be read."""
        snapshot = shown.snapshot
        if not (shown.is_requested and snapshot.exact):
            return {}
        try:
            shares = [percent / 100 for percent in summary_rows.QUARTILES]
            errors = column_details.measure_rank_errors(self._store, snapshot, shares)
        except MetastoreError as error:
            _LOG.warning("how exact the quartiles of %s are cannot be read: %s", self.table, error)
            return {}
        exact = {column.key for column in exact_ranks.list_rank_columns(snapshot)}
        return {one.name: errors[one.key] for one in shown.described if one.key in errors and one.key not in exact}

    def _column_rows(self, column: str | None, file: str | None, shown: SnapshotAnswer) -> list[summary_rows.Row]:
        snapshot = shown.snapshot
        wanted = [find_column(shown.described, column, self.table)] if column else shown.columns
        stored = self._stored(snapshot)
        paths = stored.files.column("path").to_pylist()
        if file is not None:
            stored = stored.restrict_to(self._place_of(file, stored))
        found = read_statistics(self._store, stored, shown.described, wanted).to_pylist()
        return [self._column_row(row, paths[row["file"]], shown.described[row["column"]]) for row in found]

    def describe_columns(self, shown: SnapshotAnswer) -> list[summary_rows.Row]:
        """The rows of a summary of what answers."""
        snapshot = shown.snapshot
        stored = self._store.get(snapshot.summary).to_pylist() if snapshot.summary else []
        tops = column_details.read_table_tops(self._store, snapshot)
        keys = [column.key for column in snapshot.described]
        found = {keys[row["column"]]: {**row, summary_rows.TOP: tops.get(row["column"])} for row in stored}
        for column in exact_ranks.list_rank_columns(snapshot):
            name = f"percentiles_{column.encoding}"
            quartiles = exact_ranks.read_exact_quantiles(
                self._store, snapshot, column, [p / 100 for p in summary_rows.QUARTILES]
            )
            if column.key in found and found[column.key][name] and quartiles:
                exact = dict(zip(summary_rows.QUARTILES, quartiles, strict=True))
                found[column.key][name] = [exact.get(p, near) for p, near in enumerate(found[column.key][name])]
        written = {column.key: column for column in snapshot.described}
        scope = shown.table_scope
        return [
            self._summary_row(column, found.get(column.key) if _holds(written.get(column.key), column) else None, scope)
            for column in shown.described
        ]

    def _of_file(self, file: str, shown: SnapshotAnswer) -> list[summary_rows.Row]:
        columns = shown.described
        stored = self._stored(shown.snapshot)
        place = self._place_of(file, stored)
        of_file = stored.files.slice(place, 1).to_pylist()[0]
        known = read_statistics(self._store, stored.restrict_to(place), columns, columns).to_pylist()
        if not known:
            raise NoStatistics(self.table, detail=f"of the data file {file}")
        tops = column_details.read_file_tops(self._store, stored, place)
        found = {row["column"]: {**row, summary_rows.TOP: tops.get(columns[row["column"]].key)} for row in known}
        lacking = {columns[at].key: (columns[at], row) for at, row in found.items() if not _has_percentiles(row)}
        percentiles = column_details.read_file_percentiles(self._store, stored, place, lacking) if lacking else {}
        for at, row in found.items():
            if (values := percentiles.get(columns[at].key)) is not None:
                row[f"percentiles_{columns[at].encoding}"] = values
        scope = shown.file_scope(of_file)
        return [self._summary_row(column, found.get(i), scope) for i, column in enumerate(columns)]

    def _summary_row(
        self, column: Column, row: Mapping[str, Any] | None, scope: summary_rows.Scope
    ) -> summary_rows.Row:
        known = extra_columns.decode_user_defined(row["extra"] if row else None)
        described = summary_rows.build_summary_row(column, row, scope, self._zone)
        return {
            **(row or {}),
            **described,
            USER_DEFINED: known,
            extra_columns.COLUMN: extra_columns.to_json_texts(known),
        }

    def _column_row(self, row: Mapping[str, Any], path: str, column: Column) -> summary_rows.Row:
        return {
            **row,
            "path": path,
            "column_name": column.name,
            **summary_rows.render_bounds(column, row, self._zone),
            "null_count": row["nulls"],
            "nan_count": row["nans"],
            "frequencies_kept": row["frequencies"],
        }


def add_distributions(diff: Answer, before: str | None, after: str | None, statistics: Sequence[Statistics]) -> Answer:
    """What differs, with the measures of the distributions of each column that both snapshots have.

    Args:
        diff: What else differs.
        before: The snapshot before.
        after: The one after.
        statistics: Where both are told of: of one table, or of the one before and the one after.
    """
    return replace(diff, rows=tuple(sort_by_change([*diff, *measure_distributions(before, after, statistics)])))


def measure_distributions(before: str | None, after: str | None, statistics: Sequence[Statistics]) -> list[Any]:
    """The rows that tell of distributions, of each column that both snapshots have; arguments as above."""
    sides = tuple(zip((statistics[0], statistics[-1]), (before, after), strict=True))
    former, names = (one.names(at) for one, at in sides)
    return compare_distributions(
        [name for name in names if name in set(former)], *(partial(one.details, at=at) for one, at in sides)
    )


def compare_answers(before: Summary, after: Summary, statistics: Sequence[Statistics]) -> Answer:
    """What differs between two summaries, of one table or of two, their distributions too."""
    answer = Answer("diff", after.subject, *shape_answer("diff", compare_summaries(before, after)))
    return add_distributions(answer, before.snapshot, after.snapshot, statistics)


def list_tables(location: str) -> Answer:
    """One row per table with statistics under a root of stores, or the one table at a location."""
    root = Folder(location)
    if not root.exists():
        raise report_missing(location)
    described = [Statistics(place).to_table_row() for place in discover_all(root)]
    return Answer("tables", location, *shape_answer("tables", described))


def _check_narrowing(view: str, column: str | None, file: str | None) -> None:
    for option, given in (("column", column), ("file", file)):
        if given and option not in NARROWED.get(view, ()):
            raise InvalidArgument(option, f"the view {view} cannot be narrowed by it")


def _holds(written: Column | None, wanted: Column) -> bool:
    return written is not None and is_compatible(written, wanted)


def _has_percentiles(row: Mapping[str, Any]) -> bool:
    return any(row[f"percentiles_{encoding}"] for encoding in ENCODED_TYPES)


def _own_fields(described: Sequence[summary_rows.Row]) -> list[pa.Field]:
    return extra_columns.infer_fields([row[USER_DEFINED] for row in described], views.VIEWS["summary"].names)
