package org.metastore.spark.adapter

import org.apache.spark.sql.connector.metric.{CustomSumMetric, CustomTaskMetric}

/** Data files that the table format would have read. Spark creates it again by its class name, to show its value. */
class FilesBeforeMetric extends CustomSumMetric {
  override def name: String = FileMetrics.Before
  override def description: String = "Metastore: data files before"
}

/** Data files that are left to read. */
class FilesAfterMetric extends CustomSumMetric {
  override def name: String = FileMetrics.After
  override def description: String = "Metastore: data files after"
}

private[adapter] final case class FileCount(name: String, value: Long) extends CustomTaskMetric

private[adapter] object FileMetrics {
  val Before = "metastoreFilesBefore"
  val After = "metastoreFilesAfter"
}
