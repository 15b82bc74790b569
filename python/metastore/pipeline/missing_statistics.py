"""Finds the requested statistics that no block holds: the work of an ANALYZE."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metastore.format.manifest import FILES, FULL
from metastore.store.block_files import DEPTHS, column_keys
from metastore.store.coverage import FileKnowledge, union_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.format.data_files import DataFile, FileKey
    from metastore.format.table_column import Column
    from metastore.pipeline.request import AnalyzeRequest
    from metastore.store.coverage import Coverage


@dataclass(frozen=True)
class MissingStatistics:
    """Files that miss the same columns.

    Attributes:
        depth: `full`, `footer` or `files`.
        columns: The columns to compute; none if the files are only to be listed.
        is_listed: Whether some block lists the files already.
    """

    depth: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    is_listed: bool


def plan_work(coverage: Coverage, requests: Sequence[AnalyzeRequest]) -> tuple[MissingStatistics, ...]:
    """Find the requested statistics that no block holds; work for one request counts as done for the next."""
    knowledge = dict(coverage.knowledge)
    work: list[MissingStatistics] = []
    for request in requests:
        for part in find_missing(knowledge, request):
            planned = FileKnowledge(DEPTHS[part.depth], column_keys(part.columns), request.statistics)
            for file in part.files:
                knowledge[file.key] = (*knowledge[file.key], planned)
            work.append(part)
    return tuple(work)


def find_missing(
    knowledge: Mapping[FileKey, tuple[FileKnowledge, ...]], request: AnalyzeRequest
) -> list[MissingStatistics]:
    """Find the requested statistics that no block has; files that miss the same columns are one item."""
    groups: dict[tuple[tuple[Column, ...], bool], list[DataFile]] = defaultdict(list)
    for file_knowledge, files in _group_by_knowledge(knowledge, request.files).items():
        columns = _find_unknown_columns(file_knowledge, request)
        is_listed = bool(file_knowledge)
        if columns or not is_listed:
            groups[columns, is_listed] += files
    missing = []
    for (columns, is_listed), files in groups.items():
        depth = request.depth if columns else FILES
        missing.append(MissingStatistics(depth, columns, tuple(files), is_listed))
    return missing


def _group_by_knowledge(
    knowledge: Mapping[FileKey, tuple[FileKnowledge, ...]], files: Sequence[DataFile]
) -> dict[tuple[FileKnowledge, ...], list[DataFile]]:
    groups: dict[tuple[FileKnowledge, ...], list[DataFile]] = defaultdict(list)
    for file in files:
        groups[knowledge[file.key]].append(file)
    return groups


def _find_unknown_columns(knowledge: Sequence[FileKnowledge], request: AnalyzeRequest) -> tuple[Column, ...]:
    if request.depth == FILES:
        return ()
    computed = union_columns(knowledge, DEPTHS[request.depth])
    if request.depth == FULL:
        for statistic in request.statistics:
            computed &= union_columns(knowledge, DEPTHS[FULL], frozenset({statistic}))
    return tuple(column for column in request.columns if (column.key, column.type) not in computed)
