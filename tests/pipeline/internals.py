"""Iceberg's Java API in the session's own JVM, for what Spark's SQL does not write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_POSITION_DELETES = pa.schema([
    pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
    pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
])  # fmt: skip


def java(spark: SparkSession) -> Any:
    return spark._jvm


def loaded(spark: SparkSession, table: str) -> Any:
    session = spark._jsparkSession
    return java(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, table)


def delete_where_equal(spark: SparkSession, table: str, partition: str, ids: list[int]) -> None:
    """Commits an equality delete of the rows of partition `p` whose `id` is one of `ids`."""
    jvm, target = java(spark), loaded(spark, table)
    iceberg = jvm.org.apache.iceberg
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    kind = jvm.java.lang.Class.forName("org.apache.iceberg.data.Record", True, loader)  # noqa: FBT003 - Java's
    schema = target.schema().select(["id"])
    where = iceberg.PartitionData(target.spec().partitionType())
    where.set(0, partition)
    path = f"{target.location()}/data/p={partition}/equality-{jvm.java.util.UUID.randomUUID()}.parquet"
    output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(target.io().newOutputFile(path))
    builder = iceberg.formats.FormatModelRegistry.equalityDeleteWriteBuilder(iceberg.FileFormat.PARQUET, kind, output)
    writer = (
        builder.schema(schema)
        .equalityFieldIds([schema.findField("id").fieldId()])
        .spec(target.spec())
        .partition(where)
        .build()
    )
    for value in ids:
        record = iceberg.data.GenericRecord.create(schema)
        record.set(0, value)
        writer.write(record)
    writer.close()
    target.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    spark.sql(f"REFRESH TABLE {table}")


def delete_positions(spark: SparkSession, table: str, path: Path, positions: list[tuple[str, int]]) -> None:
    """Commits a position delete file of an unpartitioned table as it is given: data files, and positions in them."""
    files, row_positions = zip(*positions, strict=True)
    pq.write_table(pa.table([files, row_positions], schema=_POSITION_DELETES), path)
    iceberg, target = java(spark).org.apache.iceberg, loaded(spark, table)
    written = target.io().newInputFile(path.as_uri())
    metrics = iceberg.parquet.ParquetUtil.fileMetrics(written, iceberg.MetricsConfig.forPositionDelete())
    builder = iceberg.FileMetadata.deleteFileBuilder(target.spec()).ofPositionDeletes()
    deletes = builder.withInputFile(written).withMetrics(metrics).withFormat(iceberg.FileFormat.PARQUET).build()
    target.newRowDelta().addDeletes(deletes).commit()
    spark.sql(f"REFRESH TABLE {table}")
