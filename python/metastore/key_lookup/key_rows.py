"""Where the rows of many keys are: candidate files by statistics, then the rows themselves by Spark."""

from __future__ import annotations

from functools import partial
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
from metastore.spark_jobs.task_store import HadoopTaskStore, TaskStore
from metastore.store.arrow_blobs import open_object_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType

    from metastore.adapters.table_facts import TableFacts
    from metastore.format.table_column import Column
    from metastore.reading.lookup_keys import Mask

    Lengths = Sequence[int | None]
    """For each of the key's columns the length of CHAR, to which values are padded; None of others."""


PATH, POSITION = "path", "position"
_FILE = "file"
_FEW_KEYS, _FEW_NUMBERS, _FEW_BYTES = 10_000, 250_000, 256 << 20
_SLICE_BYTES, _SLICE_FILES = 64 << 20, 16
_SAMPLE_KEYS, _NEARLY_ALL = 1_000, 0.9
_QUICK_BYTES = 250 << 20
"""What a core reads in the time that it takes to find out about files, or in little more."""


def locate_rows(spark: SparkSession, table: str, columns: Sequence[str], keys: DataFrame, *, pruned: bool) -> DataFrame:
    """Find the rows of a table that have one of some keys."""
    entry = look_up_table(spark, table)
    table_format = describe_format(entry.provider)
    if entry.is_path and not table_format.has_sql_paths:
        hint = f"Give it a name: CREATE TABLE t USING {table_format.name} LOCATION '...'."
        raise UnsupportedTable(table, f"SQL reads no {table_format.title} table by its path", hint=hint)
    schema = spark.table(entry.identifier).schema
    key = [_key_column(read_spark_columns(schema), name, entry.name) for name in columns]
    lengths = [find_char_length(schema, column) for column in key]
    asked = _asked(keys, columns, key, lengths)
    rest = _file_and_position(spark, entry)
    if pruned and _are_many(keys):
        rows = _rows(spark, entry, _chosen(key, rest))
        if _are_quickly_read(rows):
            return _joined(table_format, rows, key, lengths, asked)
    some, is_all = _some(asked, key)
    if is_all:
        asked = create_frame(spark, some, _told(asked.schema, some))
        most = PLANNED_KEYS if pruned else MOST_KEYS
        where = None if has_char_column(schema, key) else build_condition(some, key, most)
        if where is not None and _is_analyzed(spark, entry):
            return _joined(table_format, _rows(spark, entry, _chosen(key, rest), where), key, lengths, asked)
    facts = load_entry_facts(spark, entry)
    key = [_key_column(facts.columns, name, facts.name) for name in columns]
    may = _candidates(spark, facts, key, lengths, some, None if is_all else asked) if pruned else None
    rows = _live(facts, _chosen(key, rest), may, spark)
    return _joined(table_format, rows, key, lengths, asked)


def _key_column(known: Sequence[Column], name: str, table: str) -> Column:
    column = find_column(known, name, table)
    if column.encoding is None:
        raise InvalidArgument("columns", f"values of {name}, {column.type}, cannot be located")
    return column


def _asked(keys: DataFrame, names: Sequence[str], columns: Sequence[Column], lengths: Lengths) -> DataFrame:
    """The keys as values of the table's columns, those of CHAR padded: `k0`, `k1`, …."""
    frame, chosen = keys, []
    for place, (name, column, length) in enumerate(zip(names, columns, lengths, strict=True)):
        field = _field(keys, name, column)
        value, exact = convert_key(quote_name([field]), keys.schema[field].dataType.simpleString(), column)
        frame = frame if exact == "true" else frame.where(exact)
        whole = value if length is None else pad_char(f"rtrim({value})", length)
        chosen.append(f"{whole} AS k{place}")
    return frame.selectExpr(*chosen)


def _field(keys: DataFrame, name: str, column: Column) -> str:
    wanted = {name.lower(), column.name.lower(), column.path[-1].lower() if len(column.path) == 1 else ""}
    found = [field for field in keys.columns if field.lower() in wanted]
    if len(found) != 1:
        many = "several columns" if found else "no column"
        raise InvalidArgument("keys", f"it has {many} {name}", f"Its columns: {', '.join(keys.columns)}.")
    return found[0]


def _some(asked: DataFrame, key: Sequence[Column]) -> tuple[pa.Table, bool]:
    """Distinct keys, and whether that is all of them: no more of many than are looked for in the driver."""
    doubles = any(column.encoding == "double" for column in key)  # Spark knows which of them are equal
    most = _FEW_NUMBERS if all(column.encoding == "long" for column in key) else _FEW_KEYS
    some = collect_arrow((asked.distinct() if doubles else asked).limit(most + 1))
    distinct = some if doubles else some.group_by(some.column_names).aggregate([])
    return distinct, some.num_rows <= most


def _told(schema: StructType, keys: pa.Table) -> StructType:
    """The schema of some keys with what is known of their nulls."""
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - not needed to import this module

    return StructType([StructField(field.name, field.dataType, keys[field.name].null_count > 0) for field in schema])


def _is_analyzed(spark: SparkSession, entry: CatalogEntry) -> bool:
    """Whether the planner has statistics of a table; false also where it is not ours."""
    try:
        known = session.call_function(spark, "snapshots", entry.identifier, {}, Answer)
    except JarNotFound:
        return False
    return bool(known)


def _are_many(keys: DataFrame) -> bool:
    """Whether these are known to be more than a few, without looking at them."""
    _, number = jvm_session.estimate_size(keys.select("*"))  # its own plan might be cached later
    return number is not None and number > PLANNED_KEYS


def _are_quickly_read(rows: DataFrame) -> bool:
    """Whether all rows are read as soon as statistics have said which of them need not be."""
    size, _ = jvm_session.estimate_size(rows)
    return size < _QUICK_BYTES * rows.sparkSession.sparkContext.defaultParallelism


def _rows(spark: SparkSession, entry: CatalogEntry, chosen: Sequence[str], where: str = "true") -> DataFrame:
    """The live rows at the newest snapshot; by what a condition says planning leaves files out."""
    if describe_format(entry.provider).is_cached:
        spark.sql(f"REFRESH TABLE {entry.identifier}")
    return spark.sql(f"SELECT {', '.join(chosen)} FROM {entry.identifier} WHERE {where}")


def _chosen(key: Sequence[Column], rest: Sequence[str]) -> list[str]:
    return [*(f"{quote_name(column.path)} AS c{place}" for place, column in enumerate(key)), *rest]


def _file_and_position(spark: SparkSession, entry: CatalogEntry) -> list[str]:
    """Where a row is; its position is null where the table hides it."""
    table_format = describe_format(entry.provider)
    position = "CAST(NULL AS BIGINT)" if _hides_positions(spark, entry, table_format) else table_format.position_sql
    return [f"{table_format.file_sql} AS {_FILE}", f"{position} AS {POSITION}"]


def _hides_positions(spark: SparkSession, entry: CatalogEntry, table_format: TableFormat) -> bool:
    """Whether a table shows no row's position, by looking where some of its format do not."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - not needed to import this module

    if not table_format.may_hide_positions:
        return table_format.position_sql is None
    try:
        return not spark.table(entry.identifier).selectExpr(str(table_format.position_sql)).columns
    except AnalysisException:
        return True


def _candidates(
    spark: SparkSession,
    facts: TableFacts,
    key: Sequence[Column],
    lengths: Lengths,
    some: pa.Table,
    asked: DataFrame | None,
) -> Mask | None:
    """Which data files may hold one of the keys: of `some`, or, if there are more, of those that are asked for.

    None where there are no statistics, or where they leave out too few to gain by it.
    """
    store, place = open_table_store(spark, facts.identity, writable=False)
    manifest = store.read()
    if manifest is None or manifest.table.uuid != facts.uuid:
        return None
    if facts.name_mapping is not None:
        manifest = facts.name_mapping.resolve_manifest(manifest)
    told, some = _as_stored(lengths, some, is_all=asked is None)
    if not told:
        return None
    key = [key[place] for place in told]
    asked = None if asked is None else asked.select(some.column_names)
    known = gather_evidence(store, match_data_files(store, manifest, facts.files), key)
    search, keys = CandidateSearch(known, store.open_part), KeyBatch.from_table(some, key)
    is_near = _bytes(known) <= _FEW_BYTES
    search.add_crowded_files(keys)
    if is_near and not _are_nearly_all(search.found, known):
        search.add(KeyBatch.from_table(_sample(some), key))
    if _are_nearly_all(search.found, known):
        return None
    if asked is None and is_near:
        search.add(keys)
        found = search.found
    elif isinstance(place, HadoopTaskStore):  # tasks cannot read parts of objects there
        return None
    else:
        found = _by_tasks(spark, create_frame(spark, some) if asked is None else asked, place, known)
    return None if _are_nearly_all(found, known) else found


def _as_stored(lengths: Lengths, keys: pa.Table, *, is_all: bool) -> tuple[list[int], pa.Table]:
    """The columns of keys that statistics tell of, and their values as data files may hold them; none of too many."""
    if is_all and len(lengths) == 1 and lengths[0] is not None:
        forms = list_stored_forms(keys, lengths[0])
        return ([0] if forms.num_rows <= _FEW_KEYS else []), forms
    told = [place for place, length in enumerate(lengths) if length is None]  # CHAR is compared where rows are read
    return told, keys.select(told)


def _sample(keys: pa.Table) -> pa.Table:
    """A few of them, at even distances."""
    number = min(keys.num_rows, _SAMPLE_KEYS)
    return keys.take(np.linspace(0, keys.num_rows - 1, number).astype(np.int64)) if number else keys


def _are_nearly_all(found: Mask, known: Sequence[ColumnEvidence]) -> bool:
    """Whether these files have nearly all rows: then the others are read sooner than left out."""
    rows = np.maximum(known[0].rows, 0)  # nothing can be gained by files of which none is known
    return bool(rows[found].sum() > _NEARLY_ALL * rows.sum())


def _bytes(known: Sequence[ColumnEvidence]) -> int:
    return sum(ref.length for one in known for ref in {*one.lists.objects, *one.filters.objects})


def _by_tasks(spark: SparkSession, keys: DataFrame, place: TaskStore, known: Sequence[ColumnEvidence]) -> Mask:
    """Every slice of the files meets all keys in one task, and gives one bit a file."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the usual name, not needed to import this module

    ship_package(spark.sparkContext)
    files = len(known[0].known)
    parallel = min(spark.sparkContext.defaultParallelism, -(-files // _SLICE_FILES))
    count = max(-(-_bytes(known) // _SLICE_BYTES), parallel, 1)
    # Files of one object stay together: no task reads an object for another's files.
    order = np.lexsort((known[0].lists.which, known[0].filters.which))
    slices = np.array_split(order, count)
    open_object = partial(open_object_part, place.uri, access=place.access)
    work = partial(search_slices, open_object, [[one.take(part) for one in known] for part in slices])
    numbered = keys.crossJoin(F.broadcast(spark.range(count).withColumnRenamed("id", SLICE)))
    found = collect_arrow(numbered.repartition(count, SLICE).mapInArrow(work, f"{SLICE} bigint, found binary"))
    may = np.zeros(files, bool)
    for number, bits in zip(found[SLICE].to_pylist(), found["found"].to_pylist(), strict=True):
        part = slices[number]
        may[part] |= np.unpackbits(np.frombuffer(bits, np.uint8), count=len(part)).astype(bool)
    return may


def _live(facts: TableFacts, chosen: Sequence[str], may: Mask | None, spark: SparkSession) -> DataFrame:
    """The live rows of some data files, of all if None."""
    rows = select_at_snapshot(spark, facts, chosen)
    if may is None:
        return rows
    paths = ", ".join(text_literal(facts.files[place].location) for place in np.flatnonzero(may))
    return rows.where(f"{describe_format(facts.format).location_of(_FILE)} IN ({paths})" if paths else "false")


def _joined(
    table_format: TableFormat, rows: DataFrame, key: Sequence[Column], lengths: Lengths, asked: DataFrame
) -> DataFrame:
    """Those of the rows that have one of the keys, which may come twice."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - see above

    values = [f"c{place}" if length is None else pad_char(f"c{place}", length) for place, length in enumerate(lengths)]
    same = [_same(F.expr(value), F.col(field.name), field) for value, field in zip(values, asked.schema, strict=True)]
    names = [f"c{place} AS {quote_name([column.name])}" for place, column in enumerate(key)]
    path = table_format.location_of(_FILE)  # of the rows found alone: it takes longer than to look for them
    return rows.join(asked, same, "left_semi").selectExpr(*names, f"{path} AS {PATH}", POSITION)


def _same(value: SparkColumn, key: SparkColumn, field: StructField) -> SparkColumn:
    return value.eqNullSafe(key) if field.nullable else value == key  # with nulls it takes longer
