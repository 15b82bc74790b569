"""Checks an ANALYZE statement against the table."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from metastore.adapters.identifiers import split_leniently
from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.format.manifest import FILES, FULL
from metastore.pipeline.partition_filter import is_in_partition
from metastore.suggestions import find_similar_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.data_files import DataFile
    from metastore.format.table_column import Column
    from metastore.statistics import Statistic

ColumnChoice = bool | tuple[str, ...]
PARTITION_REFUSAL = "it is made of the whole table: leave the partition out"
NOT_ORDERED = "values of its type have no order that is kept"
RENAMED = "data files have it under other names, or its struct in another form"


@dataclass(frozen=True, kw_only=True)
class AnalyzeStatement:
    """An ANALYZE statement.

    Attributes:
        table: A name as in SQL.
        columns: Names of columns; None means all.
        partition: Partition column to value.
        depth: `full`, `footer` or `files`.
        frequencies: `auto` or `exact`, or None for the setting's.
        statistics: User-defined statistics passed by the caller.
        ranks: Names of the columns that get exact ranks; True means all.
        distribution: Names of the columns that get a value index; True means all.
        partition_columns: Columns that the statement requires to be partition columns, whatever their value.
        repair: Whether all stored statistics are read first, to compute missing or damaged ones again.
        expressions: Expressions over columns to compute besides those that the setting and the table name.
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
    expressions: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExtraColumns:
    """Ordinals of the columns that get ranks or a distribution, and why other chosen columns cannot have it."""

    ordinals: frozenset[int] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AnalyzeRequest:
    """A statement that was checked against the table.

    Attributes:
        depth: `full`, `footer` or `files`.
        statistics: User-defined statistics to compute, with versions.
        ranks: The columns that get exact ranks.
        distribution: The columns that get a value index.
        expressions: Expressions over the columns to compute of each file.
        expression_statistics: User-defined statistics of each expression, by its key.
    """

    depth: str
    columns: tuple[Column, ...]
    files: tuple[DataFile, ...]
    statistics: frozenset[tuple[str, int]] = frozenset()
    ranks: ExtraColumns = field(default_factory=ExtraColumns)
    distribution: ExtraColumns = field(default_factory=ExtraColumns)
    expressions: tuple[Column, ...] = ()
    expression_statistics: Mapping[str, frozenset[tuple[str, int]]] = field(default_factory=dict)

    def expression_requests(self) -> list[AnalyzeRequest]:
        """Make requests that treat expressions as columns: one for each set of user-defined statistics."""
        groups: dict[frozenset[tuple[str, int]], list[Column]] = defaultdict(list)
        for column in self.expressions:
            statistics = self.expression_statistics.get(column.key, frozenset())
            groups[statistics].append(column)
        return [
            AnalyzeRequest(depth=self.depth, columns=tuple(columns), files=self.files, statistics=statistics)
            for statistics, columns in groups.items()
        ]


def resolve_request(
    facts: TableFacts, statement: AnalyzeStatement, settings: Mapping[str, Any], *, case_sensitive: bool, zone: str
) -> AnalyzeRequest:
    """Check a statement against the table."""
    fold = str if case_sensitive else str.casefold
    columns = facts.columns if statement.columns is None else _resolve_columns(facts, statement.columns, fold)
    for name in statement.partition_columns:
        _require_partition_column(facts, name, fold)
    files = _select_files(facts, statement.partition, fold, zone)
    request = AnalyzeRequest(depth=statement.depth, columns=() if statement.depth == FILES else columns, files=files)
    if statement.depth != FULL:
        return request
    return replace(
        request,
        ranks=_find_extra_columns("ranks", facts, request, statement.ranks, settings=settings, fold=fold),
        distribution=_find_extra_columns(
            "distribution", facts, request, statement.distribution, settings=settings, fold=fold
        ),
    )


def _find_extra_columns(
    statistic: str,
    facts: TableFacts,
    request: AnalyzeRequest,
    choice: ColumnChoice,
    *,
    settings: Mapping[str, Any],
    fold: Any,
) -> ExtraColumns:
    """Find the columns that an argument, a setting or a property of the table chooses for ranks or distribution."""
    columns = _choose_columns(facts, request, choice, fold)
    configured, failed = _find_configured_columns(statistic, facts, settings, fold)
    columns |= configured.intersection(request.columns)
    ordinals = set()
    for ordinal, column in enumerate(facts.columns):
        if column not in columns:
            continue
        refusal = _refuse_column(statistic, column, facts, request)
        if refusal is None:
            ordinals.add(ordinal)
        else:
            failed[f"{statistic} of {column.name}"] = refusal
    return ExtraColumns(frozenset(ordinals), failed)


def _choose_columns(facts: TableFacts, request: AnalyzeRequest, choice: ColumnChoice, fold: Any) -> set[Column]:
    """Return the columns that an argument of the statement chooses."""
    if choice is True:
        return {column for column in request.columns if column.encoding is not None}
    return set(_resolve_columns(facts, choice or (), fold))


def _find_configured_columns(
    statistic: str, facts: TableFacts, settings: Mapping[str, Any], fold: Any
) -> tuple[set[Column], dict[str, str]]:
    """Find the columns that the setting and the table's property name, and the names that fail."""
    columns: set[Column] = set()
    failed: dict[str, str] = {}
    for name in _list_configured_names(statistic, facts, settings):
        try:
            columns.update(_resolve_columns(facts, [name], fold))
        except ColumnNotFound as error:
            failed[f"{statistic} of {name}"] = error.message
    return columns, failed


def _list_configured_names(statistic: str, facts: TableFacts, settings: Mapping[str, Any]) -> list[str]:
    """List the names of columns in the setting and in the table's property."""
    in_property = facts.properties.get(f"metastore.{statistic}.columns", "").split(",")
    names = [*settings[f"spark.metastore.{statistic}.columns"], *map(str.strip, in_property)]
    return list(filter(None, names))


def _refuse_column(statistic: str, column: Column, facts: TableFacts, request: AnalyzeRequest) -> str | None:
    """Return the reason that a column cannot have ranks or a distribution, or None."""
    if len(request.files) < len(facts.files):
        return PARTITION_REFUSAL
    if statistic != "ranks":
        return None
    if column.encoding is None or column.collation is not None:
        return NOT_ORDERED
    if column.key in facts.renamed:
        return RENAMED
    return None


def _resolve_columns(facts: TableFacts, names: Sequence[str], fold: Any) -> tuple[Column, ...]:
    """Resolve names of columns or structs to columns; a struct stands for all its fields."""
    keys: set[str] = set()
    for name in names:
        keys.update(_find_leaf_keys(facts, name, fold))
    return tuple(column for column in facts.columns if column.key in keys)


def _find_leaf_keys(facts: TableFacts, name: str, fold: Any) -> list[str]:
    # SQL hands over single identifiers without their quotes: a dot may belong to the name.
    leaves = _match_leaf_keys(facts, (name,), fold) or _match_leaf_keys(facts, split_leniently(name), fold)
    if not leaves:
        column_names = [column.name for column in facts.columns]
        similar = find_similar_names(name, column_names)
        raise ColumnNotFound(name, facts.name, near=similar, known=column_names)
    return leaves


def _match_leaf_keys(facts: TableFacts, path: tuple[str, ...], fold: Any) -> list[str]:
    folded = list(map(fold, path))
    keys = []
    for column in facts.columns:
        beginning = list(map(fold, column.path[: len(path)]))
        if beginning == folded:
            keys.append(column.key)
    return keys


def _select_files(facts: TableFacts, partition: Mapping[str, Any], fold: Any, zone: str) -> tuple[DataFile, ...]:
    """Select the data files of a partition; an empty partition selects all files."""
    columns = {fold(column.path[0]): column for column in facts.columns if len(column.path) == 1}
    files = facts.files
    for name, value in partition.items():
        _require_partition_column(facts, name, fold)
        column = columns.get(fold(name))
        files = _select_partition(files, name, value, column, fold=fold, zone=zone)
    if facts.files and not files:
        conditions = [f"{name} = {value}" for name, value in partition.items()]
        text = ", ".join(conditions)
        raise InvalidArgument("PARTITION", f"{facts.name} has no data file with {text}")
    return files


def _select_partition(
    files: Sequence[DataFile], name: str, value: Any, column: Column | None, *, fold: Any, zone: str
) -> tuple[DataFile, ...]:
    """Select the data files whose partition column has a value."""
    selected = []
    for file in files:
        field_name = _find_partition_field(file, name, fold)
        if field_name is not None and is_in_partition(file, field_name, value, column, zone):
            selected.append(file)
    return tuple(selected)


def _find_partition_field(file: DataFile, name: str, fold: Any) -> str | None:
    names = {fold(field_name): field_name for field_name in file.partition}
    return names.get(fold(name))


def _require_partition_column(facts: TableFacts, name: str, fold: Any) -> None:
    if not facts.files:
        return
    field_names = set[str]().union(*(file.partition for file in facts.files))
    if fold(name) in map(fold, field_names):
        return
    column_names = [column.path[0] for column in facts.columns]
    if fold(name) in map(fold, column_names):
        raise InvalidArgument("PARTITION", f"{name} is not a partition column of {facts.name}")
    raise ColumnNotFound(name, facts.name, near=find_similar_names(name, sorted(field_names)))
