"""Distinct counts for other engines: Puffin files of Iceberg tables, beside what Iceberg itself computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import metastore
from metastore.kernel.theta_sketch import ThetaSketch
from metastore.pipeline.published_sketches import SUBJECT
from pipeline.internals import java, loaded
from planner.plans import conf

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_PUFFIN = "spark.metastore.iceberg.puffin"
_THETA = "apache-datasketches-theta-v1"
_COLUMNS = {
    "i": "CAST(id % 700 AS INT)",
    "many": "id * 7919",
    "f": "IF(id % 10 = 0, CAST('NaN' AS FLOAT), CAST(id % 30 AS FLOAT))",
    "d": "CAST(id AS DOUBLE) / 3",
    "b": "id % 2 = 0",
    "s": "IF(id % 5 = 0, NULL, concat('né', id % 900))",
    "wide": "CAST(id % 400 AS DECIMAL(38, 10)) * -1000000000000",
    "narrow": "CAST(id % 300 - 150 AS DECIMAL(9, 2))",
    "day": "date_add(DATE'1969-01-01', CAST(id % 800 AS INT))",
    "at": "timestamp_micros(id * 1000003)",
    "local": "CAST(timestamp_micros(id % 50) AS TIMESTAMP_NTZ)",
    "bytes": "CAST(concat('x', id % 60) AS BINARY)",
    "none": "CAST(NULL AS INT)",
    "inner": "named_struct('a', id % 12, 'b', array(1))",
}


@pytest.fixture(autouse=True)
def _publishing(spark):
    spark.conf.set(_PUFFIN, "true")
    yield
    spark.conf.unset(_PUFFIN)


@pytest.fixture
def folder(warehouse, table):
    return warehouse / table.removeprefix("ice.").replace(".", "/")


def _create(spark, table, rows=9000, columns=_COLUMNS, properties=""):
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    spark.sql(f"CREATE TABLE {table} USING iceberg {properties} AS SELECT {listed} FROM range(0, {rows}, 1, 2)")


def _metadata(folder):
    version = (folder / "metadata/version-hint.text").read_text()
    return json.loads((folder / f"metadata/v{version}.metadata.json").read_text())


def _published(folder):
    """The sketches that the metadata name for the current snapshot, and their counts, by column."""
    metadata = _metadata(folder)
    current = metadata["current-snapshot-id"]
    (sequence,) = (
        snapshot_entry["sequence-number"]
        for snapshot_entry in metadata["snapshots"]
        if snapshot_entry["snapshot-id"] == current
    )
    (schema,) = (
        schema_entry
        for schema_entry in metadata["schemas"]
        if schema_entry["schema-id"] == metadata["current-schema-id"]
    )
    (file,) = (
        statistics_entry for statistics_entry in metadata["statistics"] if statistics_entry["snapshot-id"] == current
    )
    data = Path(file["statistics-path"]).read_bytes()
    assert (len(data), data[:4], data[-4:]) == (file["file-size-in-bytes"], b"PFA1", b"PFA1")
    blobs = json.loads(data[len(data) - file["file-footer-size-in-bytes"] + 4 : -12])["blobs"]
    names, sketches = dict(_names(schema["fields"])), {}
    for blob, blob_metadata in zip(blobs, file["blob-metadata"], strict=True):
        assert (blob["type"], blob["snapshot-id"], blob["sequence-number"]) == (_THETA, current, sequence)
        assert [blob_metadata[field] for field in ("type", "fields", "properties")] == [
            _THETA,
            blob["fields"],
            blob["properties"],
        ]
        sketch = ThetaSketch.from_bytes(_payload(data[blob["offset"] :][: blob["length"]], blob))
        assert int(sketch.estimate) == int(blob["properties"]["ndv"])
        sketches[names[blob["fields"][0]]] = sketch, int(blob["properties"]["ndv"])
    return sketches


def _payload(data, blob):
    codec = blob.get("compression-codec")
    return data if codec is None else pa.input_stream(pa.BufferReader(data), compression=codec).read()


def _names(fields, above=""):
    for field in fields:
        yield field["id"], above + field["name"]
        if isinstance(field["type"], dict):
            yield from _names(field["type"].get("fields", ()), f"{above}{field['name']}.")


def _compute_with_iceberg(spark, table, columns):
    listed = ", ".join(f"'{name}'" for name in columns)
    spark.sql(f"CALL ice.system.compute_table_stats(table => '{table}', columns => array({listed}))")


def test_counts_and_hashes_are_those_that_iceberg_computes(spark, table, folder):
    _create(spark, table)
    assert metastore.analyze(spark, table, progress=False).refused[1:] == ()
    ours = _published(folder)
    assert ours.keys() == (_COLUMNS.keys() | {"inner.a"}) - {"inner"}
    _compute_with_iceberg(spark, table, ours)
    theirs = _published(folder)
    assert theirs.keys() == ours.keys()
    for name, (sketch, count) in ours.items():
        other, counted = theirs[name]
        limit = np.uint64(min(sketch.threshold, other.threshold))
        np.testing.assert_array_equal(sketch.hashes[sketch.hashes < limit], other.hashes[other.hashes < limit], name)
        assert count == counted if sketch.is_exact else abs(count - counted) < 0.05 * counted
    assert {name for name, (sketch, _) in ours.items() if not sketch.is_exact} == {"many", "d", "at"}


def test_pyiceberg_reads_them(spark, table, folder):
    catalogs, puffin = (pytest.importorskip(f"pyiceberg.table{name}") for name in ("", ".puffin"))
    datasketches = pytest.importorskip("datasketches")
    _create(spark, table)
    metastore.analyze(spark, table, progress=False)
    expected = {name: count for name, (_, count) in _published(folder).items()}
    opened = catalogs.StaticTable.from_metadata(str(folder))
    (file,) = opened.metadata.statistics
    name_of = opened.schema().find_column_name
    assert {name_of(*blob.fields): int(blob.properties["ndv"]) for blob in file.blob_metadata} == expected
    read = puffin.PuffinFile(Path(file.statistics_path).read_bytes())
    sketches = {name_of(*blob.fields): read.get_blob_payload(blob) for blob in read.footer.blobs}
    theta = datasketches.compact_theta_sketch
    assert {name: int(theta.deserialize(data).get_estimate()) for name, data in sketches.items()} == expected


def test_nothing_is_published_twice(spark, table, folder):
    _create(spark, table, 10)
    metastore.analyze(spark, table, progress=False)
    first = _metadata(folder)
    assert not metastore.analyze(spark, table, progress=False).committed
    assert _metadata(folder) == first


def test_what_was_analyzed_before_is_published_when_it_is_wanted(spark, table, folder):
    _create(spark, table, 10)
    spark.conf.set(_PUFFIN, "false")
    metastore.analyze(spark, table, progress=False)
    assert _metadata(folder).get("statistics", []) == []
    spark.conf.set(_PUFFIN, "true")
    assert not metastore.analyze(spark, table, progress=False).committed
    assert _published(folder)["i"][1] == 10


def test_columns_that_were_analyzed_without_a_sketch_are_told(spark, table, folder):
    _create(spark, table, columns={"few": "id % 3", "many": "id", "inner": "named_struct('a', id)"})
    spark.conf.set(_PUFFIN, "false")
    metastore.analyze(spark, table, progress=False)
    spark.conf.set(_PUFFIN, "true")
    (refusal,) = metastore.analyze(spark, table, progress=False).refused
    assert refusal.reason.startswith("of many, inner.a data files that were analyzed without")
    assert {name: count for name, (_, count) in _published(folder).items()} == {"few": 3}
    spark.sql(refusal.reason.removesuffix(" reads them again").split(": ", 1)[1])
    assert metastore.analyze(spark, table, progress=False).refused == ()
    assert _published(folder).keys() == {"few", "many", "inner.a"}


def test_each_snapshot_has_its_own(spark, table, folder):
    _create(spark, table, 10, {"i": "id"})
    metastore.analyze(spark, table, progress=False)
    spark.sql(f"INSERT INTO {table} SELECT * FROM {table}")
    spark.sql(f"INSERT INTO {table} VALUES (-1)")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
    assert _published(folder)["i"][1] == 11
    assert len(_metadata(folder)["statistics"]) == 2


def test_what_others_published_of_other_columns_stays(spark, table, folder):
    _create(spark, table, 10)
    _compute_with_iceberg(spark, table, ["i", "s", "day"])
    before = _published(folder)
    spark.sql(f"ALTER TABLE {table} DROP COLUMN day")
    metastore.analyze(spark, table, columns=["b"], progress=False)
    after = _published(folder)
    assert {name: count for name, (_, count) in after.items()} == {"i": 10, "s": 8, "b": 2}
    np.testing.assert_array_equal(after["s"][0].hashes, before["s"][0].hashes)


def test_a_partition_is_not_the_table(spark, table, folder):
    _create(spark, table, 10, {"i": "id", "p": "id % 2"}, "PARTITIONED BY (p)")
    report = metastore.analyze(spark, table, partition={"p": 0}, progress=False)
    assert [refusal.reason for refusal in report.refused if refusal.subject == SUBJECT] == [
        f"no column is analyzed in every data file: ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS"
    ]
    assert _metadata(folder).get("statistics", []) == []
    metastore.analyze(spark, table, progress=False)
    assert {name: count for name, (_, count) in _published(folder).items()} == {"i": 10, "p": 2}


def test_deleted_rows_are_not_counted(spark, table, folder):
    _create(spark, table, 10, {"i": "id"}, "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    spark.sql(f"DELETE FROM {table} WHERE i = 3")
    report = metastore.analyze(spark, table, progress=False)
    assert [refusal.subject for refusal in report.refused] == [SUBJECT]
    assert _metadata(folder).get("statistics", []) == []
    spark.sql(f"CALL ice.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
    metastore.analyze(spark, table, progress=False)
    assert _published(folder)["i"][1] == 9


def test_uuids_are_left_to_who_knows_their_bytes(spark, table, folder):
    _create(spark, table, 0, {"i": "id"})
    update = loaded(spark, table).updateSchema()
    update.addColumn("u", java(spark).org.apache.iceberg.types.Types.UUIDType.get()).commit()
    spark.sql(f"REFRESH TABLE {table}")
    spark.sql(f"INSERT INTO {table} SELECT id, uuid() FROM range(10)")
    metastore.analyze(spark, table, progress=False)
    assert metastore.summary(spark, table)[1]["approx_unique"] == 10
    assert _published(folder).keys() == {"i"}


def test_spark_alone_reads_them_through_iceberg(spark, table):
    _create(spark, table, 100, {"i": "id % 7"})
    metastore.analyze(spark, table, progress=False)
    reads = {"spark__sql__cbo__enabled": True, "spark__sql__iceberg__report-column-stats": True}
    with conf(spark, spark__metastore__enabled=False, **reads):
        statistics = spark.table(table)._jdf.queryExecution().optimizedPlan().stats().attributeStats()
        assert statistics.apply(statistics.keys().head()).distinctCount().get() == 7


def test_a_failure_fails_no_analyze(spark, table, folder):
    _create(spark, table, 10, {"i": "id", "s": "id"})
    _compute_with_iceberg(spark, table, ["s"])
    (file,) = _metadata(folder)["statistics"]
    Path(file["statistics-path"]).unlink()
    report = metastore.analyze(spark, table, columns=["i"], progress=False)
    (refusal,) = report.refused
    assert (refusal.subject, report.committed) == (SUBJECT, True)
    assert refusal.reason.startswith("they could not be published: ")
    assert "\n" not in refusal.reason
