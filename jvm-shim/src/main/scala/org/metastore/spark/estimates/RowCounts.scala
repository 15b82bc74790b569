package org.metastore.spark.estimates

import java.util.Arrays.stream

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.objects.Snapshot

/** Physical rows of a scan's data files: counted ones, else estimated by the size of the file. */
final class RowCounts(decision: ScanDecision, table: => Option[Double]) {
  private val (counted, sizes) = (decision.rows, decision.files.sizes)

  private lazy val perByte: Option[Double] = {
    val files = Array.range(0, counted.length).filter(file => counted(file) >= 0 && sizes(file) > 0)
    val rows = stream(files).mapToDouble(counted(_).toDouble).sum
    val bytes = stream(files).mapToDouble(sizes(_).toDouble).sum
    RowCounts.share(rows, bytes).orElse(table)
  }

  /** 0 where it is not known. */
  def apply(file: Int): Double =
    if (counted(file) >= 0) counted(file).toDouble
    else perByte.fold(0.0)(_ * math.max(0L, sizes(file)))

  /** Whether they are estimated by the size of the file. */
  def isBySize(file: Int): Boolean = counted(file) < 0 && sizes(file) >= 0 && perByte.isDefined

  def isKnown(file: Int): Boolean = counted(file) >= 0 || isBySize(file)

  def sum(files: Array[Int]): Double = stream(files).mapToDouble(apply(_)).sum

  /** The rows of all files of the scan. */
  def sum: Double = sum(Array.range(0, counted.length))

  /** Whole numbers, of each file. */
  def whole: Array[Long] = Array.tabulate(counted.length)(f => math.round(apply(f)))
}

object RowCounts {

  /** Rows per byte of an analyzed snapshot's data files. */
  def perByte(snapshot: Snapshot): Option[Double] =
    snapshot.physicalRows.flatMap(rows => share(rows.toDouble, snapshot.sizeBytes.toDouble))

  private def share(rows: Double, bytes: Double): Option[Double] =
    Optional.when(rows > 0 && bytes > 0)(rows / bytes)
}
