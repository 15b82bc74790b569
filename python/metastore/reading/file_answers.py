"""Answers about the data files of a table: which of them a filter has to read, and how values are spread over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from metastore.adapters.descriptors import DIRECTORIES, WITH_LOG_FILES
from metastore.adapters.identifiers import narrow_columns
from metastore.pruning.deep_stack import with_deep_stack
from metastore.reading.answer_shapes import build_table_answer
from metastore.reading.detail_objects import read_table_details
from metastore.reading.file_pruning import FilePruner, FilteredColumns, ListedFiles, Verdicts
from metastore.reading.parquet_listing import list_parquet_files
from metastore.reading.pruned_files import PrunedFiles, phrase_reason
from metastore.reading.table_layout import describe_layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.adapters.current_tables import CurrentTable
    from metastore.answers import Answer
    from metastore.format.data_files import DataFile
    from metastore.format.table_column import Column
    from metastore.reading.analyzed_table import AnalyzedTable
    from metastore.reading.column_details import ColumnDetails
    from metastore.reading.snapshot import SnapshotAnswer

_ENTIRE_FILTER = "the whole filter"


@dataclass(frozen=True, kw_only=True)
class _FilterableFiles:
    """Data files of a table that a filter is applied to.

    Attributes:
        pruner: The data files.
        columns: The names that filters may use.
        snapshot: The snapshot of the files, or None for a folder as it is listed now.
        current: Whether the table is at this snapshot, or None if unknown.
        unused: The reason why no statistics are used, if there is one.
    """

    pruner: FilePruner
    columns: FilteredColumns
    snapshot: str | None
    current: bool | None
    unused: Mapping[str, str] = field(default_factory=dict)


class FileAnswers:
    """Answers about the data files of a table as they are now."""

    def __init__(self, table: AnalyzedTable) -> None:
        self._table = table
        self._last_listing: tuple[DataFile, ...] = ()
        self._last_listed: _FilterableFiles | None = None

    def prune(self, filter_: str) -> PrunedFiles:
        """Answer `prune`."""
        table = self._table
        files = self._find_files()

        def decide() -> Verdicts:
            conjuncts = files.columns.parse(filter_, table.name, table.zone)
            return files.pruner.decide(conjuncts)

        result = with_deep_stack(decide)
        return PrunedFiles(
            table=table.name,
            filter=filter_,
            verdicts=result.verdicts,
            snapshot=files.snapshot,
            current=files.current,
            analyzed=result.analyzed,
            unused={**files.unused, **result.unused},
        )

    def layout(self, column: str | None) -> Answer:
        """Answer `layout`."""
        files = self._find_files()
        columns = narrow_columns(files.columns.columns, column, self._table.name)
        answer = self._table.find()

        def read_details(column: Column) -> ColumnDetails | None:
            if answer is None:
                return None
            return read_table_details(self._table.store, answer.snapshot, column)

        rows = describe_layout(files.pruner.listed, columns, read_details)
        return build_table_answer(self._table, "layout", list(rows))

    def _find_files(self) -> _FilterableFiles:
        if self._opened_files is not None:
            return self._opened_files
        listing = self._list_folder()
        if listing is None:
            return self._analyzed_files
        if self._last_listed is None or listing != self._last_listing:
            self._last_listed = self._describe_listing(listing)
            self._last_listing = listing
        return self._last_listed

    def _list_folder(self) -> tuple[DataFile, ...] | None:
        """Return the data files in the directory of a table whose only metadata is that listing, else None."""
        discovery = self._table.discovery
        if discovery.table_format not in DIRECTORIES:
            return None
        return list_parquet_files(self._table.location, by_path=discovery.is_named_by_path)

    def _describe_listing(self, files: tuple[DataFile, ...]) -> _FilterableFiles:
        table = self._table
        listed = ListedFiles.of_files(table.manifest.table.format, table.location, files, table.discovery)
        return _FilterableFiles(
            pruner=FilePruner(listed),
            columns=self._name_columns(self._find_answer().columns),
            snapshot=None,
            current=True,
        )

    @cached_property
    def _analyzed_files(self) -> _FilterableFiles:
        """The files of the analyzed snapshot."""
        table = self._table
        answer = self._find_answer()
        stored = table.read_files(answer.snapshot)
        listed = ListedFiles(table.manifest.table.format, table.location, stored, table.store)
        return _FilterableFiles(
            pruner=FilePruner(listed),
            columns=self._name_columns(answer.columns),
            snapshot=answer.snapshot.id,
            current=answer.current,
        )

    @cached_property
    def _opened_files(self) -> _FilterableFiles | None:
        """The files that another library lists; without statistics if these belong to another table."""
        opened = self._table.opened
        if opened is None:
            return None
        discovery = self._table.discovery
        schema = opened.lineage.schema
        reason = self._explain_no_use(opened)
        if reason is None:
            unused = {}
            columns = self._name_columns(schema)
        else:
            unused = {_ENTIRE_FILTER: reason}
            discovery = discovery.without_statistics()
            columns = FilteredColumns(schema)
        listed = ListedFiles.of_files(opened.format, opened.location, tuple(opened.list_files()), discovery)
        return _FilterableFiles(
            pruner=FilePruner(listed),
            columns=columns,
            snapshot=opened.lineage.current,
            current=True,
            unused=unused,
        )

    def _explain_no_use(self, opened: CurrentTable) -> str | None:
        """Return the reason why the stored statistics cannot be used for an opened table, or None."""
        manifest = self._table.discovery.manifest
        if manifest is None:
            return phrase_reason("NO_STATISTICS", table=self._table.name)
        analyzed_uuid = manifest.table.uuid
        opened_uuid = opened.lineage.uuid
        if analyzed_uuid == opened_uuid:
            return None
        return phrase_reason("OTHER_TABLE", written=analyzed_uuid, read=opened_uuid)

    def _name_columns(self, columns: Sequence[Column]) -> FilteredColumns:
        """Return the names that filters may use.

        Expressions are left out of tables with log files: their columns may be in paths alone.
        """
        answer = self._table.find()
        if answer is None or self._table.discovery.table_format in WITH_LOG_FILES:
            return FilteredColumns(columns)
        return FilteredColumns(columns, answer.snapshot.expressions, answer.snapshot.columns)

    def _find_answer(self) -> SnapshotAnswer:
        answer = self._table.find()
        if answer is None:
            raise self._table.discovery.explain_missing(self._table.name)
        return answer
