"""Data files without field ids: what their columns mean depends on the table's name mapping, which may change."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

import metastore
from nightly import others_nightly
from planner.plans import check, conf

pytestmark = pytest.mark.spark

MAPPING = "schema.name-mapping.default"
COLUMNS = "a INT, b INT, st STRUCT<x: INT, y: INT>"
FILES = [
    {"a": [1, 2], "b": [11, 12], "st": [{"x": 21, "y": 31}, {"x": 22, "y": 32}]},
    {"a": [5, None], "b": [15, None], "st": [{"x": 25, "y": 35}, None]},
]
SCHEMA = pa.schema({
    "a": pa.int32(), "b": pa.int32(), "st": pa.struct({"x": pa.int32(), "y": pa.int32()}),
})  # fmt: skip
AVRO = {"type": "record", "name": "r", "fields": [
    {"name": "a", "type": ["null", "int"]}, {"name": "b", "type": ["null", "int"]},
    {"name": "st", "type": ["null", {"type": "record", "name": "st", "fields": [
        {"name": "x", "type": ["null", "int"]}, {"name": "y", "type": ["null", "int"]},
    ]}]},
]}  # fmt: skip


def field(number: int, *names: str, fields: list | None = None) -> dict:
    return {"field-id": number, "names": list(names), **({"fields": fields} if fields else {})}


def mapped(*fields: dict) -> str:
    return f"SET TBLPROPERTIES ('{MAPPING}' = '{json.dumps(fields)}')"


ST = field(3, "st", fields=[field(4, "x"), field(5, "y")])
# What is done to the table, the columns that it changes, and one that it does not.
CHANGES = {
    "renamed, and another one added": (["RENAME COLUMN a TO c", "ADD COLUMN a INT"], ["a", "c"], "b"),
    "exchanged names": ([mapped(field(1, "b"), field(2, "a"), ST)], ["a", "b"], "st.x"),
    "swapped columns": (
        ["RENAME COLUMN a TO z", "RENAME COLUMN b TO a", "RENAME COLUMN z TO b"], ["a", "b"], "st.x",
    ),
    "a name left out": ([mapped(field(2, "b"), ST)], ["a"], "b"),
    "a nested column renamed, and another one added": (
        ["RENAME COLUMN st.x TO z", "ADD COLUMN st.x INT"], ["st.x", "st.z"], "st.y",
    ),
    "a struct left out": ([mapped(field(1, "a"), field(2, "b"))], ["st.x", "st.y"], "b"),
    "no mapping": ([f"UNSET TBLPROPERTIES ('{MAPPING}')"], ["a", "b", "st.x"], None),
}  # fmt: skip


@pytest.fixture
def file_format():
    return "parquet"


@pytest.fixture
def imported(spark, new_table, tmp_path, file_format):
    """An analyzed table of two data files without field ids and of one with them."""
    table = new_table(COLUMNS)
    for number, rows in enumerate(FILES):
        path = str(tmp_path / f"{number}.{file_format}")
        if file_format == "avro":
            write_avro(spark, rows, path)
        else:
            {"orc": orc, "parquet": parquet}[file_format].write_table(pa.table(rows, SCHEMA), path)
    spark.sql(f"CALL ice.system.add_files(table => '{table}', source_table => '`{file_format}`.`{tmp_path}`')")
    spark.sql(f"INSERT INTO {table} VALUES (101, 111, named_struct('x', 121, 'y', 131))")
    metastore.analyze(spark, table, progress=False)
    return table


def write_avro(spark, rows: dict[str, list], path: str) -> None:
    avro = spark._jvm.org.apache.avro
    schema = avro.Schema.Parser().parse(json.dumps(AVRO))
    nested = schema.getField("st").schema().getTypes().get(1)
    file = avro.file.DataFileWriter(avro.generic.GenericDatumWriter(schema))
    file.create(schema, spark._jvm.java.io.File(path))
    for a, b, st in zip(*rows.values(), strict=True):
        record = avro.generic.GenericData.Record(schema)
        record.put("a", a)
        record.put("b", b)
        if st is not None:
            inner = avro.generic.GenericData.Record(nested)
            for name, value in st.items():
                inner.put(name, value)
            record.put("st", inner)
        file.append(record)
    file.close()


def compare(spark, table: str, columns: list[str]) -> None:
    for column in columns:
        check(spark, f"SELECT * FROM {table} WHERE {column} IS NULL")
        check(spark, f"SELECT * FROM {table} WHERE {column} < 13")
        with conf(spark, spark__metastore__aggregates__enabled="true"):
            check(spark, f"SELECT count(*), count({column}), min({column}), max({column}), sum({column}) FROM {table}")
        check(spark, f"SELECT {column} FROM {table} ORDER BY {column} DESC NULLS LAST LIMIT 1")


def check_located(spark, table: str, column: str) -> None:
    """`metastore.locate` in SQL names every data file that has a value, with the right frequency or none."""
    with conf(spark, spark__metastore__enabled=False):
        rows = spark.sql(f"SELECT _file, {column} AS value FROM {table}").collect()
    for value, answer in locate_all(spark, table, column, {row.value for row in rows}).items():
        holding = Counter(row._file for row in rows if row.value == value)
        assert holding.keys() <= answer.keys(), value
        assert all(frequency in (None, holding[path]) for path, frequency in answer.items()), value


def locate_all(spark, table: str, column: str, values: set) -> dict[int | None, dict[str, int | None]]:
    """Look up several values by `metastore.locate`: the frequency by data file."""
    parts = [
        f"SELECT {'NULL' if value is None else value} AS value, path, frequency"
        f" FROM metastore.locate('{table}', '{column}', {'NULL' if value is None else value})"
        for value in values
    ]
    answers = {value: {} for value in values}
    for row in spark.sql(" UNION ALL ".join(parts)).collect():
        answers[row.value][row.path] = row.frequency
    return answers


def bounds(rows, column: str) -> tuple:
    row = rows.column(column)
    return row["min"], row["max"], row["null_count"]


@pytest.mark.parametrize("change", others_nightly(CHANGES, 2))
def test_a_changed_mapping_makes_columns_unknown_until_the_next_analyze(spark, imported, change):
    statements, changed, kept_files = CHANGES[change]
    before = metastore.summary(spark, imported)
    for statement in statements:
        spark.sql(f"ALTER TABLE {imported} {statement}")
    compare(spark, imported, changed)
    for column in changed:
        check_located(spark, imported, column)
    after = metastore.summary(spark, imported)
    if kept_files is not None:
        assert bounds(after, kept_files) == bounds(before, kept_files)
        check(spark, f"SELECT * FROM {imported} WHERE {kept_files} > 100", files=[1])
    for column in changed:
        assert bounds(after, column) == (None, None, None)

    is_added = any("ADD COLUMN" in statement for statement in statements)
    assert metastore.analyze(spark, imported, progress=False).files_read == (3 if is_added else 2)
    compare(spark, imported, changed)
    truth = metastore.summary(spark, imported)
    with conf(spark, spark__metastore__enabled=False):
        for column in changed:
            row = spark.sql(f"SELECT min({column}), max({column}) FROM {imported}").first()
            # Whether a column that a file lacks is null there, a table with a name mapping does not tell.
            assert bounds(truth, column)[:2] in (tuple(row), (None, None))
    assert metastore.analyze(spark, imported, progress=False).files_read == 0


@pytest.mark.parametrize("keys", [3, 200])
def test_keys_are_found_by_what_columns_mean_now(spark, imported, keys):
    """Few keys become a condition of a query; many are compared with statistics in Python."""
    for statement in CHANGES["exchanged names"][0]:
        spark.sql(f"ALTER TABLE {imported} {statement}")
    values = [11, 101, None, *range(1000, 997 + keys)]
    key_frame = spark.createDataFrame([(value,) for value in values], "a INT")
    with conf(spark, spark__metastore__enabled=False):
        rows = spark.sql(f"SELECT a, _file, _pos FROM {imported} WHERE a IN (11, 101) OR a IS NULL").collect()
    assert len(rows) == 3
    assert Counter(metastore.locate(spark, imported, "a", key_frame).collect()) == Counter(rows)


@pytest.mark.parametrize(
    ("file_format", "change"), [("orc", "exchanged names"), ("avro", "renamed, and another one added")]
)
def test_other_formats(spark, imported, change):
    statements, changed, kept_files = CHANGES[change]
    check(spark, f"SELECT * FROM {imported} WHERE {changed[0]} > 100", files=[1])
    for statement in statements:
        spark.sql(f"ALTER TABLE {imported} {statement}")
    compare(spark, imported, changed)
    check(spark, f"SELECT * FROM {imported} WHERE {kept_files} > 100", files=[1])
    assert metastore.analyze(spark, imported, progress=False).files_read > 0
    compare(spark, imported, changed)


def test_without_spark_too(spark, imported):
    static_table = pytest.importorskip("pyiceberg.table").StaticTable
    for statement in CHANGES["renamed, and another one added"][0]:
        spark.sql(f"ALTER TABLE {imported} {statement}")
    logged = spark.sql(f"SELECT file FROM {imported}.metadata_log_entries ORDER BY timestamp").collect()
    opened = static_table.from_metadata(logged[-1][0].removeprefix("file:"))
    for statistics in (metastore.open(opened), metastore.open(opened.location())):
        summary = statistics.summary()
        assert bounds(summary, "b") == (11, 111, 1)
        assert bounds(summary, "a") == bounds(summary, "c") == (None, None, None)
        assert len(statistics.prune("b > 100")) == 1
        assert len(statistics.prune("c < 4")) == 2
        assert len(statistics.prune("c IS NULL")) == 2
        assert len(statistics.locate("c", 4)) == 2


def test_blocks_of_files_with_and_without_ids_are_merged(spark, imported):
    metastore.compact(spark, imported)
    before = metastore.summary(spark, imported)
    assert bounds(before, "a") == (1, 101, 1)
    check(spark, f"SELECT * FROM {imported} WHERE a > 100", files=[1])
    assert metastore.analyze(spark, imported, progress=False).committed is False
    for statement in CHANGES["renamed, and another one added"][0]:
        spark.sql(f"ALTER TABLE {imported} {statement}")
    compare(spark, imported, ["a", "c"])
    check(spark, f"SELECT * FROM {imported} WHERE b > 100", files=[1])
    assert metastore.analyze(spark, imported, progress=False).files_read == 3
    compare(spark, imported, ["a", "c"])
    assert metastore.analyze(spark, imported, progress=False).committed is False
