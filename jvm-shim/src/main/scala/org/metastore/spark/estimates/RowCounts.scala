package org.metastore.spark.estimates

import java.util.Arrays.stream

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.objects.Snapshot

/** The physical rows of a scan's data files: counted, or else estimated by the size of the file. */
final class RowCounts(decision: ScanDecision, table: => Option[Double]) {
  private val (counted, sizes) = (decision.rows, decision.files.sizes)

  private lazy val perByte: Option[Double] = {
    val files = Array.range(0, counted.length).filter(file => counted(file) >= 0 && sizes(file) > 0)
    val rows = stream(files).mapToDouble(counted(_).toDouble).sum
    val bytes = stream(files).mapToDouble(sizes(_).toDouble).sum
    RowCounts.share(rows, bytes).orElse(table)
  }

  /** The rows of a file; 0 if they are unknown. */
  def apply(file: Int): Double =
    if (counted(file) >= 0) counted(file).toDouble
    else perByte.fold(0.0)(_ * math.max(0L, sizes(file)))

  /** Whether the rows of a file are estimated by its size. */
  def isBySize(file: Int): Boolean = counted(file) < 0 && sizes(file) >= 0 && perByte.isDefined

  def isKnown(file: Int): Boolean = counted(file) >= 0 || isBySize(file)

  def sum(files: Array[Int]): Double = stream(files).mapToDouble(apply(_)).sum

  /** The rows of all files of the scan. */
  def sum: Double = sum(Array.range(0, counted.length))

  /** The rows of each file as whole numbers. */
  def whole: Array[Long] = Array.tabulate(counted.length)(f => math.round(apply(f)))
}

object RowCounts {

  /** Rows per byte of an analyzed snapshot's data files. */
  def perByte(snapshot: Snapshot): Option[Double] =
    snapshot.physicalRows.flatMap(rows => share(rows.toDouble, snapshot.sizeBytes.toDouble))

  private def share(rows: Double, bytes: Double): Option[Double] =
    Optional.when(rows > 0 && bytes > 0)(rows / bytes)
}
