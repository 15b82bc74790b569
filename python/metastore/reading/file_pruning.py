"""Which data files of a table a filter leaves to be read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np

from metastore.adapters.descriptors import WITH_LOG_FILES
from metastore.answers import require_library
from metastore.errors import DamagedObject, FormatTooNew, StoreNotReadable
from metastore.format.table_column import Column
from metastore.pruning.conditions import Unknown, all_of, list_columns
from metastore.pruning.exclusion import exclude_by_bounds, exclude_by_values
from metastore.reading.column_facts import StoredValues, build_column_facts, limit_look_ups
from metastore.reading.evidence import gather_evidence
from metastore.reading.pruned_files import FileVerdict, phrase_reason
from metastore.reading.snapshot_files import match_data_files, match_no_files
from metastore.store.location import openable_path
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from metastore.adapters.table_facts import DataFile
    from metastore.pruning.conditions import Condition
    from metastore.pruning.exclusion import ColumnFacts
    from metastore.pruning.filters import Conjunct
    from metastore.pruning.value_sets import Mask
    from metastore.reading.discovery import Discovery
    from metastore.reading.evidence import ColumnEvidence
    from metastore.reading.snapshot_files import SnapshotFiles
    from metastore.store import Store

_LOG = get_logger(__name__)
MOST_LOOKED_UP = 16_384
"""Of so many data files at most that bounds keep are single values asked."""
_BEYOND_ASCII = re.compile(r"([^/=]+)=[^/]*%(?:25)?[89A-Fa-f][0-9A-Fa-f]")
"""In a path: the column whose value has such bytes."""
_KEPT = -1
_UNREADABLE = (DamagedObject, StoreNotReadable, FormatTooNew)


@dataclass(frozen=True)
class ListedFiles:
    """The data files of a table, and what knows them.

    Attributes:
        format: The table's format.
        location: The table's root.
        stored: The files as rows of `table-files`, and the blocks that have statistics of them.
        store: The statistics; None where there are none.
    """

    format: str
    location: str
    stored: SnapshotFiles
    store: Store | None

    @classmethod
    def of_files(cls, table_format: str, location: str, files: Sequence[DataFile], place: Discovery) -> ListedFiles:
        """The data files that a table has now; without a store where none can be read."""
        manifest, store = place.manifest, place.store
        if manifest is not None and store is not None:
            try:
                return cls(table_format, location, match_data_files(store, manifest, files), store)
            except _UNREADABLE as error:
                _LOG.warning("all data files of %s are kept: %s", location, error)
        return cls(table_format, location, match_no_files(files), None)


@dataclass(frozen=True)
class Judged:
    """What became of data files.

    Attributes:
        verdicts: Of each file.
        analyzed: How many of them have statistics.
        unused: Parts of the filter that can skip no file: why.
    """

    verdicts: tuple[FileVerdict, ...]
    analyzed: int
    unused: Mapping[str, str]


@dataclass(frozen=True)
class FilteredColumns:
    """What a filter may name.

    Attributes:
        columns: The table's columns, as they are now.
        expressions: Those that have statistics.
        analyzed: The columns that the expressions name, as they were then.
    """

    columns: Sequence[Column]
    expressions: Sequence[Column] = ()
    analyzed: Sequence[Column] = ()

    def parse(self, filter_: str, table: str, zone: str) -> tuple[Conjunct, ...]:
        """The parts of a filter that AND joins; `metastore.pruning.filters.parse_filter` tells more.

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


class FilePruner:
    """Tells of the data files of a table which have to be read; what it has read of statistics it keeps."""

    def __init__(self, listed: ListedFiles) -> None:
        """Nothing is read yet."""
        self.listed = listed
        self._files = listed.stored.files
        self._covered = listed.stored.is_covered()
        self._facts: dict[Column, ColumnFacts] = {}
        self._evidence: dict[Column, ColumnEvidence] = {}
        self._values: dict[Column, StoredValues] = {}
        self._unread: dict[Column, str] = {}
        deletes: Mask = self._files["deletes"].is_valid().to_numpy()
        self._deletes = deletes
        self._open: Mask = self._covered if listed.format not in WITH_LOG_FILES else self._covered & ~deletes

    @cached_property
    def _paths(self) -> list[str]:
        return [openable_path(path, self.listed.location) for path in self._files["path"].to_pylist()]

    def read_evidence(self, column: Column) -> tuple[ColumnEvidence | None, Mask]:
        """What is known of a column, and in which data files anything is."""
        if column.encoding is not None:
            self._load(column)
        facts = self._facts.get(column)
        return self._evidence.get(column), self._open & facts.known if facts else np.zeros(len(self._open), bool)

    def count_kept(self, condition: Condition) -> int:
        """How many data files of which something is known a condition on one column leaves to be read."""
        (column,) = list_columns(condition)
        _, known = self.read_evidence(column)
        marks, _ = self._exclude([("", condition)], known)
        return int((known & (marks == _KEPT)).sum())

    def judge(self, conjuncts: Sequence[Conjunct]) -> Judged:
        """Tell of each data file whether it has to be read. What is not known keeps it."""
        conditions = _list_conditions(conjuncts)
        columns = list_columns(all_of(condition for _, condition in conditions))
        for column in columns:
            self._load(column)
        marks, by_values = self._exclude(conditions, self._open)
        rows = _count_rows(self._files["rows"].to_pylist(), self._evidence.values())
        known = reduce(np.logical_or, (self._facts[one].known for one in columns if one in self._facts), ~self._covered)
        names = ", ".join(column.name for column in columns)
        verdicts = []
        for place, path in enumerate(self._paths):
            reason, conjunct, statistic = "KEPT_MAY_MATCH", None, None
            if not self._covered[place]:
                reason = "KEPT_FILE_UNKNOWN"
            elif not self._open[place]:
                reason = "KEPT_LOG_FILES"
            elif rows[place] == 0:
                reason = "SKIPPED_EMPTY"
            elif marks[place] != _KEPT:
                conjunct, condition = conditions[marks[place]]
                reason = "SKIPPED_BY_VALUES" if by_values[place] else "SKIPPED"
                statistic = ", ".join(column.name for column in list_columns(condition))
            elif names and not known[place]:
                reason, statistic = "KEPT_COLUMN_UNKNOWN", names
            verdicts.append(FileVerdict(path, reason, conjunct, statistic, rows[place], bool(self._deletes[place])))
        unread = {column.name: self._unread[column] for column in columns if column in self._unread}
        return Judged(tuple(verdicts), int(self._covered.sum()), _explain_unused(conjuncts) | unread)

    def _load(self, column: Column) -> None:
        store = self.listed.store
        if store is None or column in self._facts or column in self._unread:
            return
        try:
            (found,) = gather_evidence(store, self.listed.stored, [column])
        except _UNREADABLE as error:
            _LOG.warning("files are kept without the statistics of %s: %s", column.name, error)
            self._unread[column] = phrase_reason("STORE_UNREADABLE", error=error.message)
            return
        self._evidence[column], self._values[column] = found, StoredValues(store, limit_look_ups(found))
        if files := self._read_otherwise.get(column.name.lower()):
            known = found.known.copy()
            known[files] = False
            found = replace(found, known=known)
        self._facts[column] = build_column_facts(found)

    @cached_property
    def _read_otherwise(self) -> Mapping[str, list[int]]:
        """Files in folders named by bytes beyond ASCII, by column: each is a character to Spark, others read UTF-8."""
        found: dict[str, list[int]] = {}
        for file, path in enumerate(self._files["path"].to_pylist() if self.listed.format == "parquet" else ()):
            for name in _BEYOND_ASCII.findall(path) if "%" in path else ():
                found.setdefault(Column("", (unquote(name, "latin-1"),), "", None).name.lower(), []).append(file)
        return found

    def _exclude(self, conditions: Sequence[tuple[str, Condition]], open_files: Mask) -> tuple[np.ndarray, Mask]:
        """For each file the place of the condition that excludes it, and whether single values did."""
        marks = np.full(len(open_files), _KEPT)
        by_values = np.zeros(len(open_files), bool)
        for place, (_, condition) in enumerate(conditions):
            excluded = exclude_by_bounds(condition, self._facts, len(open_files))
            marks[open_files & excluded & (marks == _KEPT)] = place
        left = open_files & (marks == _KEPT)
        for place, (_, condition) in enumerate(conditions if left.sum() <= MOST_LOOKED_UP else ()):
            excluded = exclude_by_values(condition, self._facts, self._values, left)
            marks[excluded], by_values[excluded] = place, True
            left &= ~excluded
        return marks, by_values


def _list_conditions(conjuncts: Sequence[Conjunct]) -> list[tuple[str, Condition]]:
    """The conjuncts, and what follows from several on one column."""
    found = [(one.text, one.condition) for one in conjuncts]
    if len(found) > 1:
        found.append((" AND ".join(text for text, _ in found), all_of(condition for _, condition in found)))
    return found


def _count_rows(listed: list[int | None], evidence: Iterable[ColumnEvidence]) -> list[int | None]:
    """The rows of each file, where the table or its statistics tell."""
    for one in evidence:
        listed = [
            int(counted) if rows is None and known and counted >= 0 else rows
            for rows, known, counted in zip(listed, one.known.tolist(), one.rows.tolist(), strict=True)
        ]
    return listed


def _explain_unused(conjuncts: Sequence[Conjunct]) -> dict[str, str]:
    """Why parts of a filter have no rule."""
    return {
        one.text: phrase_reason(
            one.condition.reason,
            expression=one.condition.subject,
            column=one.condition.subject,
            collation="another one",
        )
        for one in conjuncts
        if isinstance(one.condition, Unknown)
    }
