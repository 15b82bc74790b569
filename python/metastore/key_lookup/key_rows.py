"""Locate the rows of many keys: statistics choose the data files, and Spark reads the rows in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from metastore import jvm_session
from metastore.adapters.catalog import CatalogEntry, look_up_table
from metastore.adapters.descriptors import TableFormat, describe_format
from metastore.adapters.identifiers import find_column, quote_name
from metastore.adapters.loading import load_entry_facts
from metastore.adapters.spark_versions import collect_arrow, create_frame, select_at_snapshot
from metastore.answers import Answer
from metastore.errors import InvalidArgument, JarNotFound, UnsupportedTable
from metastore.key_lookup.key_sql import (
    MOST_KEYS,
    PLANNED_KEYS,
    build_condition,
    convert_key,
    find_char_length,
    has_char_column,
    list_stored_forms,
    pad_char,
    read_spark_columns,
    text_literal,
)
from metastore.reading.candidates import SLICE, CandidateSearch, search_slices
from metastore.reading.evidence import ColumnEvidence, gather_evidence
from metastore.reading.lookup_keys import KeyBatch
from metastore.reading.snapshot_files import match_data_files
from metastore.spark import session
from metastore.spark_jobs.hadoop_store import open_table_store
from metastore.spark_jobs.session_jobs import ship_package
from metastore.spark_jobs.task_store import JvmTaskStore, TaskStore
from metastore.store.arrow_blobs import open_object_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.table_column import Column
    from metastore.reading.lookup_keys import Mask, Places
    from metastore.store import Store


PATH = "path"
POSITION = "position"
_FILE = "file"
_DRIVER_KEYS = 10_000
"""The driver compares up to this many keys with the statistics; tasks compare more."""
_DRIVER_INTEGERS = 250_000
"""The same limit for integer keys, which take less memory."""
_DRIVER_BYTES = 256 << 20
"""The driver reads at most this many bytes of value lists and bloom filters."""
_TASK_BYTES = 64 << 20
_TASK_FILES = 16
_SAMPLE_KEYS = 1_000
_NEARLY_ALL = 0.9
"""If the candidates have this share of the rows, leaving out the other files costs more than it saves."""
_QUICK_BYTES = 250 << 20
"""The bytes that a core reads in about the time that choosing files takes."""


@dataclass(frozen=True)
class _KeyColumn:
    """A column of the key. In SQL, the first one is `c0` in rows of the table and `k0` in rows of the keys.

    Attributes:
        number: Its position in the key.
        column: The column of the table.
        char_length: The length of CHAR, to which Spark pads values; None for other types.
    """

    number: int
    column: Column
    char_length: int | None

    @property
    def select_sql(self) -> str:
        """SQL that selects the column from the table."""
        return f"{quote_name(self.column.path)} AS c{self.number}"

    @property
    def result_sql(self) -> str:
        """SQL of the column in the result, under its own name."""
        return f"c{self.number} AS {quote_name([self.column.name])}"

    @property
    def comparison_sql(self) -> str:
        """SQL of a row's value as it is compared with a key."""
        if self.char_length is None:
            return f"c{self.number}"
        return pad_char(f"c{self.number}", self.char_length)

    def key_sql(self, value: str) -> str:
        """Return SQL of a key, given SQL of its value in the column's type."""
        if self.char_length is not None:
            value = pad_char(f"rtrim({value})", self.char_length)
        return f"{value} AS k{self.number}"


@dataclass(frozen=True, kw_only=True)
class _KeyTable:
    """The table whose rows are located.

    Attributes:
        key: The columns of the key.
        has_char: Whether one of them is of CHAR or VARCHAR.
        location: SQL of a row's file and position.
    """

    spark: SparkSession
    entry: CatalogEntry
    format: TableFormat
    key: Sequence[_KeyColumn]
    has_char: bool
    location: Sequence[str]

    @property
    def columns(self) -> list[Column]:
        """The columns of the key, as the table has them."""
        return list(map(attrgetter("column"), self.key))

    @property
    def select_list(self) -> list[str]:
        """SQL of the key's columns, then of the location."""
        return [*map(attrgetter("select_sql"), self.key), *self.location]

    def read_rows(self, condition: str = "true") -> DataFrame:
        """Return the live rows at the newest snapshot; planning skips files by the condition."""
        select_list = ", ".join(self.select_list)
        return self.spark.sql(f"SELECT {select_list} FROM {self.entry.identifier} WHERE {condition}")


@dataclass(frozen=True)
class _CollectedKeys:
    """Distinct keys in the driver.

    Attributes:
        values: The keys, or the first of them.
        frame: All keys.
        are_all: Whether the driver has all keys.
    """

    values: pa.Table
    frame: DataFrame
    are_all: bool


def locate_rows(spark: SparkSession, table: str, columns: Sequence[str], keys: DataFrame, *, pruned: bool) -> DataFrame:
    """Find the rows of a table that have one of the keys."""
    key_table = _open_key_table(spark, table, columns)
    key_frame = _convert_keys(keys, columns, key_table)
    if pruned and _has_many_rows(keys):
        rows = key_table.read_rows()
        if _is_quick_to_read(rows):
            return _join_keys(rows, key_frame, key_table)

    collected = _collect_keys(spark, key_frame, key_table.columns)
    condition = _write_condition(collected, key_table, pruned=pruned)
    if condition is not None and _is_analyzed(spark, key_table.entry):
        rows = key_table.read_rows(condition)
    else:
        rows = _read_chosen_files(key_table, columns, collected, pruned=pruned)
    return _join_keys(rows, collected.frame, key_table)


def _read_chosen_files(key_table: _KeyTable, names: Sequence[str], keys: _CollectedKeys, *, pruned: bool) -> DataFrame:
    """Return the rows of the data files that may have a key, or of all files if not pruned."""
    facts = load_entry_facts(key_table.spark, key_table.entry, newest=False)
    columns = [_find_key_column(facts.columns, name, facts.name) for name in names]
    candidates = None
    if pruned:
        candidates = _find_candidates(facts, key_table, columns, keys)
    return _read_candidates(facts, candidates, key_table)


def _open_key_table(spark: SparkSession, table: str, names: Sequence[str]) -> _KeyTable:
    entry = look_up_table(spark, table, newest=True)
    table_format = describe_format(entry.provider)
    _require_readable_by_path(entry, table_format, table)
    schema = spark.table(entry.identifier).schema
    spark_columns = read_spark_columns(schema)
    columns = [_find_key_column(spark_columns, name, entry.name) for name in names]
    return _KeyTable(
        spark=spark,
        entry=entry,
        format=table_format,
        key=[_KeyColumn(number, column, find_char_length(schema, column)) for number, column in enumerate(columns)],
        has_char=has_char_column(schema, columns),
        location=_location_sql(spark, entry, table_format),
    )


def _write_condition(keys: _CollectedKeys, key_table: _KeyTable, *, pruned: bool) -> str | None:
    """Write an SQL condition for the keys; None if it would be too long, or Spark pads the values."""
    if not keys.are_all or key_table.has_char:
        return None
    return build_condition(keys.values, key_table.columns, PLANNED_KEYS if pruned else MOST_KEYS)


def _require_readable_by_path(entry: CatalogEntry, table_format: TableFormat, table: str) -> None:
    if entry.is_path and not table_format.has_sql_paths:
        raise UnsupportedTable(
            table,
            f"SQL reads no {table_format.title} table by its path",
            hint=f"Give it a name: CREATE TABLE t USING {table_format.name} LOCATION '...'.",
        )


def _find_key_column(columns: Sequence[Column], name: str, table: str) -> Column:
    column = find_column(columns, name, table)
    if column.encoding is None:
        raise InvalidArgument("columns", f"values of {name}, {column.type}, cannot be located")
    return column


def _convert_keys(keys: DataFrame, names: Sequence[str], key_table: _KeyTable) -> DataFrame:
    """Cast the keys to the types of the table's columns, as `k0`, `k1` and so on; CHAR is padded."""
    frame = keys
    expressions = []
    for name, key_column in zip(names, key_table.key, strict=True):
        field = _find_key_field(keys, name, key_column.column)
        key_type = keys.schema[field].dataType.simpleString()
        value, is_exact = convert_key(quote_name([field]), key_type, key_column.column)
        if is_exact is not None:
            frame = frame.where(is_exact)
        expressions.append(key_column.key_sql(value))
    return frame.selectExpr(*expressions)


def _find_key_field(keys: DataFrame, name: str, column: Column) -> str:
    """Return the name of the column in the keys: the name that the user gave, or the table's."""
    names = {name.lower(), column.name.lower()}
    if len(column.path) == 1:
        names.add(column.path[0].lower())
    fields = [field for field in keys.columns if field.lower() in names]
    if len(fields) == 1:
        return fields[0]
    number = "several columns" if fields else "no column"
    hint = f"Its columns: {', '.join(keys.columns)}."
    raise InvalidArgument("keys", f"it has {number} {name}", hint)


def _collect_keys(spark: SparkSession, key_frame: DataFrame, columns: Sequence[Column]) -> _CollectedKeys:
    """Collect distinct keys, at most as many as the driver compares with the statistics."""
    encodings = {column.encoding for column in columns}
    limit = _DRIVER_INTEGERS if encodings == {"long"} else _DRIVER_KEYS
    frame = key_frame
    if "double" in encodings:  # for Spark 0.0 equals -0.0, and NaN equals NaN; for Arrow not
        frame = key_frame.distinct()
    keys = collect_arrow(frame.limit(limit + 1))
    distinct_keys = keys.group_by(keys.column_names).aggregate([])
    if keys.num_rows > limit:
        return _CollectedKeys(distinct_keys, key_frame, are_all=False)
    schema = _narrow_nullability(key_frame.schema, distinct_keys)
    return _CollectedKeys(distinct_keys, create_frame(spark, distinct_keys, schema), are_all=True)


def _narrow_nullability(schema: StructType, keys: pa.Table) -> StructType:
    """Return the schema in which the columns of keys without nulls are not nullable."""
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - not needed to import this module

    fields = []
    for field in schema:
        has_nulls = keys[field.name].null_count > 0
        fields.append(StructField(field.name, field.dataType, has_nulls))
    return StructType(fields)


def _is_analyzed(spark: SparkSession, entry: CatalogEntry) -> bool:
    """Return whether the table has statistics for the planner."""
    try:
        snapshots = session.call_function(spark, "snapshots", entry.identifier, {}, Answer)
    except JarNotFound:
        return False
    return bool(snapshots)


def _has_many_rows(keys: DataFrame) -> bool:
    """Return whether Spark estimates more keys than the planner looks for; nothing is read."""
    own_plan = keys.select("*")  # estimating `keys` itself would fix its plan, which the user may cache later
    _, rows = jvm_session.estimate_size(own_plan)
    return rows is not None and rows > PLANNED_KEYS


def _is_quick_to_read(rows: DataFrame) -> bool:
    """Return whether reading all rows takes no longer than choosing files."""
    size, _ = jvm_session.estimate_size(rows)
    return size < _QUICK_BYTES * rows.sparkSession.sparkContext.defaultParallelism


def _location_sql(spark: SparkSession, entry: CatalogEntry, table_format: TableFormat) -> list[str]:
    """Return SQL of a row's file and position; the position is NULL where the table hides it."""
    position = table_format.position_sql
    if _hides_positions(spark, entry, table_format):
        position = "CAST(NULL AS BIGINT)"
    return [f"{table_format.file_sql} AS {_FILE}", f"{position} AS {POSITION}"]


def _hides_positions(spark: SparkSession, entry: CatalogEntry, table_format: TableFormat) -> bool:
    """Return whether rows of the table have no position; for some formats, only Spark knows.

    Spark prints an error with a stack where a query names a field that a struct does not have.
    """
    if table_format.position_sql is None or not table_format.may_hide_positions:
        return table_format.position_sql is None
    struct, _, field = table_format.position_sql.partition(".")
    fields = spark.table(entry.identifier).select(f"{struct}.*").columns
    return field not in fields


def _find_candidates(
    facts: TableFacts, key_table: _KeyTable, columns: Sequence[Column], keys: _CollectedKeys
) -> Mask | None:
    """Find the data files that may have a key.

    None means all files: there are no statistics, or the files with keys have nearly all rows.
    """
    store, task_store = open_table_store(key_table.spark, facts.identity, facts.identifier, writable=False)
    numbers, stored_keys = _stored_keys(key_table.key, keys)
    if not numbers:
        return None
    columns = [columns[number] for number in numbers]
    evidence = _read_evidence(store, facts, columns)
    if evidence is None:
        return None
    batch = KeyBatch.from_table(stored_keys, columns)
    sample = KeyBatch.from_table(_sample(stored_keys), columns)
    search = _begin_search(store, evidence, batch, sample)
    if _has_nearly_all_rows(search.candidates, evidence):
        return None
    if keys.are_all and _fits_driver(evidence):
        search.add(batch)
        return _unless_nearly_all(search.candidates, evidence)
    frame = _select_keys(key_table.spark, stored_keys, keys)
    return _unless_nearly_all(_search_by_tasks(key_table.spark, frame, task_store, evidence), evidence)


def _begin_search(
    store: Store, evidence: Sequence[ColumnEvidence], keys: KeyBatch, sample: KeyBatch
) -> CandidateSearch:
    """Begin with the files in which many keys lie, and those that may have a key of a sample."""
    search = CandidateSearch(evidence, store.open_part)
    search.add_crowded_files(keys)
    if _fits_driver(evidence) and not _has_nearly_all_rows(search.candidates, evidence):
        search.add(sample)
    return search


def _fits_driver(evidence: Sequence[ColumnEvidence]) -> bool:
    """Return whether the driver may read the value lists and filters."""
    return _count_bytes(evidence) <= _DRIVER_BYTES


def _unless_nearly_all(candidates: Mask | None, evidence: Sequence[ColumnEvidence]) -> Mask | None:
    """Return the candidates; None, for all files, if they have nearly all rows."""
    if candidates is None or _has_nearly_all_rows(candidates, evidence):
        return None
    return candidates


def _select_keys(spark: SparkSession, stored_keys: pa.Table, keys: _CollectedKeys) -> DataFrame:
    """Return all keys in the forms in which data files may have them."""
    if keys.are_all:
        return create_frame(spark, stored_keys)
    return keys.frame.select(stored_keys.column_names)


def _read_evidence(store: Store, facts: TableFacts, columns: Sequence[Column]) -> list[ColumnEvidence] | None:
    """Read the statistics of the columns in each data file; None if the table has none."""
    manifest = store.read()
    if manifest is None or manifest.table.uuid != facts.uuid:
        return None
    if facts.name_mapping is not None:
        manifest = facts.name_mapping.resolve_manifest(manifest)
    return gather_evidence(store, match_data_files(store, manifest, facts.files), columns)


def _stored_keys(key: Sequence[_KeyColumn], keys: _CollectedKeys) -> tuple[list[int], pa.Table]:
    """Return the numbers of the columns whose statistics are read, and the keys as data files may have them."""
    # In a key of several columns, CHAR is only compared when rows are read.
    columns = [key_column.number for key_column in key if key_column.char_length is None]
    char_length = key[0].char_length
    if len(key) > 1 or char_length is None or not keys.are_all:
        return columns, keys.values.select(columns)
    forms = list_stored_forms(keys.values, char_length)
    if forms.num_rows <= _DRIVER_KEYS:
        columns = [0]
    return columns, forms


def _sample(keys: pa.Table) -> pa.Table:
    """Return evenly spaced keys, so many that the search is short."""
    number = min(keys.num_rows, _SAMPLE_KEYS)
    positions = np.linspace(0, keys.num_rows - 1, number)
    return keys.take(positions.astype(np.int64))


def _has_nearly_all_rows(files: Mask, evidence: Sequence[ColumnEvidence]) -> bool:
    """Return whether these files have nearly all rows of the table."""
    rows = np.maximum(evidence[0].rows, 0)  # an unknown number is -1
    return bool(rows[files].sum() > _NEARLY_ALL * rows.sum())


def _count_bytes(evidence: Sequence[ColumnEvidence]) -> int:
    """Return the bytes of the objects with value lists and filters."""
    total = 0
    for column in evidence:
        objects = {*column.lists.objects, *column.filters.objects}
        total += sum(map(attrgetter("length"), objects))
    return total


def _search_by_tasks(
    spark: SparkSession, keys: DataFrame, task_store: TaskStore, evidence: Sequence[ColumnEvidence]
) -> Mask | None:
    """Find candidates by tasks: each compares all keys with one slice of the files, and returns one bit for each file.

    None means all files: tasks cannot read parts of objects that only the JVM reaches.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual name, not needed to import this module

    if isinstance(task_store, JvmTaskStore):
        return None
    ship_package(spark.sparkContext)
    slices = _slice_files(evidence, spark.sparkContext.defaultParallelism)
    open_object = partial(open_object_part, task_store.uri, access=task_store.access)
    slice_evidence = [[column.take(files) for column in evidence] for files in slices]
    search = partial(search_slices, open_object, slice_evidence)
    slice_numbers = spark.range(len(slices)).withColumnRenamed("id", SLICE)
    key_slices = keys.crossJoin(F.broadcast(slice_numbers)).repartition(len(slices), SLICE)
    results = collect_arrow(key_slices.mapInArrow(search, f"{SLICE} bigint, found binary"))
    return _combine_results(results, slices, len(evidence[0].analyzed))


def _combine_results(results: pa.Table, slices: Sequence[Places], count: int) -> Mask:
    """Combine the bits of all slices: true for each file that may have a key."""
    candidates = np.zeros(count, bool)
    for row in results.to_pylist():
        files = slices[row[SLICE]]
        bits = np.unpackbits(np.frombuffer(row["found"], np.uint8), count=len(files))
        candidates[files] |= bits.astype(bool)
    return candidates


def _slice_files(evidence: Sequence[ColumnEvidence], cores: int) -> list[Places]:
    """Divide the files among tasks; files of one object stay together, so that it is read once."""
    files = len(evidence[0].analyzed)
    slices_of_files = min(cores, math.ceil(files / _TASK_FILES))
    slices_of_bytes = math.ceil(_count_bytes(evidence) / _TASK_BYTES)
    order = np.lexsort((evidence[0].lists.object_index, evidence[0].filters.object_index))
    return np.array_split(order, max(slices_of_bytes, slices_of_files, 1))


def _read_candidates(facts: TableFacts, candidates: Mask | None, key_table: _KeyTable) -> DataFrame:
    """Return the live rows of the candidates, or of all data files if these are None."""
    rows = select_at_snapshot(key_table.spark, facts, key_table.select_list)
    if candidates is None:
        return rows
    paths = [text_literal(facts.files[number].location) for number in np.flatnonzero(candidates)]
    if not paths:
        return rows.where("false")
    location = describe_format(facts.format).location_of(_FILE)
    return rows.where(f"{location} IN ({', '.join(paths)})")


def _join_keys(rows: DataFrame, keys: DataFrame, key_table: _KeyTable) -> DataFrame:
    """Return the rows that have one of the keys; keys may be repeated."""
    conditions = list(map(_compare, key_table.key, keys.schema))
    columns = map(attrgetter("result_sql"), key_table.key)
    # The path is computed after the join: computing it for every row would take longer than the join.
    path = key_table.format.location_of(_FILE)
    return rows.join(keys, conditions, "left_semi").selectExpr(*columns, f"{path} AS {PATH}", POSITION)


def _compare(key_column: _KeyColumn, key: StructField) -> SparkColumn:
    """Compare a value with a key; the null-safe comparison is slower, and used only if keys may be null."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - see above

    value = F.expr(key_column.comparison_sql)
    if key.nullable:
        return value.eqNullSafe(F.col(key.name))
    return value == F.col(key.name)
