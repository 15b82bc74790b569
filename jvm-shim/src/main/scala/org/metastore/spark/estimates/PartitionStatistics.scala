package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.InMemoryStatistics
import org.metastore.spark.statistics.columns.{ColumnSizes, ColumnSummary, FileSetStatistics, FileSummary}
import org.metastore.spark.statistics.values.ColumnHistogram

/** Statistics of a scan's files, and of partition columns, which have one value a file, analyzed or not. */
private[estimates] final class PartitionStatistics(
    analyzed: FileSetStatistics,
    partitions: Array[Map[String, Literal]],
    counts: Array[Long]) {

  /** The values of the partition columns in every file, by their key and type. */
  private val columns: Map[(String, DataType), Array[Literal]] = {
    val keys = if (partitions.isEmpty) Set.empty[String] else partitions.head.keySet
    val entries = for {
      key <- keys.toSeq
      values = partitions.flatMap(_.get(key))
      if values.length == partitions.length
    } yield (key, values.head.dataType) -> values
    entries.toMap
  }

  // Lazy: few scans need it, and it is as long as the list of files.
  private lazy val partitioned: FileSetStatistics =
    new InMemoryStatistics(counts, for ((column, values) <- columns) yield column -> summariesOf(values))

  private def summariesOf(values: Array[Literal]): Seq[Option[FileSummary]] =
    values.indices.map(file => PartitionStatistics.fromConstant(values(file), counts(file)))

  /** Whether the values of a column are those of the partitions. */
  def isPartition(key: String, dataType: DataType): Boolean = columns.contains((key, dataType))

  def column(key: String, dataType: DataType): Either[Reason, ColumnSummary] =
    statisticsOf(key, dataType).column(key, dataType)

  def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes] =
    statisticsOf(key, dataType).sizes(key, dataType)

  private def statisticsOf(key: String, dataType: DataType): FileSetStatistics =
    if (isPartition(key, dataType)) partitioned else analyzed

  def among(files: Array[Int]): PartitionStatistics =
    new PartitionStatistics(analyzed.among(files), files.map(partitions(_)), files.map(counts(_)))
}

private object PartitionStatistics {

  /** The summary of a column that has the same value in all rows of a file. */
  def fromConstant(value: Literal, rows: Long): Option[FileSummary] = value.value match {
    case null =>
      Some(FileSummary(
        rows = rows,
        nulls = Some(rows),
        nans = Some(0L),
        lo = None,
        hi = None,
        loExact = false,
        hiExact = false,
        distinct = Some(0L),
        avgLen = None,
        maxLen = None))
    case nan if ColumnHistogram.isNaN(nan) => None
    case constant =>
      val bytes = constant match {
        case text: UTF8String => text.numBytes.toLong
        case _ => value.dataType.defaultSize.toLong
      }
      Some(FileSummary(
        rows = rows,
        nulls = Some(0L),
        nans = Some(0L),
        lo = Some(constant),
        hi = Some(constant),
        loExact = true,
        hiExact = true,
        distinct = Some(1L),
        avgLen = Some(bytes.toDouble),
        maxLen = Some(bytes)))
  }
}
