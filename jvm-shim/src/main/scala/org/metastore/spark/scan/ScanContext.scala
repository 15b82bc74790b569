package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Expression, SortOrder}

import org.metastore.spark.pruning.{ExpressionColumns, RowOrder, WantedRows}

/**
 * The filters, limit and order above a scan.
 *
 * @param conjuncts conditions that every row satisfies that is used
 * @param limit     number of these rows that are enough: no other filter stands between
 * @param order     the first key of the sort that says which rows come first; None: any rows will do
 */
private[scan] final case class ScanContext(
    conjuncts: Seq[Expression] = Nil,
    limit: Option[Long] = None,
    order: Option[SortOrder] = None) {

  /** Whether a limit stands above the scan and nothing else. */
  def isLimitAlone: Boolean = limit.isDefined && conjuncts.isEmpty && order.isEmpty

  /** The rows that are enough; None: all are wanted, or the order is not by a column or an expression with statistics. */
  def wanted(columns: => ExpressionColumns): Option[WantedRows] = (limit, order) match {
    case (None, _) => None
    case (Some(rows), None) => Some(WantedRows(rows))
    case (Some(rows), Some(first)) =>
      val known = columns
      val key = first.copy(child = known.overColumns(first.child))
      for (by <- RowOrder.fromSort(key, known)) yield WantedRows(rows, Some(by))
  }
}
