package org.metastore.spark.pruning

import org.metastore.spark.statistics.columns.{Bounds, ColumnSummary}

/**
 * How the values of a column are spread over data files, by the bounds of those whose bounds are known.
 *
 * @param overlapDepth how many files have the least value of a file between their bounds, itself included, on average
 * @param sortedShare  share of the files whose values no other file's bounds enclose: at most their ends are another's, too
 */
final case class ColumnLayout(overlapDepth: Double, sortedShare: Double)

object ColumnLayout {

  /** The layout of a column; None where no file has bounds. */
  def of(summary: ColumnSummary): Option[ColumnLayout] = {
    val bounded = filesWithBounds(summary)
    if (bounded.isEmpty) None else Some(measure(summary.bounds, bounded))
  }

  /** Files evenly chosen among those whose bounds are values of theirs, in the order of these. */
  def sample(summary: ColumnSummary, most: Int): Seq[Int] = {
    val bounds = summary.bounds
    val byLo = sortedByLo(bounds, filesWithBounds(summary).filter(file => bounds.loExact(file) && bounds.hiExact(file)))
    val number = math.min(most, byLo.length)
    (0 until number).map(i => byLo(((2L * i + 1) * byLo.length / (2 * number)).toInt))
  }

  private def filesWithBounds(summary: ColumnSummary): Array[Int] =
    Array.range(0, summary.length).filter(i => summary.bounds.hasLo(i) && summary.bounds.hasHi(i))

  private def sortedByLo(bounds: Bounds, files: Array[Int]): Array[Int] = files.sortWith { (a, b) =>
    val order = bounds.los.compare(a, bounds.los, b)
    order < 0 || order == 0 && bounds.his.compare(a, bounds.his, b) < 0
  }

  private def measure(bounds: Bounds, files: Array[Int]): ColumnLayout = {
    val (los, his) = (bounds.los, bounds.his)
    val byLo = sortedByLo(bounds, files)
    val byHi = files.sortWith((a, b) => his.compare(a, his, b) < 0)
    var (begun, ended, enclosing, alone) = (0, 0, 0L, 0)
    var highest = -1 // of the files before
    byLo.indices.foreach { place =>
      val file = byLo(place)
      while (begun < byLo.length && los.compare(byLo(begun), los, file) <= 0) begun += 1
      while (his.compare(byHi(ended), los, file) < 0) ended += 1 // the file itself ends no earlier
      enclosing += begun - ended
      val afterOthers = highest < 0 || his.compare(highest, los, file) <= 0
      if (afterOthers && (place + 1 == byLo.length || his.compare(file, los, byLo(place + 1)) <= 0)) alone += 1
      if (highest < 0 || his.compare(file, his, highest) > 0) highest = file
    }
    ColumnLayout(enclosing.toDouble / files.length, alone.toDouble / files.length)
  }
}
