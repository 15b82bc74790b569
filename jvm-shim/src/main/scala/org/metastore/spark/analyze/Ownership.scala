package org.metastore.spark.analyze

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.connector.catalog.Table

import org.metastore.spark.MetastoreConf
import org.metastore.spark.tables.IcebergTable

/** Whose ANALYZE a table gets: ours for the formats of `spark.metastore.analyze.formats`, Spark's for all others. */
object Ownership {

  def ofMetastore(session: SparkSession, table: Table): Boolean =
    format(table).exists(MetastoreConf.of(session).analyzeFormats.contains)

  private def format(table: Table): Option[String] = if (IcebergTable.is(table)) Some("iceberg") else None
}
