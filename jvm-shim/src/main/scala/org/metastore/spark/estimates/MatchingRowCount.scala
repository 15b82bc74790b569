package org.metastore.spark.estimates

import java.util.IdentityHashMap
import java.util.Arrays.stream

import org.apache.spark.sql.catalyst.expressions._

import org.metastore.spark.statistics.columns.{CatalystValue, ColumnSummary}

/**
 * Estimates the rows of files that satisfy a filter. Conditions are assumed to be independent within a file,
 * but not within the table.
 *
 * @param files      the files that are read
 * @param rows       physical rows of a file
 * @param live       rows of a file that are not deleted
 * @param all        rows of all files of the scan
 * @param dropped    rows of the files that some conditions exclude
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
      liveRows * tableShare * filter.jointConditions.map(_.share(_.share)).product
    else if (isOneColumn && isAncestor) sumOfFiles(Nil) * tableShare
    else sumOfFiles(columns.map(_.shares))

  /** @param shares for each column with conditions, the share of each file's rows that satisfies them */
  private def sumOfFiles(shares: Seq[Array[Double]]): Double = {
    val parts = new IdentityHashMap[ColumnConditions, RestrictedColumn]
    def shareOf(file: Int)(column: ColumnConditions): Double =
      parts.computeIfAbsent(column, new RestrictedColumn(_)).shareOf(file)
    val numbers = files.indices.iterator.map { i =>
      val columnShare = shares.iterator.map(_(i)).product
      val jointShare = filter.jointConditions.iterator.map(_.share(shareOf(files(i)))).product
      live(files(i)) * columnShare * jointShare
    }
    numbers.sum
  }

  /** The share of the table's rows that satisfies the conditions on single columns. */
  private def tableShare: Double =
    columns.map(column => math.min(1.0, column.expected / math.max(1.0, physicalRows))).product

  /** Whether only the conditions on one column exclude files. */
  private def isOneColumn: Boolean = filter.jointConditions.isEmpty && filter.columns.count(drops(_)) <= 1

  // IS NOT NULL excludes no files, and every join key has it. All conditions count if the histogram is of the
  // files read, such as that of a partition column: it does not show what was excluded.
  private def drops(column: ColumnConditions): Boolean =
    filter.columns.size == 1 || !column.isFromTable || column.remaining.values < column.unfiltered.values

  // A histogram of overlapping bounds is scanned for each file.
  private def mostFiles: Int = {
    val columns = filter.columns ++ filter.jointConditions.flatMap(_.columns)
    if (columns.forall(_.isFromTable)) MostFiles else MostOverlapping
  }

  /** The rows that match the conditions on one column; in files without statistics all rows may. */
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

    /**
     * The matching rows of the files with statistics.
     *
     * @param byFiles their number by the bounds of each file
     */
    private def matching(byFiles: Double): Double =
      if (!conditions.isFromTable) conditions.share * describedRows
      else if (!isAncestor || !drops(conditions)) math.min(describedRows, byFiles)
      else {
        val growth = math.max(1.0, all / math.max(1.0, conditions.unfiltered.rows))
        val inTable = conditions.remaining.rows * growth
        if (isOneColumn || byFiles <= 0) math.min(describedRows, inTable)
        else {
          val inFiles = math.max(byFiles, inTable * byFiles / (byFiles + elsewhere))
          math.min(describedRows, inFiles)
        }
      }

    /** The matching rows of other files. Files that these conditions exclude have none. */
    private def elsewhere: Double = {
      val rowsOfTable = math.max(all, conditions.unfiltered.rows)
      val rowsElsewhere = rowsOfTable - physicalRows - dropped(conditions.conditions)
      conditions.share * math.max(0.0, rowsElsewhere)
    }

    private def isDescribed(file: Int): Boolean = summary.exists(_.hasStatistics(file))

    def shareOf(file: Int): Double = summary match {
      case Some(column) if column.nulls(file) >= 0 && column.rows(file) > 0 =>
        val (all, nulls, nans) = (column.rows(file), column.nulls(file), math.max(0L, column.nans(file)))
        val values = math.max(0L, all - nulls - nans)
        val matchingNulls = nulls * conditions.nullShare
        val matchingNans = nans * conditions.nanShare
        (values * valueShare(column, file) + matchingNulls + matchingNans) / all
      case _ => conditions.share
    }

    /** The share of the values of a file that satisfies the conditions, by its bounds. */
    private def valueShare(column: ColumnSummary, file: Int): Double =
      (CatalystValue.lo(column, file), CatalystValue.hi(column, file)) match {
        case (Some(lo), Some(hi)) =>
          conditions.between(conditions.unfiltered.axis.at(lo), conditions.unfiltered.axis.at(hi))
        case _ => conditions.share
      }
  }
}

private object MatchingRowCount {
  private val MostFiles = 8192 // of more files, only the table's share is used
  private val MostOverlapping = 512
}
