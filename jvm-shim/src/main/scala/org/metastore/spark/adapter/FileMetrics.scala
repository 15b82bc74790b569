package org.metastore.spark.adapter

import org.apache.spark.sql.connector.metric.{CustomSumMetric, CustomTaskMetric}

import org.metastore.spark.explain.ScanDecision

/** Live data files of the snapshot. Spark creates it again by its class name, to show its value. */
class FilesBeforeMetric extends CustomSumMetric {
  override def name: String = FileMetrics.Before
  override def description: String = "Metastore: data files before"
}

/** Data files that are left to read. */
class FilesAfterMetric extends CustomSumMetric {
  override def name: String = FileMetrics.After
  override def description: String = "Metastore: data files after"
}

/** Data files of the snapshot that the table format left out. */
class FilesByFormatMetric extends CustomSumMetric {
  override def name: String = FileMetrics.ByFormat
  override def description: String = "Metastore: data files skipped by the table format"
}

private[adapter] final case class FileCount(name: String, value: Long) extends CustomTaskMetric

private[adapter] object FileMetrics {
  val Before = "metastoreFilesBefore"
  val After = "metastoreFilesAfter"
  val ByFormat = "metastoreFilesByFormat"

  /** What was decided, in numbers. */
  def of(decision: ScanDecision): Array[CustomTaskMetric] = decision.outcome match {
    case Right(_) => Array(
        FileCount(Before, decision.total), FileCount(After, decision.after.toLong), FileCount(ByFormat, decision.skippedByFormat))
    case Left(_) => Array.empty
  }

  /** What the table format says of the planning that found `planned`, for the files that are left of it. */
  def remainingFiles(planned: IcebergTasks, left: TaskTotals): Array[CustomTaskMetric] = {
    val counted = Map(
      "resultDataFiles" -> left.files, "totalDataFileSize" -> left.bytes, "resultDeleteFiles" -> left.deletes,
      "totalDeleteFileSize" -> left.deletesBytes)
    planned.report.map { metric =>
      val skipped = if (metric.name == "skippedDataFiles") planned.size.files - left.files else 0L
      FileCount(metric.name, counted.getOrElse(metric.name, metric.value + skipped))
    }.toArray
  }
}
