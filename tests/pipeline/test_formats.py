"""Files that Python does not open itself: Spark reads them, the numbers are the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import metastore
from metastore.adapters.loading import load_facts
from metastore.adapters.spark_rows import read_rows_by_spark
from pipeline.checks import Stored, check_table
from pipeline.internals import java, loaded
from planner.plans import metrics, scans

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["orc", "avro"])
def test_other_file_formats(spark, table, kind):
    spark.sql(
        f"CREATE TABLE {table} (id INT, s STRING, st STRUCT<a: DOUBLE, l: ARRAY<INT>>, t TIMESTAMP, p INT) "
        f"USING iceberg PARTITIONED BY (p) TBLPROPERTIES ('write.format.default' = '{kind}', "
        "'write.delete.mode' = 'merge-on-read', 'format-version' = '2')"
    )
    rows = (
        "CAST(id AS INT), IF(id % 3 = 0, NULL, concat('s', id)), "
        "IF(id % 5 = 0, NULL, named_struct('a', IF(id = 7, CAST('NaN' AS DOUBLE), id / 8), 'l', array(1))), "
        "TIMESTAMP'2024-01-01' + make_interval(0, 0, 0, CAST(id AS INT)), CAST(id % 3 AS INT)"
    )
    spark.sql(f"INSERT INTO {table} SELECT {rows} FROM range(60)")
    spark.sql(f"DELETE FROM {table} WHERE id < 10")
    report = metastore.analyze(spark, table, depth="footer", progress=False)
    assert {refusal.reason for refusal in report.refused if kind in refusal.subject} == {"it is not a Parquet file"}
    assert metastore.analyze(spark, table, depth="footer", progress=False).committed is False
    report = metastore.analyze(spark, table, progress=False)
    assert report.files_read == report.files_total == report.files
    check_table(spark, table)
    old = paths(spark, table)
    spark.sql(f"INSERT INTO {table} SELECT {rows} FROM range(60, 70)")
    new = paths(spark, table) - old
    assert read_by_spark(spark, table, new) == len(new) == 3
    assert metastore.analyze(spark, table, progress=False).files_read == 3
    check_table(spark, table)
    assert metastore.analyze(spark, table, progress=False).committed is False


def paths(spark, table):
    return {row[0] for row in spark.sql(f"SELECT file_path FROM {table}.data_files").collect()}


def read_by_spark(spark, table, kinds):
    """How many files Spark opens to read the rows of some."""
    facts = load_facts(spark, table)
    rows = read_rows_by_spark(spark, facts, facts.columns, [file for file in facts.files if file.path in kinds])
    assert {row[0] for row in rows.select("_file").collect()} == kinds
    rows.collect()
    (scan,) = scans(rows)
    return metrics(scan)["numSplits"]


@pytest.mark.parametrize("plaintext_footer", [True, False])
def test_encrypted_files_without_a_key_are_refused_in_one_line(spark, table, tmp_path, plaintext_footer):
    spark.sql(f"CREATE TABLE {table} (id BIGINT, s STRING) USING iceberg")
    for start in (0, 10):
        spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 's' || id FROM range({start}, {start} + 10)")
    path = Path(min(paths(spark, table)))
    encrypt(path, plaintext_footer=plaintext_footer)
    report = metastore.analyze(spark, table, progress=False)
    ((subject, reason),) = [(refusal.subject, refusal.reason) for refusal in report.refused]
    assert path.name in subject
    assert "crypt" in reason.lower()
    assert len(reason.splitlines()) == 1
    assert report.files_read == 1


def encrypt(path, *, plaintext_footer):
    """Replaces a file of two columns by its encrypted self."""

    class Keys(pe.KmsClient):
        def __init__(self, _):
            super().__init__()

        def wrap_key(self, key, _):
            return key.hex()

        def unwrap_key(self, wrapped, _):
            return bytes.fromhex(wrapped)

    config = pe.EncryptionConfiguration("f", column_keys={"c": ["id", "s"]}, plaintext_footer=plaintext_footer)
    properties = pe.CryptoFactory(Keys).file_encryption_properties(pe.KmsConnectionConfig(), config)
    pq.write_table(pq.read_table(path), path, encryption_properties=properties)


@pytest.mark.slow
def test_imported_files_without_field_ids(spark, table, tmp_path):
    pq.write_table(pa.table({"id": [3, 1, None], "old": ["x", "y", "y"]}), tmp_path / "a.parquet")
    spark.sql(f"CREATE TABLE {table} (id BIGINT, old STRING, missing INT) USING iceberg")
    spark.sql(f"CALL ice.system.add_files(table => '{table}', source_table => '`parquet`.`{tmp_path}`')")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN old TO new")
    report = metastore.analyze(spark, table, progress=False)
    assert (report.files_read, report.refused) == (1, ())
    stored = Stored.of(spark, table)
    (columns,) = stored.files().values()
    assert (columns["id"]["lo"], columns["id"]["hi"], columns["id"]["nulls"]) == (1, 3, 1)
    assert (columns["new"]["lo"], columns["new"]["hi"], columns["new"]["distinct"]) == ("x", "y", 2)
    # A name mapping may change what an absent column means: nothing is said about it.
    assert columns["missing"]["rows"] == 3
    assert columns["missing"]["nulls"] is None
    assert metastore.analyze(spark, table, progress=False).files_read == 0


def test_every_type(spark, table):
    types = {
        "b": "BOOLEAN",
        "i": "INT",
        "l": "BIGINT",
        "f": "FLOAT",
        "d": "DOUBLE",
        "d9": "DECIMAL(9, 2)",
        "d18": "DECIMAL(18, 0)",
        "d38": "DECIMAL(38, 10)",
        "day": "DATE",
        "t": "TIMESTAMP",
        "n": "TIMESTAMP_NTZ",
        "s": "STRING",
        "x": "BINARY",
        "a": "ARRAY<STRUCT<q: INT>>",
        "m": "MAP<STRING, INT>",
        "v": "VARIANT",
        "st": "STRUCT<in: STRUCT<z: DECIMAL(20, 3), w: ARRAY<INT>>>",
    }
    columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
    spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    rows = [
        (
            "true, -2147483648, -9223372036854775808, CAST('-Infinity' AS FLOAT), -0.0D, -9999999.99, "
            "-999999999999999999, -9999999999999999999999999999.0123456789, DATE'0001-01-01', "
            "TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', repeat('ž', 70), "
            "unhex(repeat('FF', 80)), array(named_struct('q', 1)), map('k', 1), parse_json('1'), "
            "named_struct('in', named_struct('z', 1.5, 'w', NULL))"
        ),
        (
            "false, 2147483647, 9223372036854775807, CAST('NaN' AS FLOAT), 0.0D, 9999999.99, "
            "999999999999999999, 9999999999999999999999999999.0123456789, DATE'9999-12-31', "
            "TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP_NTZ'0001-01-01 00:00:00', '', "
            "X'', array(), map(), parse_json('{}'), named_struct('in', NULL)"
        ),
        ", ".join(["NULL"] * len(types)),
    ]
    spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES ({'), ('.join(rows)})")
    report = metastore.analyze(spark, table, progress=False)
    assert {refusal.subject for refusal in report.refused} == {"a", "m", "v", "st.in.w"}
    check_table(spark, table)


def test_uuids_and_fixed_bytes_as_spark_shows_them(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg")
    types = java(spark).org.apache.iceberg.types.Types
    change = loaded(spark, table).updateSchema()
    change.addColumn("u", types.UUIDType.get()).addColumn("f", types.FixedType.ofLength(4)).commit()
    spark.sql(f"REFRESH TABLE {table}")
    values = ", ".join(f"({n}, '{n:08x}-0000-4000-8000-00000000abcd', X'0000000{n}')" for n in (3, 1, 2))
    spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}, (4, NULL, NULL)")
    assert metastore.analyze(spark, table, progress=False).refused == ()
    check_table(spark, table)


def test_paths_are_kept_byte_for_byte(spark, table):
    spark.sql(f"CREATE TABLE {table} (id INT, p STRING) USING iceberg PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a b'), (2, 'č%20/x=y'), (3, '[a]*?')")
    metastore.analyze(spark, table, progress=False)
    stored = check_table(spark, table)
    assert all(Path(path).exists() for path in stored.files())
