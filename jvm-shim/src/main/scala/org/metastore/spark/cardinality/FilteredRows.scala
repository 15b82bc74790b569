package org.metastore.spark.cardinality

import java.util.Arrays.stream
import java.util.IdentityHashMap

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.store.{FileSetStatistics, CatalystValue}

/**
 * How many rows of a scan's files satisfy its filter: conditions on several columns are independent within a file, not within
 * the table, so that a column that follows the order of the files tells of the others too.
 *
 * @param kept    the files that are read, by place in `statistics`
 * @param rows    physical rows of a file
 * @param live    rows of a file that no delete removes
 * @param all     physical rows of the scan before we dropped files
 * @param dropped physical rows of the files that were dropped because of some of the conditions
 * @param isAncestor whether the table whose distributions are known has no rows that the scan's does not have
 */
private[cardinality] final class MatchingRowCount(
    filter: FilterSelectivity, statistics: FileSetStatistics, kept: Array[Int], rows: Int => Double, live: Int => Double, all: Double,
    dropped: Seq[Expression] => Double, isAncestor: Boolean) {
  import MatchingRowCount._

  private val (physical, left) = (stream(kept).mapToDouble(rows(_)).sum, stream(kept).mapToDouble(live(_)).sum)

  private val columns = filter.columns.map(new OfColumn(_))

  /** The number of rows. */
  lazy val number: Double =
    if (columns.isEmpty && filter.jointConditions.isEmpty) left
    else if (kept.length > mostFiles) left * ofColumns * filter.jointConditions.map(_.of(_.share)).product
    else {
      val shares = if (isOneColumn && isAncestor) Nil else columns.map(_.shares)
      val parts = new IdentityHashMap[ColumnConditions, OfColumn]
      def among(file: Int)(part: ColumnConditions) = parts.computeIfAbsent(part, new OfColumn(_)).shareOf(file)
      val found = kept.indices.iterator.map { i =>
        live(kept(i)) * shares.iterator.map(_(i)).product * filter.jointConditions.iterator.map(_.of(among(kept(i)))).product
      }.sum
      if (isOneColumn && isAncestor) found * ofColumns else found
    }

  /** The share of rows that satisfies the conditions on one column, of the table as a whole. */
  private def ofColumns: Double = columns.map(c => math.min(1.0, c.expected / math.max(1.0, physical))).product

  /** Whether everything that dropped files is a condition on one column. */
  private def isOneColumn: Boolean = filter.columns.count(drops(_)) <= 1

  // Every join demands keys that are not null, of which each file has its share. What is known of the files read alone,
  // as of a column of partitions, does not tell what was dropped.
  private def drops(column: ColumnConditions): Boolean =
    filter.columns.size == 1 || !column.ofTable || column.kept.values < column.whole.values

  // What lies between two places among overlapping bounds takes a look at all of them.
  private def mostFiles: Int = if ((filter.columns ++ filter.jointConditions.flatMap(_.columns)).forall(_.ofTable)) MostFiles else MostOverlapping

  /** Rows that the conditions on one column leave: of files that the statistics do not tell of, all may match. */
  private final class OfColumn(column: ColumnConditions) {
    private val zones = statistics.column(column.asked.key, column.asked.dataType).toOption
    private lazy val rowsTold = stream(kept).filter(isTold(_)).mapToDouble(rows(_)).sum

    def expected: Double = matching(column.share * rowsTold) + (physical - rowsTold)

    /** The share of each file's rows. */
    def shares: Array[Double] = {
      val byBounds = kept.map(f => if (isTold(f)) Some(shareOf(f)) else None)
      val sum = kept.indices.iterator.map(i => byBounds(i).fold(0.0)(rows(kept(i)) * _)).sum
      val factor = if (sum > 0) matching(sum) / sum else 1.0
      byBounds.map(_.fold(1.0)(share => math.min(1.0, share * factor)))
    }

    /** In the files that the statistics tell of, given those that the bounds of each make likely. */
    private def matching(byFiles: Double): Double =
      if (!column.ofTable) column.share * rowsTold
      else if (!isAncestor || !drops(column)) math.min(rowsTold, byFiles)
      else {
        val ofAll = column.kept.rows * math.max(1.0, all / math.max(1.0, column.whole.rows))
        // Files that the column's own conditions drop have no matching row, others have their share.
        lazy val elsewhere = column.share * math.max(0.0, math.max(all, column.whole.rows) - physical - dropped(column.conditions))
        math.min(rowsTold, if (isOneColumn || byFiles <= 0) ofAll else math.max(byFiles, ofAll * byFiles / (byFiles + elsewhere)))
      }

    private def isTold(file: Int): Boolean = zones.exists(_.hasStatistics(file))

    def shareOf(file: Int): Double = zones.filter(known => known.nulls(file) >= 0 && known.rows(file) > 0).fold(column.share) { known =>
      val (all, nulls, nans) = (known.rows(file), known.nulls(file), math.max(0L, known.nans(file)))
      val bounds = for (lo <- CatalystValue.lo(known, file); hi <- CatalystValue.hi(known, file)) yield (lo, hi)
      val ofValues = bounds.fold(column.share) { case (lo, hi) => column.between(column.whole.axis.at(lo), column.whole.axis.at(hi)) }
      (math.max(0L, all - nulls - nans) * ofValues + nulls * column.ofNulls + nans * column.ofNans) / all
    }
  }
}

private object MatchingRowCount {
  private val MostFiles = 8192 // beyond, the table alone tells
  private val MostOverlapping = 512
}
