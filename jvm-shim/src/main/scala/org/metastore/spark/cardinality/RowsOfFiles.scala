package org.metastore.spark.cardinality

import org.metastore.spark.explain.ScanDecision
import org.metastore.spark.store.Snapshot

/**
 * Physical rows of a scan's data files: those that are counted, and of the others what their size makes likely.
 *
 * @param table rows of a byte of the table, for scans without any file whose rows are counted
 */
final class RowsOfFiles(decision: ScanDecision, table: => Option[Double]) {
  private lazy val perByte: Option[Double] = {
    val counted = decision.rows.indices.filter(f => decision.rows(f) >= 0 && decision.files.sizes(f) > 0)
    RowsOfFiles.share(counted.map(decision.rows(_).toDouble).sum, counted.map(decision.files.sizes(_).toDouble).sum).orElse(table)
  }

  /** 0 where it is not known. */
  def apply(file: Int): Double =
    if (decision.rows(file) >= 0) decision.rows(file).toDouble
    else perByte.fold(0.0)(_ * math.max(0L, decision.files.sizes(file)))

  /** Whether they are estimated by the size of the file. */
  def isBySize(file: Int): Boolean = decision.rows(file) < 0 && decision.files.sizes(file) >= 0 && perByte.isDefined

  def isKnown(file: Int): Boolean = decision.rows(file) >= 0 || isBySize(file)

  def sum(of: Array[Int]): Double = of.iterator.map(apply).sum
}

object RowsOfFiles {

  /** Rows of a byte of an analyzed snapshot's data files. */
  def perByte(snapshot: Snapshot): Option[Double] = snapshot.physicalRows.flatMap(rows => share(rows.toDouble, snapshot.sizeBytes.toDouble))

  private def share(rows: Double, bytes: Double): Option[Double] = if (rows > 0 && bytes > 0) Some(rows / bytes) else None
}
