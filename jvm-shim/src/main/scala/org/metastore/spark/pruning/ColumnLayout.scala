package org.metastore.spark.pruning

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary}

/**
 * How the values of a column are spread over data files, by the bounds of those whose bounds are known.
 *
 * @param overlapDepth the average number of files, itself included, whose bounds share a value with a file's
 * @param sortedShare  share of the files whose values no other file's bounds enclose: at most their ends are another's, too
 */
final case class ColumnLayout(overlapDepth: Double, sortedShare: Double)

object ColumnLayout {

  /** The layout of a column; None where no file has bounds. */
  def fromSummary(summary: ColumnSummary): Option[ColumnLayout] = {
    val bounded = filesWithBounds(summary)
    Optional.when(bounded.nonEmpty)(measure(summary.bounds, bounded))
  }

  /** Files evenly chosen among those whose bounds are values of theirs, in the order of these. */
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

  /** For all files together, how many share a value with each: those that begin by its end, less those that end before it begins. */
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
      // the file itself ends no earlier
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
