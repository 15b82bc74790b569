package org.metastore.spark.pruning

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary}

/**
 * The spread of a column's values over the data files with known bounds.
 *
 * @param overlapDepth the average number of files, itself included, whose bounds share a value with a file's
 * @param sortedShare  the share of the files whose bounds overlap no other file's in more than an end
 */
final case class ColumnLayout(overlapDepth: Double, sortedShare: Double)

object ColumnLayout {

  /** The layout of a column; None if no file has bounds. */
  def fromSummary(summary: ColumnSummary): Option[ColumnLayout] = {
    val bounded = filesWithBounds(summary)
    Optional.when(bounded.nonEmpty)(measure(summary.bounds, bounded))
  }

  /** At most this many files with exact bounds, evenly chosen in the order of their bounds. */
  def sample(summary: ColumnSummary, most: Int): Seq[Int] = {
    val bounds = summary.bounds
    val byLo = sortedByLo(bounds, filesWithBounds(summary).filter(bounds.areExact))
    val number = math.min(most, byLo.length)
    (0 until number).map(i => byLo(((2L * i + 1) * byLo.length / (2 * number)).toInt))
  }

  private def filesWithBounds(summary: ColumnSummary): Array[Int] =
    Array.range(0, summary.length).filter(summary.bounds.hasBoth)

  private def sortedByLo(bounds: Bounds, files: Array[Int]): Array[Int] = files.sortWith { (a, b) =>
    val order = bounds.los.compare(a, bounds.los, b)
    order < 0 || order == 0 && bounds.his.compare(a, bounds.his, b) < 0
  }

  private def measure(bounds: Bounds, files: Array[Int]): ColumnLayout = {
    val byLo = sortedByLo(bounds, files)
    val byHi = files.sortWith((a, b) => bounds.his.compare(a, bounds.his, b) < 0)
    ColumnLayout(
      countOverlaps(bounds, byLo, byHi).toDouble / files.length,
      countFilesApart(bounds, byLo).toDouble / files.length)
  }

  /**
   * The sum, over all files, of the number of files that share a value with one. For one file these are the
   * files that begin by its end, less those that end before it begins.
   */
  private def countOverlaps(bounds: Bounds, byLo: Array[Int], byHi: Array[Int]): Long = {
    var begun = 0
    var begunByTheEnd = 0L
    for (file <- byHi) {
      while (begun < byLo.length && bounds.los.compare(byLo(begun), bounds.his, file) <= 0) begun += 1
      begunByTheEnd += begun
    }
    var ended = 0
    var endedBefore = 0L
    for (file <- byLo) {
      // The loop ends: the file itself does not end before it begins.
      while (bounds.his.compare(byHi(ended), bounds.los, file) < 0) ended += 1
      endedBefore += ended
    }
    begunByTheEnd - endedBefore
  }

  private def countFilesApart(bounds: Bounds, byLo: Array[Int]): Int = {
    val (los, his) = (bounds.los, bounds.his)
    var apart = 0
    var highest = -1 // of the files before
    for (i <- byLo.indices) {
      val file = byLo(i)
      val isAfterOthers = highest < 0 || his.compare(highest, los, file) <= 0
      val isBeforeOthers = i + 1 == byLo.length || his.compare(file, los, byLo(i + 1)) <= 0
      if (isAfterOthers && isBeforeOthers) apart += 1
      if (highest < 0 || his.compare(file, his, highest) > 0) highest = file
    }
    apart
  }
}
