"""Decides which data files of a table have to be read for a filter."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np

from metastore.adapters.descriptors import DIRECTORIES, WITH_LOG_FILES
from metastore.answers import require_library
from metastore.errors import DamagedObject, FormatTooNew, StoreNotReadable
from metastore.format.table_column import Column
from metastore.pruning.conditions import Conjunct, Unknown, all_of, list_columns
from metastore.pruning.exclusion import exclude_by_bounds, exclude_by_values
from metastore.reading.column_candidates import ColumnCandidates, read_sound_rows
from metastore.reading.column_facts import StoredValues, build_column_facts, limit_look_ups
from metastore.reading.evidence import UNKNOWN, gather_evidence
from metastore.reading.pruned_files import FileVerdict, phrase_reason
from metastore.reading.snapshot_files import match_data_files, match_no_files
from metastore.store.location import openable_path
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from metastore.format.data_files import DataFile
    from metastore.pruning.exclusion import ColumnFacts
    from metastore.pruning.value_sets import Mask
    from metastore.reading.discovery import Discovery
    from metastore.reading.evidence import ColumnEvidence
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store

_LOG = get_logger(__name__)
MOST_LOOKED_UP = 16_384
"""Single values are looked up if bounds keep at most this many data files."""
_BEYOND_ASCII = re.compile(r"([^/=]+)=[^/]*%(?:25)?[89A-Fa-f][0-9A-Fa-f]")
"""The column of a partition folder whose value has bytes beyond ASCII."""
_NOT_EXCLUDED = -1
_EXCLUDED_BY_CONJUNCT = frozenset({"SKIPPED_BY_VALUES", "SKIPPED"})
_UNREADABLE = (DamagedObject, StoreNotReadable, FormatTooNew)


@dataclass(frozen=True)
class ListedFiles:
    """The data files of a table, and their statistics.

    Attributes:
        format: The table's format.
        location: The table's root.
        stored: The files as rows of `table-files`, and the blocks that have statistics of them.
        store: The store of the statistics, or None.
    """

    format: str
    location: str
    stored: SnapshotFiles
    store: Store | None

    @classmethod
    def of_files(cls, table_format: str, location: str, files: Sequence[DataFile], discovery: Discovery) -> ListedFiles:
        """List the current data files of a table; without a store if this cannot be read."""
        manifest = discovery.manifest
        store = discovery.store
        if manifest is not None and store is not None:
            try:
                return cls(table_format, location, match_data_files(store, manifest, files), store)
            except _UNREADABLE as error:
                _LOG.warning("all data files of %s are kept: %s", location, error)
        return cls(table_format, location, match_no_files(files), None)


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all data files of a table.

    Attributes:
        verdicts: The verdict on each file.
        analyzed: The number of files with statistics.
        unused: Parts of the filter that can skip no file, and the reasons.
    """

    verdicts: tuple[FileVerdict, ...]
    analyzed: int
    unused: Mapping[str, str]


@dataclass(frozen=True)
class FilteredColumns:
    """The names that a filter may use.

    Attributes:
        columns: The table's current columns.
        expressions: The expressions that have statistics.
        analyzed: The columns when the expressions were analyzed: expressions use their names.
    """

    columns: Sequence[Column]
    expressions: Sequence[Column] = ()
    analyzed: Sequence[Column] = ()

    def parse(self, filter_: str, table: str, zone: str) -> tuple[Conjunct, ...]:
        """Parse a filter into conjuncts: see `metastore.pruning.filters.parse_filter`.

        Raises:
            LibraryNotFound: sqlglot is not installed.
        """
        require_library("sqlglot", "prune()")
        from metastore.pruning.filters import parse_filter  # noqa: PLC0415 - sqlglot is optional

        return parse_filter(filter_, self.columns, table, zone, self._indexed)

    @cached_property
    def _indexed(self) -> Mapping[str, Column]:
        from metastore.pruning.expressions import index_expressions  # noqa: PLC0415 - as above

        return index_expressions(self.expressions, self.analyzed)


@dataclass(frozen=True)
class FilesOfColumn:
    """The data files with statistics of a column.

    Attributes:
        covered: Whether the statistics of a file can be trusted, and allow to skip it.
        candidates: Finds the files that may hold a value.
    """

    evidence: ColumnEvidence
    covered: Mask
    candidates: ColumnCandidates


class FilePruner:
    """Decides which data files of a table have to be read; statistics are read once for all filters."""

    def __init__(self, listed: ListedFiles) -> None:
        self.listed = listed
        self._files = listed.stored.files
        self._covered = listed.stored.is_covered()
        self._facts: dict[Column, ColumnFacts] = {}
        self._evidence: dict[Column, ColumnEvidence] = {}
        self._values: dict[Column, StoredValues] = {}
        self._unreadable: dict[Column, str] = {}
        self._differs_from_file: Mask = self._files["deletes"].is_valid().to_numpy()
        self._skippable: Mask = self._covered
        if listed.format in WITH_LOG_FILES:  # a log file may change any row
            self._skippable = self._covered & ~self._differs_from_file
            # Statistics describe the merged rows, not those of the data file.
            self._differs_from_file = self._differs_from_file | self._files["modified"].is_valid().to_numpy()

    @cached_property
    def _paths(self) -> list[str]:
        return [openable_path(path, self.listed.location) for path in self._files["path"].to_pylist()]

    def read_columns(self, columns: Sequence[Column]) -> dict[Column, FilesOfColumn]:
        """Read the statistics of columns, as far as they can be read; they are not kept."""
        store = self.listed.store
        if store is None:
            return {}
        read_rows = partial(read_sound_rows, store.open_part)
        encoded = [column for column in columns if column.encoding is not None]
        files = {}
        for evidence in self._gather_readable(store, encoded):
            files[evidence.column] = FilesOfColumn(
                evidence,
                covered=self._skippable & self._find_usable(evidence),
                candidates=ColumnCandidates(limit_look_ups(evidence), read_rows),
            )
        return files

    def _gather_readable(self, store: Store, columns: Sequence[Column]) -> list[ColumnEvidence]:
        """Gather the statistics of columns, without those that cannot be read."""
        try:
            return gather_evidence(store, self.listed.stored, columns)
        except _UNREADABLE as error:
            if len(columns) == 1:
                _LOG.warning("files are kept without the statistics of %s: %s", columns[0].name, error)
                return []
        return [evidence for column in columns for evidence in self._gather_readable(store, [column])]

    def decide(self, conjuncts: Sequence[Conjunct]) -> Verdicts:
        """Decide for each data file whether it has to be read; a file without statistics is kept."""
        conditions = _with_conjunction(conjuncts)
        columns = list_columns(all_of(conjunct.condition for conjunct in conjuncts))
        for column in columns:
            self._load(column)
        excluded = self._exclude(conditions, self._skippable)
        rows = _count_rows(self._files["rows"].to_pylist(), self._evidence.values())
        reasons = self._choose_reasons(excluded, rows, self._has_statistics(columns))
        verdicts = []
        for file, reason in enumerate(reasons):
            conjunct = None
            if reason in _EXCLUDED_BY_CONJUNCT:
                conjunct = conditions[excluded.conjuncts[file]]
            verdicts.append(self._make_verdict(file, reason, rows[file], conjunct, columns))
        unreadable = {column.name: self._unreadable[column] for column in columns if column in self._unreadable}
        return Verdicts(
            verdicts=tuple(verdicts),
            analyzed=int(self._covered.sum()),
            unused=_explain_unused(conjuncts) | unreadable,
        )

    def _make_verdict(
        self, file: int, reason: str, rows: int | None, conjunct: Conjunct | None, columns: Sequence[Column]
    ) -> FileVerdict:
        """Make the verdict on a file, with the conjunct that excludes it, and the columns that decide."""
        statistic = None
        if conjunct is not None:
            statistic = _join_names(list_columns(conjunct.condition))
        elif reason == "KEPT_COLUMN_UNKNOWN":
            statistic = _join_names(columns)
        return FileVerdict(
            path=self._paths[file],
            reason=reason,
            rows=rows,
            has_deletes=bool(self._differs_from_file[file]),
            conjunct=None if conjunct is None else conjunct.text,
            statistic=statistic,
        )

    def _choose_reasons(self, excluded: _Excluded, rows: Sequence[int | None], has_statistics: Mask) -> list[str]:
        """Choose the first reason that holds for each file."""
        is_empty = np.array([count == 0 for count in rows], bool)
        reasons = {
            "KEPT_FILE_UNKNOWN": ~self._covered,
            "KEPT_LOG_FILES": ~self._skippable,
            "SKIPPED_EMPTY": is_empty,
            "SKIPPED_BY_VALUES": excluded.by_values,
            "SKIPPED": ~excluded.is_kept,
            "KEPT_COLUMN_UNKNOWN": ~has_statistics,
        }
        chosen: list[str] = np.select(list(reasons.values()), list(reasons), default="KEPT_MAY_MATCH").tolist()
        return chosen

    def _has_statistics(self, columns: Sequence[Column]) -> Mask:
        """Select the files with statistics of any of these columns; all files if there are no columns."""
        if not columns:
            return np.ones(len(self._covered), bool)
        has_any = ~self._covered
        for column in self._facts.keys() & columns:
            has_any = has_any | self._facts[column].analyzed
        return has_any

    def _load(self, column: Column) -> None:
        """Read the statistics of a column, once."""
        store = self.listed.store
        if store is None or column in self._facts or column in self._unreadable:
            return
        try:
            (evidence,) = gather_evidence(store, self.listed.stored, [column])
        except _UNREADABLE as error:
            _LOG.warning("files are kept without the statistics of %s: %s", column.name, error)
            self._unreadable[column] = phrase_reason("STORE_UNREADABLE", error=error.message)
            return
        self._evidence[column] = evidence
        self._values[column] = StoredValues(store, limit_look_ups(evidence))
        self._facts[column] = build_column_facts(replace(evidence, analyzed=self._find_usable(evidence)))

    def _find_usable(self, evidence: ColumnEvidence) -> Mask:
        """Select the files whose statistics of a column can be trusted."""
        is_usable: Mask = evidence.analyzed.copy()
        is_usable[self._ambiguous_files.get(evidence.column.name.lower(), [])] = False
        return is_usable

    @cached_property
    def _ambiguous_files(self) -> Mapping[str, list[int]]:
        """Files with a partition value beyond ASCII in their path, by the partition column.

        Spark reads each byte of it as a character, and other engines read it as UTF-8.
        """
        files: dict[str, list[int]] = defaultdict(list)
        if self.listed.format not in DIRECTORIES:
            return files
        for file, path in enumerate(self._files["path"].to_pylist()):
            if "%" not in path:
                continue
            for name in _BEYOND_ASCII.findall(path):
                column = Column(key="", path=(unquote(name, "latin-1"),), type="", encoding=None)
                files[column.name.lower()].append(file)
        return files

    def _exclude(self, conditions: Sequence[Conjunct], files: Mask) -> _Excluded:
        """Find which of these files a condition excludes: by bounds first, then by single values."""
        conjuncts = np.full(len(files), _NOT_EXCLUDED)
        by_values = np.zeros(len(files), bool)
        remaining = files.copy()
        for i, conjunct in enumerate(conditions):
            excluded = remaining & exclude_by_bounds(conjunct.condition, self._facts, len(files))
            conjuncts[excluded] = i
            remaining &= ~excluded
        if remaining.sum() > MOST_LOOKED_UP:
            return _Excluded(conjuncts, by_values)
        for i, conjunct in enumerate(conditions):
            excluded = exclude_by_values(conjunct.condition, self._facts, self._values, remaining)
            conjuncts[excluded] = i
            by_values[excluded] = True
            remaining &= ~excluded
        return _Excluded(conjuncts, by_values)


@dataclass(frozen=True)
class _Excluded:
    """The files that conditions exclude.

    Attributes:
        conjuncts: For each file the index of the condition that excludes it, or -1.
        by_values: Whether single values exclude it, and not bounds.
    """

    conjuncts: NDArray[np.int64]
    by_values: Mask

    @cached_property
    def is_kept(self) -> Mask:
        """For each file, whether no condition excludes it."""
        mask: Mask = self.conjuncts == _NOT_EXCLUDED
        return mask


def _join_names(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def _with_conjunction(conjuncts: Sequence[Conjunct]) -> list[Conjunct]:
    """Add the conjunction of all conjuncts: several conjuncts on one column may exclude more than each alone."""
    if len(conjuncts) < 2:
        return list(conjuncts)
    text = " AND ".join(conjunct.text for conjunct in conjuncts)
    return [*conjuncts, Conjunct(text, all_of(conjunct.condition for conjunct in conjuncts))]


def _count_rows(rows: list[int | None], evidence: Iterable[ColumnEvidence]) -> list[int | None]:
    """Count the rows of each file, by the table's metadata, or else by the statistics of any column."""
    for column in evidence:
        counted = np.where(column.analyzed, column.rows, UNKNOWN).tolist()
        rows = [_fill_unknown(row, count) for row, count in zip(rows, counted, strict=True)]
    return rows


def _fill_unknown(rows: int | None, count: int) -> int | None:
    return count if rows is None and count >= 0 else rows


def _explain_unused(conjuncts: Sequence[Conjunct]) -> dict[str, str]:
    """Explain why conjuncts can skip no file."""
    reasons = {}
    for conjunct in conjuncts:
        condition = conjunct.condition
        if isinstance(condition, Unknown):
            reasons[conjunct.text] = phrase_reason(
                condition.reason,
                expression=condition.subject,
                column=condition.subject,
                collation="another one",
            )
    return reasons
