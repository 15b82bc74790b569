package org.metastore.spark.tables

/** Names and members of Iceberg's classes that several files use. */
private[spark] object IcebergMembers {

  /** The scan of a query that reads data, as Iceberg builds it. */
  val QueryScanClass: String = "org.apache.iceberg.spark.source.SparkBatchQueryScan"

  /** The path of a data file or a delete file. */
  def pathOf(file: AnyRef): String = Reflection.value[CharSequence](file, "location", "path").toString

  /** Whether a delete file is a deletion vector. Releases without the member know none. */
  def isVector(delete: AnyRef): Boolean =
    Reflection.has(delete, "contentOffset") && Reflection.call[AnyRef](delete, "contentOffset") != null
}
