package org.metastore.spark.cardinality

import java.util.Arrays.stream

import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.store.{ColumnHistogram, ColumnZones, FileStatistics, StoredValue}

/**
 * How many rows of a scan's files satisfy its filter: conditions on several columns are independent within a file, not within
 * the table, so that a column that follows the order of the files tells of the others too.
 *
 * @param kept  the files that are read, by place in `statistics`
 * @param rows  physical rows of a file
 * @param live  rows of a file that no delete removes
 * @param all     physical rows of the scan before we dropped files
 * @param dropped physical rows of the files that were dropped because of some of the conditions
 */
private[cardinality] final class FilteredRows(
    filter: ScanFilter, statistics: FileStatistics, kept: Array[Int], rows: Int => Double, live: Int => Double, all: Double,
    dropped: Seq[Expression] => Double) {
  import FilteredRows._

  private val (physical, left) = (stream(kept).mapToDouble(rows(_)).sum, stream(kept).mapToDouble(live(_)).sum)

  /** The number of rows. */
  lazy val number: Double = {
    val found =
      if (filter.columns.isEmpty) left
      else if (isOneColumn || kept.length > mostFiles) left * filter.columns.map(r => math.min(1.0, expected(r) / math.max(1.0, physical))).product
      else ofFiles
    found * filter.others
  }

  /** Whether everything that dropped files is a condition on one column. */
  private def isOneColumn: Boolean = filter.columns.size == 1

  // What lies between two places among overlapping bounds takes a look at all of them.
  private def mostFiles: Int = if (filter.columns.forall(_.ofTable)) MostFiles else MostOverlapping

  private def ofFiles: Double = {
    val shares = filter.columns.map { column =>
      val zones = zonesOf(column)
      val raw = kept.map(f => if (isTold(zones, f)) Some(shareOf(column, zones, f)) else None)
      val sum = kept.indices.iterator.map(i => raw(i).fold(0.0)(rows(kept(i)) * _)).sum
      val factor = if (sum > 0) matchesTold(column, sum) / sum else 1.0
      raw.map(_.fold(1.0)(share => math.min(1.0, share * factor)))
    }
    kept.indices.iterator.map(i => live(kept(i)) * shares.iterator.map(_(i)).product).sum
  }

  /** Matching rows of a condition on one column: of files that the statistics do not tell of, all may match. */
  private def expected(column: Restricted): Double =
    matchesTold(column, column.share * rowsTold(column)) + (physical - rowsTold(column))

  /** In the files that the statistics tell of, given those that the bounds of each make likely. */
  private def matchesTold(column: Restricted, byFiles: Double): Double =
    if (!column.ofTable) column.share * rowsTold(column)
    else {
      val ofAll = column.kept.rows * math.max(1.0, all / math.max(1.0, column.whole.rows))
      // Files that the column's own conditions drop have no matching row, others have their share.
      lazy val elsewhere = column.share * math.max(0.0, math.max(all, column.whole.rows) - physical - dropped(column.conditions))
      math.min(rowsTold(column), if (isOneColumn || byFiles <= 0) ofAll else math.max(byFiles, ofAll * byFiles / (byFiles + elsewhere)))
    }

  private def rowsTold(column: Restricted): Double = {
    val zones = zonesOf(column)
    stream(kept).filter(isTold(zones, _)).mapToDouble(rows(_)).sum
  }

  private def zonesOf(column: Restricted): Option[ColumnZones] = statistics.column(column.asked.key, column.asked.dataType).toOption

  private def isTold(zones: Option[ColumnZones], file: Int): Boolean = zones.exists(_.known(file))

  private def shareOf(column: Restricted, zones: Option[ColumnZones], file: Int): Double =
    zones.flatMap(within(column.whole, _, file)).fold(column.share) { case (lo, hi) => column.between(lo, hi) }

  private def within(column: ColumnHistogram, zones: ColumnZones, file: Int): Option[(Double, Double)] =
    for (lo <- StoredValue.lo(zones, file); hi <- StoredValue.hi(zones, file)) yield (column.axis.at(lo), column.axis.at(hi))
}

private object FilteredRows {
  private val MostFiles = 8192 // beyond, the table alone tells
  private val MostOverlapping = 512
}
