package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Expression, SortOrder}

import org.metastore.spark.pruning.{ExpressionColumns, RowOrder, WantedRows}

/**
 * What stands above a scan.
 *
 * @param conjuncts every row that is used satisfies them
 * @param limit     so many of the rows that satisfy them are enough: no other filter stands between
 * @param order     the first key of the sort by which these rows are the first; None: whichever they are
 */
private[scan] final case class ScanContext(
    conjuncts: Seq[Expression] = Nil,
    limit: Option[Long] = None,
    order: Option[SortOrder] = None) {

  /** The rows that are enough; None where all are wanted, or the order is not one of a column or an expression with statistics. */
  def wanted(columns: => ExpressionColumns): Option[WantedRows] = order match {
    case None => limit.map(WantedRows(_))
    case Some(first) =>
      val known = columns
      val key = first.copy(child = known.replaceIn(first.child).getOrElse(first.child))
      for (most <- limit; by <- RowOrder.fromSort(key, known)) yield WantedRows(most, Some(by))
  }
}
