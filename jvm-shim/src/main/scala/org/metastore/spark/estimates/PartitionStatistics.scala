package org.metastore.spark.estimates

import java.util.Arrays.stream

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.Reason
import org.metastore.spark.statistics.InMemoryStatistics
import org.metastore.spark.statistics.columns.{ColumnSizes, ColumnSummary, FileSetStatistics, FileSummary}
import org.metastore.spark.statistics.objects.Snapshot
import org.metastore.spark.statistics.values.ColumnHistogram

/** Statistics of a scan's files, and the one value that each has of a partition column, analyzed or not. */
private[estimates] final class PartitionStatistics(
    analyzed: FileSetStatistics,
    partitions: Array[Map[String, Literal]],
    counts: Array[Long]) {

  private val told: Map[(String, DataType), Seq[Option[FileSummary]]] =
    partitions.headOption.fold(Set.empty[String])(_.keySet).iterator.map(key =>
      key -> partitions.flatMap(_.get(key))).collect {
      case (key, values) if values.length == partitions.length =>
        (key, values.head.dataType) -> values.indices.map(file =>
          PartitionStatistics.summaryOf(values(file), counts(file)))
    }.toMap

  private lazy val partitioned = new InMemoryStatistics(counts, told)

  /** Whether the values of a column are those of the partitions. */
  def isPartition(key: String, dataType: DataType): Boolean = told.contains((key, dataType))

  def column(key: String, dataType: DataType): Either[Reason, ColumnSummary] =
    of(key, dataType).column(key, dataType)

  def sizes(key: String, dataType: DataType): Either[Reason, ColumnSizes] =
    of(key, dataType).sizes(key, dataType)

  private def of(key: String, dataType: DataType): FileSetStatistics =
    if (isPartition(key, dataType)) partitioned else analyzed

  def among(files: Array[Int]): PartitionStatistics =
    new PartitionStatistics(analyzed.among(files), files.map(partitions(_)), files.map(counts(_)))
}

private object PartitionStatistics {

  /** A column that has one value in all rows of a file. */
  def summaryOf(value: Literal, rows: Long): Option[FileSummary] = value.value match {
    case null => Some(FileSummary(
        rows,
        Some(rows),
        Some(0L),
        None,
        None,
        loExact = false,
        hiExact = false,
        Some(0L),
        None,
        None))
    case nan if ColumnHistogram.isNaN(nan) => None
    case one =>
      val bytes = one match {
        case text: UTF8String => text.numBytes.toLong
        case _ => value.dataType.defaultSize.toLong
      }
      Some(FileSummary(
        rows,
        Some(0L),
        Some(0L),
        Some(one),
        Some(one),
        loExact = true,
        hiExact = true,
        Some(1L),
        Some(bytes.toDouble),
        Some(bytes)))
  }
}

/** Physical rows of a scan's data files: those that are counted, and of the others what their size makes likely. */
final class RowCounts(decision: ScanDecision, table: => Option[Double]) {
  private val (counted, sizes) = (decision.rows, decision.files.sizes)

  private lazy val perByte: Option[Double] = {
    val known = Array.range(0, counted.length).filter(f => counted(f) >= 0 && sizes(f) > 0)
    RowCounts.share(
      stream(known).mapToDouble(counted(_).toDouble).sum,
      stream(known).mapToDouble(sizes(_).toDouble).sum).orElse(table)
  }

  /** 0 where it is not known. */
  def apply(file: Int): Double =
    if (counted(file) >= 0) counted(file).toDouble else perByte.fold(0.0)(_ * math.max(0L, sizes(file)))

  /** Whether they are estimated by the size of the file. */
  def isBySize(file: Int): Boolean = counted(file) < 0 && sizes(file) >= 0 && perByte.isDefined

  def isKnown(file: Int): Boolean = counted(file) >= 0 || isBySize(file)

  def sum(of: Array[Int]): Double = stream(of).mapToDouble(apply(_)).sum

  /** Those of all files of the scan. */
  def sum: Double = sum(Array.range(0, counted.length))

  /** Whole numbers, of each file. */
  def whole: Array[Long] = Array.tabulate(counted.length)(f => math.round(apply(f)))
}

object RowCounts {

  /** Rows of a byte of an analyzed snapshot's data files. */
  def perByte(snapshot: Snapshot): Option[Double] =
    snapshot.physicalRows.flatMap(rows => share(rows.toDouble, snapshot.sizeBytes.toDouble))

  private def share(rows: Double, bytes: Double): Option[Double] =
    if (rows > 0 && bytes > 0) Some(rows / bytes) else None
}
