package org.metastore.spark.estimates

import java.util.IdentityHashMap
import java.util.Arrays.stream

import org.apache.spark.sql.catalyst.expressions._

import org.metastore.spark.statistics.columns.{CatalystValue, ColumnSummary}

/**
 * Estimates the rows of files that satisfy a filter: conditions are taken to be independent within a file, not within the table.
 *
 * @param files      the files that are read
 * @param rows       physical rows of a file
 * @param live       rows of a file that are not deleted
 * @param all        rows of all files of the scan
 * @param dropped    rows of the files that some conditions have dropped
 * @param isAncestor whether the statistics are of the snapshot itself, or of one before
 */
private[estimates] final class MatchingRowCount(
    filter: FilterSelectivity,
    statistics: PartitionStatistics,
    files: Array[Int],
    rows: Int => Double,
    live: Int => Double,
    all: Double,
    dropped: Seq[Expression] => Double,
    isAncestor: Boolean) {
  import MatchingRowCount._

  private val physicalRows = stream(files).mapToDouble(rows(_)).sum
  private val liveRows = stream(files).mapToDouble(live(_)).sum

  private val columns = filter.columns.map(new RestrictedColumn(_))

  /** The number of rows. */
  lazy val number: Double =
    if (columns.isEmpty && filter.jointConditions.isEmpty) liveRows
    else if (files.length > mostFiles)
      liveRows * ofColumns * filter.jointConditions.map(_.share(_.share)).product
    else if (isOneColumn && isAncestor) sumOfFiles(Nil) * ofColumns
    else sumOfFiles(columns.map(_.shares))

  /** @param shares of conditions on one column each, the share of each file's rows */
  private def sumOfFiles(shares: Seq[Array[Double]]): Double = {
    val parts = new IdentityHashMap[ColumnConditions, RestrictedColumn]
    def shareOf(file: Int)(column: ColumnConditions): Double =
      parts.computeIfAbsent(column, new RestrictedColumn(_)).shareOf(file)
    val numbers = files.indices.iterator.map { i =>
      val ofColumns = shares.iterator.map(_(i)).product
      val ofJoint = filter.jointConditions.iterator.map(_.share(shareOf(files(i)))).product
      live(files(i)) * ofColumns * ofJoint
    }
    numbers.sum
  }

  /** The share of rows that satisfies the conditions on one column, of the table as a whole. */
  private def ofColumns: Double =
    columns.map(column => math.min(1.0, column.expected / math.max(1.0, physicalRows))).product

  /** Whether everything that dropped files is a condition on one column. */
  private def isOneColumn: Boolean = filter.jointConditions.isEmpty && filter.columns.count(drops(_)) <= 1

  // Every join demands keys that are not null, of which each file has its share. What is known of the files read alone,
  // as of a column of partitions, does not tell what was dropped.
  private def drops(column: ColumnConditions): Boolean =
    filter.columns.size == 1 || !column.ofTable || column.remaining.values < column.whole.values

  // What lies between two places among overlapping bounds takes a look at all of them.
  private def mostFiles: Int = {
    val columns = filter.columns ++ filter.jointConditions.flatMap(_.columns)
    if (columns.forall(_.ofTable)) MostFiles else MostOverlapping
  }

  /** Rows that the conditions on one column leave; in files without statistics all rows may match. */
  private final class RestrictedColumn(conditions: ColumnConditions) {
    private val summary = statistics.column(conditions.column.key, conditions.column.dataType).toOption
    private lazy val describedRows = stream(files).filter(isDescribed(_)).mapToDouble(rows(_)).sum

    def expected: Double = matching(conditions.share * describedRows) + (physicalRows - describedRows)

    /** The share of each file's rows. */
    def shares: Array[Double] = {
      val byBounds = files.map(file => if (isDescribed(file)) Some(shareOf(file)) else None)
      val numbers = files.indices.iterator.map(i => byBounds(i).fold(0.0)(rows(files(i)) * _))
      val sum = numbers.sum
      val factor = if (sum > 0) matching(sum) / sum else 1.0
      byBounds.map(_.fold(1.0)(share => math.min(1.0, share * factor)))
    }

    /** Matching rows of the files with statistics, by those that the bounds of each file make likely. */
    private def matching(byFiles: Double): Double =
      if (!conditions.ofTable) conditions.share * describedRows
      else if (!isAncestor || !drops(conditions)) math.min(describedRows, byFiles)
      else {
        val ofAll = conditions.remaining.rows * math.max(1.0, all / math.max(1.0, conditions.whole.rows))
        if (isOneColumn || byFiles <= 0) math.min(describedRows, ofAll)
        else {
          val ofFiles = math.max(byFiles, ofAll * byFiles / (byFiles + elsewhere))
          math.min(describedRows, ofFiles)
        }
      }

    /** Matching rows of other files: those that the column's own conditions drop have none, others have their share. */
    private def elsewhere: Double = {
      val rowsOfTable = math.max(all, conditions.whole.rows)
      val others = rowsOfTable - physicalRows - dropped(conditions.conditions)
      conditions.share * math.max(0.0, others)
    }

    private def isDescribed(file: Int): Boolean = summary.exists(_.hasStatistics(file))

    def shareOf(file: Int): Double = summary match {
      case Some(known) if known.nulls(file) >= 0 && known.rows(file) > 0 =>
        val (all, nulls, nans) = (known.rows(file), known.nulls(file), math.max(0L, known.nans(file)))
        val values = math.max(0L, all - nulls - nans)
        (values * ofValues(known, file) + nulls * conditions.ofNulls + nans * conditions.ofNans) / all
      case _ => conditions.share
    }

    /** The share of the values of a file, by its bounds. */
    private def ofValues(known: ColumnSummary, file: Int): Double =
      (CatalystValue.lo(known, file), CatalystValue.hi(known, file)) match {
        case (Some(lo), Some(hi)) =>
          conditions.between(conditions.whole.axis.at(lo), conditions.whole.axis.at(hi))
        case _ => conditions.share
      }
  }
}

private object MatchingRowCount {
  private val MostFiles = 8192 // beyond, the table alone tells
  private val MostOverlapping = 512
}
