"""The statistics of one table, read from where they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from metastore._format.columns import serves
from metastore._read import own, rows, schemas
from metastore._read.folder import Folder
from metastore._read.lineage import lineage
from metastore._read.matching import named
from metastore._read.places import places_in
from metastore._read.ranks import rank_rows, ranked_columns
from metastore._read.stored import StoredFiles, columns_known, statistics, stored_files
from metastore.answers import Answer, Summary, arrow
from metastore.errors import InvalidArgument, NoStatistics, TableNotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore._format.columns import Column
    from metastore._format.manifest import Snapshot
    from metastore._read.lineage import Lineage
    from metastore._read.places import Place
    from metastore._store import Store


A = TypeVar("A", bound=Answer)
_OWN = "own"
_NEVER_WRITTEN = "none"


@dataclass(frozen=True)
class Shown:
    """What an answer is about.

    Attributes:
        snapshot: The analyzed snapshot that answers.
        current: Whether the table is still there; None where that is not known.
        columns: The columns of the snapshot asked for, which may have another schema.
    """

    snapshot: Snapshot
    current: bool | None
    columns: tuple[Column, ...]

    def scope(self, count: int | None, files_total: int, *, exact: bool) -> rows.Scope:
        """What the rows of a summary of this snapshot share."""
        moment = rows.moment(self.snapshot.analyzed_at)
        return rows.Scope(count, exact, files_total, self.snapshot.id, self.current, moment)


class Statistics:
    """The statistics of one table, as `metastore.open` gives them: no Spark, no JVM.

    What it shows is the manifest of the moment it was opened; open again to see later ones.

    Example:
        >>> import metastore
        >>> metastore.open("/nowhere")
        Traceback (most recent call last):
        metastore.errors.TableNotFound: [METASTORE_TABLE_NOT_FOUND] There is no table /nowhere.
    """

    def __init__(self, place: Place, zone: str = "UTC") -> None:
        self._place = place
        self._zone = zone

    @property
    def table(self) -> str:
        """The table's name, or the location where it has none."""
        manifest = self._place.manifest
        return (manifest.table.name if manifest else "") or self._place.asked

    @property
    def location(self) -> str:
        """The table's location."""
        manifest = self._place.manifest
        return manifest.table.location if manifest else self._place.asked

    def __repr__(self) -> str:
        return f"Statistics({self.table!r}, snapshots={len(self._snapshots)})"

    def summary(self, file: str | None = None, at: str | int | datetime | None = None) -> Summary:
        """One row per column: bounds, distinct values, quantiles, nulls.

        Args:
            file: Path of one data file, to see that file alone.
            at: A snapshot id, or an instant; the table's current snapshot if None.

        Raises:
            NoStatistics: Nothing was analyzed, or only the list of files.
            InvalidArgument: No such file or snapshot.
        """
        shown = self._at(at)
        described = self._summary_rows(file, shown)
        return self._answer(Summary, "summary", described, shown, _own_fields(described))

    def files(self, at: str | int | datetime | None = None) -> Answer:
        """One row per data file of the table."""
        shown = self._answering(at, self._snapshots)
        if shown is None:
            return self._answer(Answer, "files", [])
        stored, columns = self._stored(shown.snapshot), shown.columns
        known = columns_known(stored, columns)
        listed = stored.files.select(["path", "size", "rows", "deleted_rows"]).to_pylist()
        more = zip(stored.partitions, stored.is_covered().tolist(), known.tolist(), strict=True)
        described = [
            {**row, "partition": dict(partition) if partition else None, "analyzed": covered, "columns_analyzed": count}
            for row, (partition, covered, count) in zip(listed, more, strict=True)
        ]
        return self._answer(Answer, "files", described, shown)

    def columns(self, column: str | None = None, at: str | int | datetime | None = None) -> Answer:
        """One row per data file and column that has statistics.

        Raises:
            NoStatistics: Nothing was analyzed, or only the list of files.
            ColumnNotFound: No such column.
        """
        shown = self._at(at)
        return self._answer(Answer, "columns", self._column_rows(column, None, shown), shown)

    def snapshots(self) -> Answer:
        """One row per analyzed snapshot, oldest first."""
        described = [
            {
                "snapshot": one.id,
                "analyzed_at": rows.moment(one.analyzed_at),
                **{name: getattr(one, name) for name in ("files", "files_total", "rows")},
                "columns": len(one.columns),
                "current": self._is_current(one),
                **{name: getattr(one, name) for name in ("size_bytes", "live_size_bytes")},
            }
            for one in self._snapshots
        ]
        return self._answer(Answer, "snapshots", described)

    def view(self, name: str, column: str | None = None, file: str | None = None) -> pa.Table:
        """A view as the data source shows it: the answer's columns and the typed ones of docs/format.md.

        Args:
            name: A key of `schemas.VIEWS`.
            column: Only this column, in the views `columns` and `ranks`.
            file: Only this data file, in the view `columns`.
        """
        if name == "summary":
            described = self._summary_rows(None, self._at(None))
            return _view(name, described, _own_fields(described))
        if name == "columns":
            return _view(name, self._column_rows(column, file, self._at(None)), [])
        if name == "ranks":
            return self._rank_rows(column, self._at(None).snapshot)
        return (self.files() if name == "files" else self.snapshots()).to_arrow()

    def schema(self, name: str) -> pa.Schema:
        """The columns of a view: those of every table, and in `summary` one for each user-defined statistic."""
        own_fields = _own_fields(self._summary_rows(None, self._at(None))) if name == "summary" else []
        return pa.schema([*schemas.VIEWS[name], *own_fields])

    def check(self, name: str) -> None:
        """Tells whether a view can be read.

        Raises:
            NoStatistics: Nothing was analyzed, or only the list of files.
        """
        if name in ("summary", "columns", "ranks"):
            self._at(None)

    def as_row(self) -> rows.Row:
        """The row of this table among others, as `tables` shows them."""
        identity = self._place.manifest.table if self._place.manifest else None
        newest = self._answering(None, self._snapshots)
        return {
            "table": self.table,
            "format": identity.format if identity else None,
            "location": self.location,
            "snapshot": newest.snapshot.id if newest else None,
            "current": newest.current if newest else None,
            "analyzed_at": rows.moment(newest.snapshot.analyzed_at) if newest else None,
        }

    @property
    def _snapshots(self) -> Sequence[Snapshot]:
        return self._place.manifest.snapshots if self._place.manifest else ()

    @property
    def _store(self) -> Store:
        if self._place.store is None:
            raise NoStatistics(self.table)
        return self._place.store

    @cached_property
    def _lineage(self) -> Lineage | None:
        found, manifest = lineage(Folder(self.location)), self._place.manifest
        if found is not None and manifest is not None and found.uuid != manifest.table.uuid:
            raise NoStatistics(self.table, detail="(those that are stored belong to a table that was here before)")
        return found

    def _at(self, at: str | int | datetime | None) -> Shown:
        """What answers a question about columns."""
        shown = self._answering(at, [one for one in self._snapshots if one.computed != "files" or not one.files_total])
        if shown is None:
            only_files = any(one.files_total for one in self._snapshots)
            raise NoStatistics(
                self.table, detail="of columns, for this snapshot or its ancestors" if only_files else ""
            )
        return shown

    def _answering(self, at: str | int | datetime | None, among: Sequence[Snapshot]) -> Shown | None:
        """The snapshot asked for, if it was analyzed, else its newest analyzed ancestor.

        Of ancestors that have expired only the manifest knows: the newest of them is taken.
        """
        if not self._snapshots:
            return None
        found, by_id = self._lineage, {one.id: one for one in among}
        wanted = self._id_at(at) if at is not None else found.current if found else self._snapshots[-1].id
        if at is not None and wanted not in by_id and (found is None or wanted not in found.parents):
            known = ", ".join(one.id for one in self._snapshots)
            raise InvalidArgument("at", f"{at} was not analyzed", f"Analyzed: {known}.")
        ancestors = found.ancestors(wanted) if found and wanted else (wanted or _NEVER_WRITTEN,)
        snapshot = next((by_id[one] for one in ancestors if one in by_id), None)
        if snapshot is None and found is not None and found.has_expired_ancestors(wanted):
            snapshot = next((one for one in reversed(among) if one.id not in found.parents), None)
        if snapshot is None:
            return None
        columns = found.columns(wanted) if found else ()
        return Shown(snapshot, self._is_current(snapshot), columns or snapshot.columns)

    def _id_at(self, at: str | int | datetime) -> str | None:
        if self._lineage is not None and str(at) in self._lineage.references:
            return self._lineage.references[str(at)]
        if str(at).isdecimal():
            return str(at)
        try:
            moment = at if isinstance(at, datetime) else datetime.fromisoformat(str(at).replace("Z", "+00:00"))
        except ValueError:
            return str(at)
        if self._lineage is None:
            raise InvalidArgument(
                "at", "without the table's own metadata no instant is known", "Give a snapshot: see snapshots()."
            )
        return self._lineage.at(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))

    def _is_current(self, snapshot: Snapshot) -> bool | None:
        return None if self._lineage is None else snapshot.id == self._lineage.current

    def _stored(self, snapshot: Snapshot) -> StoredFiles:
        assert self._place.manifest is not None  # noqa: S101 - a snapshot came from it
        return stored_files(self._store, self._place.manifest, snapshot)

    def _summary_rows(self, file: str | None, shown: Shown) -> list[rows.Row]:
        return self._of_file(file, shown) if file else self._of_table(shown)

    def _column_rows(self, column: str | None, file: str | None, shown: Shown) -> list[rows.Row]:
        snapshot = shown.snapshot
        wanted = [named(shown.columns, column, self.table)] if column else shown.columns
        stored = self._stored(snapshot)
        paths = stored.files.column("path").to_pylist()
        if file is not None:
            stored = stored.only(paths.index(file) if file in paths else -2)
        found = statistics(self._store, stored, shown.columns, wanted).to_pylist()
        return [self._column_row(row, paths[row["file"]], shown.columns[row["column"]]) for row in found]

    def _rank_rows(self, column: str | None, snapshot: Snapshot) -> pa.Table:
        held = ranked_columns(snapshot)
        wanted = [named(held, column, self.table)] if column else held
        parts = [schemas.RANKS.empty_table()]
        for one in wanted:
            for found in rank_rows(self._store, snapshot, one):
                names = pa.array([one.name] * found.num_rows, pa.string())
                parts.append(found.set_column(0, schemas.RANKS.field(0), names).cast(schemas.RANKS))
        return pa.concat_tables(parts)

    def _of_table(self, shown: Shown) -> list[rows.Row]:
        snapshot = shown.snapshot
        stored = self._store.get(snapshot.summary).to_pylist() if snapshot.summary else []
        found = {snapshot.columns[row["column"]].key: row for row in stored}
        written = {column.key: column for column in snapshot.columns}
        scope = shown.scope(snapshot.rows, snapshot.files_total, exact=snapshot.exact)
        return [
            self._summary_row(column, found.get(column.key) if _holds(written.get(column.key), column) else None, scope)
            for column in shown.columns
        ]

    def _of_file(self, file: str, shown: Shown) -> list[rows.Row]:
        columns = shown.columns
        stored = self._stored(shown.snapshot)
        paths = stored.files.column("path").to_pylist()
        if file not in paths:
            raise InvalidArgument("file", f"{file} is no data file of {self.table}", "files() lists them.")
        of_file = stored.files.slice(paths.index(file), 1).to_pylist()[0]
        known = statistics(self._store, stored.only(paths.index(file)), columns, columns).to_pylist()
        if not known:
            raise NoStatistics(self.table, detail=f"of the data file {file}")
        found = {row["column"]: row for row in known}
        scope = shown.scope(_live(of_file), 1, exact=of_file["deletes"] is None)
        return [self._summary_row(column, found.get(i), scope) for i, column in enumerate(columns)]

    def _summary_row(self, column: Column, row: Mapping[str, Any] | None, scope: rows.Scope) -> rows.Row:
        known = own.values(row["extra"] if row else None)
        described = rows.summary_row(column, row, scope, self._zone)
        return {**(row or {}), **described, _OWN: known, own.COLUMN: own.texts(known)}

    def _column_row(self, row: Mapping[str, Any], path: str, column: Column) -> rows.Row:
        return {
            **row,
            "path": path,
            "column_name": column.name,
            **rows.bounds(column, row, self._zone),
            "null_count": row["nulls"],
            "nan_count": row["nans"],
            "frequencies_kept": row["frequencies"],
        }

    def _answer(
        self,
        kind: type[A],
        verb: str,
        described: Sequence[rows.Row],
        shown: Shown | None = None,
        own_fields: Sequence[pa.Field] = (),
    ) -> A:
        return kind(
            verb,
            self.table,
            *_shape(verb, described, own_fields),
            snapshot=shown.snapshot.id if shown else None,
            current=shown.current if shown else None,
            analyzed_at=rows.moment(shown.snapshot.analyzed_at) if shown else None,
            zone=self._zone,
        )


def tables_at(location: str) -> Answer:
    """One row per table with statistics under a root of stores, or the one table at a location.

    Raises:
        TableNotFound: There is no such location.
    """
    root = Folder(location)
    if not root.exists():
        raise TableNotFound(location)
    described = [Statistics(place).as_row() for place in places_in(root)]
    return Answer("tables", location, *_shape("tables", described))


def _holds(written: Column | None, wanted: Column) -> bool:
    return written is not None and serves(written, wanted)


def _live(file: Mapping[str, Any]) -> int | None:
    physical, deleted = file["rows"], 0 if file["deletes"] is None else file["deleted_rows"]
    return physical - deleted if physical is not None and deleted is not None else None


def _shape(
    verb: str, described: Sequence[rows.Row], own_fields: Sequence[pa.Field] = ()
) -> tuple[tuple[str, ...], tuple[rows.Row, ...], pa.Schema]:
    """Columns, rows and schema of an answer: those of the SQL function, its map of statistics as columns."""
    schema = pa.schema([*(field for field in schemas.FUNCTIONS[verb] if field.name != own.COLUMN), *own_fields])
    names = tuple(schema.names)
    return names, tuple({name: row[name] for name in names} for row in _with_own(described, own_fields)), schema


def _own_fields(described: Sequence[rows.Row]) -> list[pa.Field]:
    return own.fields([row[_OWN] for row in described], schemas.VIEWS["summary"].names)


def _with_own(described: Sequence[rows.Row], fields: Sequence[pa.Field]) -> list[rows.Row]:
    return [
        {**row, **{field.name: own.cast(row[_OWN].get(field.name), field) for field in fields}} for row in described
    ]


def _view(name: str, described: Sequence[rows.Row], own_fields: Sequence[pa.Field]) -> pa.Table:
    described = _with_own(described, own_fields)
    schema = pa.schema([*schemas.VIEWS[name], *own_fields])
    return arrow([{column: row.get(column) for column in schema.names} for row in described], schema.names, schema)
