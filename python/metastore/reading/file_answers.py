"""Which data files have to be read for a filter, for engines other than Spark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import WITH_LOG_FILES
from metastore.adapters.identifiers import find_column
from metastore.answers import Answer
from metastore.pruning.deep_stack import with_deep_stack
from metastore.reading.column_answers import ColumnAnswers
from metastore.reading.column_details import read_table_details
from metastore.reading.file_pruning import FilePruner, FilteredColumns, ListedFiles
from metastore.reading.parquet_listing import list_parquet_files
from metastore.reading.pruned_files import PrunedFiles, phrase_reason
from metastore.reading.table_layout import describe_layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.adapters.current_tables import CurrentTable
    from metastore.adapters.table_facts import DataFile
    from metastore.format.table_column import Column
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.snapshot import SnapshotAnswer

_WHOLE = "the whole filter"


@dataclass(frozen=True)
class _Shown:
    """What a filter is asked of.

    Attributes:
        pruner: The data files.
        columns: What filters may name.
        snapshot: Whose files these are; None of a folder as it is listed now.
        current: Whether the table is there; None where that is not known.
        unused: Why statistics are of no use, if they are not.
    """

    pruner: FilePruner
    columns: FilteredColumns
    snapshot: str | None
    current: bool | None
    unused: Mapping[str, str]


class FileAnswers(ColumnAnswers):
    """Which data files a filter leaves to be read."""

    _recently: tuple[tuple[DataFile, ...], _Shown] | None = None
    """The files of a folder that were listed last."""

    def prune(self, filter: str) -> PrunedFiles:  # noqa: A002 - as in SQL
        """The data files that have to be read for a filter: of all others it is proven that no row matches.

        The filter means what it means in Spark, whoever reads the files. What has no rule skips nothing, and a data
        file without statistics is read. Deletes are not looked at: a file is told by its data, and rows have to be
        filtered and deletes applied by whoever reads it (`with_deletes`).

        Args:
            filter: A condition in Spark's SQL, as after WHERE: `amount > 100 AND country = 'CH'`.

        Raises:
            InvalidArgument: It is no condition, or nested deeper than some thousand parentheses.
            ColumnNotFound: It names a column that the table does not have.
            NoStatistics: Nothing was ever analyzed, and a location does not tell which files a table has.
            UnsupportedTable: A directory of Parquet files is partitioned in different ways, so that Spark refuses it.
            AccessDenied: A folder of it cannot be listed.
            LibraryNotFound: sqlglot is not installed: `pip install pyspark-metastore[prune]`.

        Example:
            >>> files = metastore.open("/warehouse/db/sales").prune("amount > 100 AND country = 'CH'")  # doctest: +SKIP
            >>> duckdb.read_parquet(files.paths)  # doctest: +SKIP
        """
        shown = self._shown_now()
        judged = with_deep_stack(lambda: shown.pruner.judge(shown.columns.parse(filter, self.table, self._zone)))
        return PrunedFiles(
            self.table,
            filter,
            judged.verdicts,
            shown.snapshot,
            shown.current,
            judged.analyzed,
            {**shown.unused, **judged.unused},
        )

    def layout(self, column: str | None = None) -> Answer:
        """One row per column: how its values are spread over the data files, and how many of these a look-up reads.

        `files_per_lookup` is how many of them may hold the value of a row, by all that is known: the mean of up to 32
        values, `lookup_error` its standard error; `overlap_depth` the average number of files, itself
        included, whose bounds share a value with a file's; `sorted` the share that overlaps with no other.
        The statement that would help, `advice`, is known where Spark is asked: `metastore.layout(spark, "db.sales")`.

        Args:
            column: Its name; all columns if None.

        Raises:
            NoStatistics: Nothing was ever analyzed, and a location does not tell which files a table has.
            ColumnNotFound: There is no such column.

        Example:
            >>> metastore.open("/warehouse/db/sales").layout("customer")[0]["files_per_lookup"]  # doctest: +SKIP
            1.5
        """
        shown = self._shown_now()
        columns = shown.columns.columns
        wanted = columns if column is None else [find_column(columns, column, self.table)]
        described = describe_layout(shown.pruner.listed, wanted, self._values_of)
        return self._answer(Answer, "layout", list(described))

    def _values_of(self, column: Column) -> ColumnDetails | None:
        """What the snapshot that is shown keeps of a column's values."""
        found = self._answering(None, self._snapshots)
        return None if found is None else read_table_details(self._store, found.snapshot, column)

    def _shown_now(self) -> _Shown:
        listed = self._list_now()
        return self._shown if listed is None else self._listed(listed)

    def _list_now(self) -> tuple[DataFile, ...] | None:
        """What lies in the folder of a table that is nothing else."""
        manifest = self._place.manifest
        if self._opened is not None or manifest is None or manifest.table.format != "parquet":
            return None
        return list_parquet_files(self.location, by_path=self._place.is_named_by_path)

    def _listed(self, files: tuple[DataFile, ...]) -> _Shown:
        """The files of a folder; what was read of statistics is kept while these are the same."""
        if self._recently is None or self._recently[0] != files:
            pruner = FilePruner(ListedFiles.of_files("parquet", self.location, files, self._place))
            columns = self._filtered(self._snapshot_to_show().columns)
            self._recently = (files, _Shown(pruner, columns, None, current=True, unused={}))
        return self._recently[1]

    @cached_property
    def _shown(self) -> _Shown:
        if self._opened is not None:
            return self._opened_files(self._opened)
        found = self._snapshot_to_show()
        manifest = self._place.manifest
        assert manifest is not None  # noqa: S101 - a snapshot came from it
        pruner = FilePruner(
            ListedFiles(manifest.table.format, self.location, self._stored(found.snapshot), self._store)
        )
        return _Shown(pruner, self._filtered(found.columns), found.snapshot.id, found.current, {})

    def _filtered(self, columns: Sequence[Column]) -> FilteredColumns:
        """What filters may name: of Hudi no expression, whose columns may be in paths alone."""
        found = self._answering(None, self._snapshots)
        manifest = self._place.manifest
        if found is None or manifest is None or manifest.table.format in WITH_LOG_FILES:
            return FilteredColumns(columns)
        return FilteredColumns(columns, found.snapshot.expressions, found.snapshot.columns)

    def _snapshot_to_show(self) -> SnapshotAnswer:
        found = self._answering(None, self._snapshots)
        if found is None:
            raise self._place.explain_missing(self.table)
        return found

    def _opened_files(self, table: CurrentTable) -> _Shown:
        place, unused = self._place, {}
        written = place.manifest.table.uuid if place.manifest else None
        if written is None:
            unused[_WHOLE] = phrase_reason("NO_STATISTICS", table=self.table)
        elif written != table.lineage.uuid:
            unused[_WHOLE] = phrase_reason("OTHER_TABLE", written=written, read=table.lineage.uuid)
        known = place if not unused else place.without_statistics()
        listed = ListedFiles.of_files(table.format, table.location, tuple(table.list_files()), known)
        lineage = table.lineage
        columns = FilteredColumns(lineage.schema) if unused else self._filtered(lineage.schema)
        return _Shown(FilePruner(listed), columns, lineage.current, current=True, unused=unused)
