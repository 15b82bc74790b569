"""What a statement asks for, checked against the table before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from metastore.adapters.identifiers import split_name
from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.format.manifest import FILES
from metastore.pipeline.partition_filter import is_in_partition
from metastore.suggestions import find_similar_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.adapters.table_facts import DataFile, TableFacts
    from metastore.format.table_column import Column
    from metastore.pipeline.extras import ColumnChoice
    from metastore.statistics import Statistic


@dataclass(frozen=True)
class AnalyzeRequest:
    """A statement's wishes, resolved.

    Attributes:
        depth: `full`, `footer` or `files`.
        columns: The columns to cover.
        files: The data files to cover.
        statistics: User-defined statistics to have, with versions.
    """

    depth: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    statistics: frozenset[tuple[str, int]] = frozenset()


def resolve_request(
    facts: TableFacts,
    *,
    columns: Sequence[str] | None,
    partition: Mapping[str, Any] | None,
    depth: str,
    case_sensitive: bool,
    partition_columns: Sequence[str] = (),
    zone: str = "UTC",
) -> AnalyzeRequest:
    """Check a statement against the table."""
    fold = str if case_sensitive else str.casefold
    wanted = facts.columns if columns is None else _columns(facts, columns, fold)
    if depth == FILES:
        wanted = ()
    for name in partition_columns:
        _require_partition_column(facts, name, fold)
    return AnalyzeRequest(depth, wanted, _files(facts, partition, fold, zone) if partition else facts.files)


def find_columns(
    facts: TableFacts, names: Sequence[str], *, case_sensitive: bool, failed: dict[str, str] | None = None
) -> tuple[Column, ...]:
    """Find columns by name."""
    fold = str if case_sensitive else str.casefold
    found: set[str] = set()
    for name in names:
        try:
            found.update(column.key for column in _columns(facts, [name], fold))
        except ColumnNotFound as error:
            if failed is None:
                raise
            failed[name] = error.message
    return tuple(column for column in facts.columns if column.key in found)


def _columns(facts: TableFacts, names: Sequence[str], fold: Any) -> tuple[Column, ...]:
    chosen: set[str] = set()
    for name in names:
        # SQL hands over single identifiers without their quotes: a dot may belong to the name.
        found = _below(facts, (name,), fold) or _below(facts, _parts(name), fold)
        if not found:
            known = [column.name for column in facts.columns]
            raise ColumnNotFound(name, facts.name, near=find_similar_names(name, known), known=known)
        chosen.update(found)
    return tuple(column for column in facts.columns if column.key in chosen)


def _parts(name: str) -> tuple[str, ...]:
    try:
        return split_name(name)
    except InvalidArgument:
        return (name,)


def _below(facts: TableFacts, path: tuple[str, ...], fold: Any) -> list[str]:
    wanted = tuple(map(fold, path))
    return [column.key for column in facts.columns if tuple(map(fold, column.path[: len(wanted)])) == wanted]


def _files(facts: TableFacts, partition: Mapping[str, Any], fold: Any, zone: str) -> tuple[DataFile, ...]:
    chosen = facts.files
    columns = {fold(column.path[0]): column for column in facts.columns if len(column.path) == 1}
    for name, value in partition.items():
        _require_partition_column(facts, name, fold)
        column = columns.get(fold(name))
        fields = (({fold(known): known for known in file.partition}.get(fold(name)), file) for file in chosen)
        chosen = tuple(
            file for field, file in fields if field is not None and is_in_partition(file, field, value, column, zone)
        )
    if facts.files and not chosen:
        text = ", ".join(f"{name} = {value}" for name, value in partition.items())
        raise InvalidArgument("PARTITION", f"{facts.name} has no data file with {text}")
    return chosen


def _require_partition_column(facts: TableFacts, name: str, fold: Any) -> None:
    names = {known for file in facts.files for known in file.partition}
    if not facts.files or fold(name) in set(map(fold, names)):
        return
    if fold(name) in {fold(column.path[0]) for column in facts.columns}:
        raise InvalidArgument("PARTITION", f"{name} is not a partition column of {facts.name}")
    raise ColumnNotFound(name, facts.name, near=find_similar_names(name, sorted(names)))


@dataclass(frozen=True)
class AnalyzeStatement:
    """An ANALYZE statement.

    Attributes:
        table: A name as in SQL.
        columns: Names of columns; None means all.
        partition: Partition column to value.
        depth: `full`, `footer` or `files`.
        frequencies: How the table's frequencies are made; as the setting says if None.
        statistics: User-defined statistics passed by the caller.
        ranks: Whether all columns get exact ranks, or which.
        distribution: Whether all columns get lists that tell where each value lives, or which.
        partition_columns: Columns that are to be partition columns, whatever their value.
        repair: Whether all stored statistics are read first, to compute again what is missing or damaged.
    """

    table: str
    columns: tuple[str, ...] | None
    partition: Mapping[str, Any]
    depth: str
    frequencies: str | None = None
    statistics: tuple[Statistic, ...] = ()
    ranks: ColumnChoice = False
    distribution: ColumnChoice = False
    partition_columns: tuple[str, ...] = ()
    repair: bool = False
