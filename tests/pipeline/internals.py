"""Iceberg's Java API in the session's own JVM, for what Spark's SQL does not write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
