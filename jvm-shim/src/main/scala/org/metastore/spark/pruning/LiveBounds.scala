package org.metastore.spark.pruning

import java.util.BitSet

import org.metastore.spark.statistics.columns.{ColumnSummary, CountedValues, NoBounds}

/**
 * Finds the files in which a live row has the least or greatest value: more rows have it than are deleted.
 *
 * @param selected   the files to look at
 * @param deleted    deleted rows of each of these
 * @param loadCounts reads the number of rows with each value of some files
 */
private[pruning] final class LiveBounds(
    summary: ColumnSummary,
    least: Boolean,
    selected: BitSet,
    deleted: Int => DeletedRows)(
    loadCounts: Array[Int] => collection.Map[Int, CountedValues]) {
  private val bounds = summary.bounds

  // Bounds leave NaN out, and do not distinguish the two zeros.
  private val coverAllValues = !summary.isFloatingPoint && bounds != NoBounds

  /** Whether a live row of a file has the bound, which is exact. */
  def isLive(file: Int): Boolean =
    deleted(file).isZero || coverAllValues && deleted(file).liveOf(rowsAtBound(file)) > 0

  /** The number of rows that certainly have the bound, deleted ones included. */
  private def rowsAtBound(file: Int): Long =
    if (hasOneValue(file)) summary.rows(file) - summary.nulls(file)
    else counts.get(file).fold(0L)(rowsAtBound(file, _))

  private def rowsAtBound(file: Int, counted: CountedValues): Long = {
    val edges = bounds.ends(low = least)
    val index = counted.counts.indices.find(counted.values.compare(_, edges, file) == 0)
    index.fold(0L)(counted.counts(_))
  }

  private def hasOneValue(file: Int): Boolean =
    bounds.areExact(file) && bounds.los.compare(file, bounds.his, file) == 0

  private lazy val counts: collection.Map[Int, CountedValues] = {
    val unclear =
      selected.stream.filter(file => !deleted(file).isZero && hasBound(file) && !hasOneValue(file))
    loadCounts(unclear.toArray)
  }

  private def hasBound(file: Int): Boolean =
    summary.hasNullCount(file) && bounds.isExact(file, low = least)
}
