package org.metastore.spark.cardinality

import org.metastore.spark.explain.ScanDecision
import org.metastore.spark.store.Snapshot

/**
 * Physical rows of a scan's data files: those that are counted, and of the others what their size makes likely.
 *
 * @param format what the table format counts, by path: asked where something is not counted yet
 * @param table  rows of a byte of the table, for scans without any file whose rows are counted
 */
final class RowsOfFiles(decision: ScanDecision, format: => Map[String, Long], table: => Option[Double]) {
  private lazy val told: Map[String, Long] = format

  private lazy val perByte: Option[Double] = {
    val known = decision.rows.indices.filter(f => decision.files.sizes(f) > 0).flatMap(f => counted(f).map(f -> _.toDouble))
    RowsOfFiles.share(known.map(_._2).sum, known.map { case (f, _) => decision.files.sizes(f).toDouble }.sum).orElse(table)
  }

  /** 0 where it is not known. */
  def apply(file: Int): Double =
    counted(file).fold(perByte.fold(0.0)(_ * math.max(0L, decision.files.sizes(file))))(_.toDouble)

  /** Whether they are estimated by the size of the file. */
  def isBySize(file: Int): Boolean = counted(file).isEmpty && decision.files.sizes(file) >= 0 && perByte.isDefined

  def isKnown(file: Int): Boolean = counted(file).isDefined || isBySize(file)

  def sum(of: Array[Int]): Double = of.iterator.map(apply).sum

  private def counted(file: Int): Option[Long] =
    if (decision.rows(file) >= 0) Some(decision.rows(file)) else told.get(decision.files.paths(file))
}

object RowsOfFiles {

  /** Rows of a byte of an analyzed snapshot's data files. */
  def perByte(snapshot: Snapshot): Option[Double] = snapshot.physicalRows.flatMap(rows => share(rows.toDouble, snapshot.sizeBytes.toDouble))

  private def share(rows: Double, bytes: Double): Option[Double] = if (rows > 0 && bytes > 0) Some(rows / bytes) else None
}
