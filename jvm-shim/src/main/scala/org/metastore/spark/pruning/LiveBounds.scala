package org.metastore.spark.pruning

import java.util.BitSet

import org.metastore.spark.statistics.columns.{ColumnSummary, CountedValues, NoBounds}

/**
 * Finds the files in which a live row has the least value, or the greatest: more rows have it than are deleted.
 *
 * @param among    the files to look at
 * @param deleted  deleted rows of each of these
 * @param countsOf reads how many rows of files have each value
 */
private[pruning] final class LiveBounds(
    summary: ColumnSummary,
    least: Boolean,
    among: BitSet,
    deleted: Int => DeletedRows)(
    countsOf: Array[Int] => collection.Map[Int, CountedValues]) {
  private val bounds = summary.bounds

  // Bounds leave NaN out, and do not tell the two zeros apart.
  private val areOfAllValues = !summary.isFloatingPoint && bounds != NoBounds

  /** Whether some live row of a file has the bound, which is known to be a value of the file. */
  def isLive(file: Int): Boolean =
    deleted(file).isZero || areOfAllValues && deleted(file).liveOf(rowsAtBound(file)) > 0

  /** How many rows, deleted ones included, are known to have the bound. */
  private def rowsAtBound(file: Int): Long =
    if (hasOneValue(file)) summary.rows(file) - summary.nulls(file)
    else counts.get(file).fold(0L)(rowsAtBound(file, _))

  private def rowsAtBound(file: Int, counted: CountedValues): Long = {
    val edges = bounds.ends(low = least)
    val place = counted.counts.indices.find(counted.values.compare(_, edges, file) == 0)
    place.fold(0L)(counted.counts(_))
  }

  private def hasOneValue(file: Int): Boolean =
    bounds.areExact(file) && bounds.los.compare(file, bounds.his, file) == 0

  private lazy val counts: collection.Map[Int, CountedValues] = {
    val unclear = among.stream.filter(file => !deleted(file).isZero && hasBound(file) && !hasOneValue(file))
    countsOf(unclear.toArray)
  }

  private def hasBound(file: Int): Boolean =
    summary.hasNullCount(file) && bounds.isExact(file, low = least)
}
