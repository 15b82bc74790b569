package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Expression, SortOrder}

import org.metastore.spark.pruning.{ExpressionColumns, RowOrder, WantedRows}

/**
 * The filters, limit and order above a scan.
 *
 * @param conjuncts conditions on the rows that the query uses
 * @param limit     number of these rows that the query needs: no other filter is between
 * @param order     the first sort key below the limit; None: the query needs any rows
 */
private[scan] final case class ScanContext(
    conjuncts: Seq[Expression] = Nil,
    limit: Option[Long] = None,
    order: Option[SortOrder] = None) {

  /** Whether only a limit is above the scan. */
  def isLimitAlone: Boolean = limit.isDefined && conjuncts.isEmpty && order.isEmpty

  /** The rows that the query needs; None: all rows, or the sort key has no statistics. */
  def wanted(columns: => ExpressionColumns): Option[WantedRows] = (limit, order) match {
    case (None, _) => None
    case (Some(rows), None) => Some(WantedRows(rows))
    case (Some(rows), Some(first)) =>
      val scanColumns = columns
      val key = first.copy(child = scanColumns.overColumns(first.child))
      for (rowOrder <- RowOrder.fromSort(key, scanColumns)) yield WantedRows(rows, Some(rowOrder))
  }
}
