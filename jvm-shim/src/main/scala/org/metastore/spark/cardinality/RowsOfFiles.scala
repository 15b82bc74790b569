package org.metastore.spark.cardinality

import java.util.Arrays.stream

import org.metastore.spark.explain.ScanDecision
import org.metastore.spark.store.Snapshot

/**
 * Physical rows of a scan's data files: those that are counted, and of the others what their size makes likely.
 *
 * @param table rows of a byte of the table, for scans without any file whose rows are counted
 */
final class RowCounts(decision: ScanDecision, table: => Option[Double]) {
  private val (counted, sizes) = (decision.rows, decision.files.sizes)

  private lazy val perByte: Option[Double] = {
    val known = Array.range(0, counted.length).filter(f => counted(f) >= 0 && sizes(f) > 0)
    RowCounts.share(stream(known).mapToDouble(counted(_).toDouble).sum, stream(known).mapToDouble(sizes(_).toDouble).sum).orElse(table)
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
  def perByte(snapshot: Snapshot): Option[Double] = snapshot.physicalRows.flatMap(rows => share(rows.toDouble, snapshot.sizeBytes.toDouble))

  private def share(rows: Double, bytes: Double): Option[Double] = if (rows > 0 && bytes > 0) Some(rows / bytes) else None
}
