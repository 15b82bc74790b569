"""Questions about single values of a column, and how answers are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from metastore.adapters.descriptors import WITH_LOG_FILES
from metastore.adapters.identifiers import find_column
from metastore.answers import Answer
from metastore.errors import InvalidArgument, NoStatistics
from metastore.format.value_encoding import to_stored_value
from metastore.reading import (
    candidates,
    column_details,
    distribution_rows,
    exact_ranks,
    extra_columns,
    summary_rows,
    value_lookup,
    views,
)
from metastore.reading.distribution_rows import check_probabilities
from metastore.reading.evidence import UNKNOWN
from metastore.reading.snapshot import SnapshotAnswer, TableSnapshots
from metastore.reading.snapshot_files import SnapshotFiles, read_snapshot_files, read_statistics
from metastore.suggestions import suggest_names

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from metastore.format.histogram_bins import Histogram
    from metastore.format.manifest import Snapshot
    from metastore.format.table_column import Column


A = TypeVar("A", bound=Answer)
_FEW = 1000
USER_DEFINED = "own"
"""Where a row keeps its user-defined statistics."""


class ColumnAnswers(TableSnapshots):
    """How the values of a column are distributed, and which data files may hold them."""

    _recent: tuple[tuple[Any, ...], tuple[column_details.ColumnDetails, bool]] | None = None
    """The details of the column that was asked about last: several questions about one are common."""

    def frequencies(
        self, column: str, top: int | None = None, file: str | None = None, at: str | int | datetime | None = None
    ) -> Answer:
        """One row per value of a column, most frequent first; null is none, NaN is one."""
        shown = self._at(at)
        found, exact = self._details(column, file, shown)
        if not found.has_value_list and found.value_count != 0:
            raise self._without("frequencies", column)
        described = distribution_rows.build_frequency_rows(found, top, self._zone, exact=exact)
        return self._answer(Answer, "frequencies", described, shown, column=found.column.name)

    def histogram(
        self, column: str, bins: int | None = None, file: str | None = None, at: str | int | datetime | None = None
    ) -> Answer:
        """One row per bin of a column; null, NaN and infinite values are in none."""
        shown = self._at(at)
        found, exact = self._details(column, file, shown)
        bars = self._bars(found, column)
        described = (
            [] if bars is None else (distribution_rows.build_histogram_rows(found, bars, bins, self._zone, exact=exact))
        )
        return self._answer(Answer, "histogram", described, shown, column=found.column.name)

    def quantiles(
        self,
        column: str,
        probabilities: float | Sequence[float] = distribution_rows.PROBABILITIES,
        at: str | int | datetime | None = None,
    ) -> Answer:
        """One row per probability: the value that so large a share of the values does not exceed.

        Exact where the column has ranks, else from the histogram, as the quartiles of `summary` are: `error` says by
        what share of the values its rank may be off at most. A column without values has null for each.
        """
        asked = check_probabilities(probabilities)
        shown = self._at(at)
        found, exact = self._details(column, None, shown)
        described = exact_ranks.build_exact_quantile_rows(self._store, shown, found.column, asked, self._zone)
        if described is None:
            bars = self._bars(found, column)
            by_rank = None if bars is None else found.choose_rank_histogram(bars)
            described = distribution_rows.build_quantile_rows(found, by_rank, asked, self._zone, exact=exact)
        return self._answer(Answer, "quantiles", described, shown, column=found.column.name)

    def locate(self, column: str, value: Any, at: str | int | datetime | None = None) -> Answer:
        """One row per data file that may hold a value: found by bounds, lists of values and bloom filters.

        Where the column has a distribution (`metastore.analyze(..., distribution=True)`), just the files that hold it.
        """
        shown = self._at(at)
        wanted = find_column(shown.columns, column, self.table)
        if wanted.encoding is None:
            raise InvalidArgument("column", f"of {column}, {wanted.type}, only counts are kept")
        try:
            asked = to_stored_value(value, wanted, self._zone)
        except ValueError as e:
            raise InvalidArgument("value", str(e)) from None
        stored = self._stored(shown.snapshot)
        found = self._placed(shown.snapshot, wanted, asked) or candidates.find_candidate_files(
            self._store, stored, wanted, asked
        )
        listed = stored.files.select(["path", "deletes"]).to_pylist()
        frequencies = dict(zip(found.files.tolist(), found.frequencies.tolist(), strict=True))
        assert self._place.manifest is not None  # noqa: S101 - a snapshot came from it
        if self._place.manifest.table.format in WITH_LOG_FILES:
            changed = (file for file, row in enumerate(listed) if row["deletes"] is not None)
            frequencies |= dict.fromkeys(changed, UNKNOWN)
        described = [
            {
                "path": listed[file]["path"],
                "frequency": None if frequency == UNKNOWN else frequency,
                "exact": shown.is_requested and frequency != UNKNOWN and listed[file]["deletes"] is None,
            }
            for file, frequency in sorted(frequencies.items())
        ]
        return self._answer(Answer, "locate", described, shown, column=wanted.name)

    def _placed(self, snapshot: Snapshot, column: Column, value: Any) -> candidates.CandidateFiles | None:
        """What the lists of the table tell, where they tell where each value lives."""
        if not snapshot.distribution:
            return None
        known = column_details.read_table_details(self._store, snapshot, column)
        if known is None:
            return None
        return value_lookup.look_up_value(
            self._store, snapshot, column, value, known.summary.get("distinct"), known.value_count
        )

    def _stored(self, snapshot: Snapshot) -> SnapshotFiles:
        assert self._place.manifest is not None  # noqa: S101 - a snapshot came from it
        return read_snapshot_files(self._store, self._place.manifest, snapshot)

    def _details(
        self, column: str, file: str | None, shown: SnapshotAnswer
    ) -> tuple[column_details.ColumnDetails, bool]:
        """The details of a column, and whether they describe the live rows of the snapshot asked for, no others."""
        key = (column, file, shown.snapshot.id, shown.is_requested)
        recent = self._recent
        if recent is None or recent[0] != key:
            self._recent = recent = (key, self._read_details(column, file, shown))
        return recent[1]

    def _read_details(
        self, column: str, file: str | None, shown: SnapshotAnswer
    ) -> tuple[column_details.ColumnDetails, bool]:
        snapshot = shown.snapshot
        wanted = find_column(shown.described, column, self.table)
        self._require_values(wanted)
        if file is None:
            found = column_details.read_table_details(self._store, snapshot, wanted)
            if found is None and snapshot.files_total == 0:
                found = column_details.make_empty_details(self._store, wanted)
            if found is None:
                raise self._without("statistics", column)
            return found, shown.is_requested and snapshot.exact and found.summary["files"] == snapshot.files_total
        stored = self._stored(snapshot)
        place = self._place_of(file, stored)
        known = read_statistics(self._store, stored.restrict_to(place), shown.described, [wanted]).to_pylist()
        if not known:
            raise self._without("statistics", column)
        is_whole = shown.is_requested and stored.files["deletes"][place].as_py() is None
        return column_details.read_file_details(self._store, stored, known[0], place, wanted), is_whole

    def _bars(self, found: column_details.ColumnDetails, column: str) -> Histogram | None:
        """The histogram of a column, None where the column has no value."""
        bars = found.histogram()
        values = found.value_count
        if bars is None and (values is None or values > (found.summary.get("nans") or 0)):
            raise self._without("histogram", column)
        return bars

    def _without(self, kind: str, column: str) -> NoStatistics:
        return NoStatistics(self.table, detail=f"of this kind ({kind}) for the column {column}", columns=column)

    @staticmethod
    def _require_values(column: Column) -> None:
        if column.encoding is None:
            raise InvalidArgument("column", f"of {column.name}, {column.type}, only counts are kept")

    def _place_of(self, file: str, stored: SnapshotFiles) -> int:
        paths: list[str] = stored.files.column("path").to_pylist()
        if file not in paths:
            hint = suggest_names(file, paths) if len(paths) <= _FEW else ""
            raise InvalidArgument("file", f"{file} is no data file of {self.table}", hint or "files() lists them.")
        return paths.index(file)

    def _answer(
        self,
        kind: type[A],
        verb: str,
        described: Sequence[summary_rows.Row],
        shown: SnapshotAnswer | None = None,
        own_fields: Sequence[pa.Field] = (),
        column: str | None = None,
    ) -> A:
        return kind(
            verb,
            self.table,
            *shape_answer(verb, described, own_fields),
            snapshot=shown.snapshot.id if shown else None,
            current=shown.current if shown else None,
            analyzed_at=summary_rows.parse_instant(shown.snapshot.analyzed_at) if shown else None,
            zone=self._zone,
            column_name=column,
        )


def shape_answer(
    verb: str, described: Sequence[summary_rows.Row], own_fields: Sequence[pa.Field] = ()
) -> tuple[tuple[str, ...], tuple[summary_rows.Row, ...], pa.Schema]:
    """Columns, rows and schema of an answer: those of the SQL function, its map of statistics as columns."""
    schema = pa.schema([*(field for field in views.FUNCTIONS[verb] if field.name != extra_columns.COLUMN), *own_fields])
    names = tuple(schema.names)
    return names, tuple({name: row[name] for name in names} for row in add_user_defined(described, own_fields)), schema


def add_user_defined(described: Sequence[summary_rows.Row], fields: Sequence[pa.Field]) -> list[summary_rows.Row]:
    """Rows with the user-defined statistics as columns of their own."""
    return [
        {**row, **{field.name: extra_columns.cast_scalar(row[USER_DEFINED].get(field.name), field) for field in fields}}
        for row in described
    ]
