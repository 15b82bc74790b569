package org.metastore.spark.scan

import org.apache.spark.sql.connector.metric.{CustomSumMetric, CustomTaskMetric}

import org.metastore.spark.pruning.ScanDecision

/** A number of data files. Spark creates it again by its class name, to show its value. */
private[scan] abstract class FilesMetric(override val name: String, state: String) extends CustomSumMetric {
  override def description: String = s"Metastore: data files $state"
}

/** Live data files of the snapshot. */
class FilesBeforeMetric extends FilesMetric(FileMetrics.Before, "before")

/** Data files that are read. */
class FilesAfterMetric extends FilesMetric(FileMetrics.After, "after")

/** Data files of the snapshot that the table format skips. */
class FilesByFormatMetric extends FilesMetric(FileMetrics.ByFormat, "skipped by the table format")

private[scan] final case class FileCount(name: String, value: Long) extends CustomTaskMetric

private[scan] object FileMetrics {
  val Before = "metastoreFilesBefore"
  val After = "metastoreFilesAfter"
  val ByFormat = "metastoreFilesByFormat"

  /** The numbers of a decision. */
  def fromDecision(decision: ScanDecision): Array[CustomTaskMetric] = decision.outcome match {
    case Right(_) => Array(
        FileCount(Before, decision.total),
        FileCount(After, decision.after.toLong),
        FileCount(ByFormat, decision.skippedByFormat))
    case Left(_) => Array.empty
  }
}
