package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Expression, NamedExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Complete, Count}

import org.metastore.spark.pruning.{ColumnResolver, DifferentValues, FileMeasure, FileMeasures}
import org.metastore.spark.reason.Indexed

/**
 * An aggregate over a scan.
 *
 * @param conjuncts filter of the rows
 * @param grouping  expression that groups the rows; None: all rows are one group
 * @param functions aggregate functions of columns of the scan
 * @param columns   columns that the functions and the conjuncts read
 */
private[scan] final case class AggregateRequest(
    conjuncts: Seq[Expression],
    grouping: Option[Expression],
    functions: Seq[AggregateExpression],
    columns: Seq[NamedExpression]) {

  /** Whether any statistics could answer the aggregate; asked before files are listed, which costs. */
  def isPossible: Boolean = functions.forall(_.deterministic) && (functions.nonEmpty || grouping.isDefined) &&
    measures((_, _) => Some("")).isDefined

  /** The measures to compute for each file, or None if statistics cannot answer some function. */
  def measures(resolver: ColumnResolver): Option[Seq[FileMeasure]] = grouping match {
    case Some(group) if functions.forall(countsRowsOf(group, _)) =>
      FileMeasures.fromGrouping(group, resolver).map(Seq(_))
    case Some(_) => None
    case None => Indexed.all(functions.map(FileMeasures.fromFunction(_, resolver)))
  }

  /** Whether partial results can be merged: at most one column may have DISTINCT. */
  def isMergeable: Boolean = {
    val distinctFunctions = for (function <- functions if function.isDistinct)
      yield function.aggregateFunction.canonicalized
    distinctFunctions.distinct.size <= 1
  }

  /**
   * The rows of the answer. A row has the value of the group, if there is one, and then a value for each
   * function or part. Where parts are merged, each distinct value has its own row. The other parts stand in
   * one row with NULL, which DISTINCT does not count.
   */
  def rows(totals: Seq[Any]): Seq[Seq[Any]] = grouping match {
    case None => rowsOfDistinctValues(totals).getOrElse(Seq(totals))
    case Some(group) =>
      for ((value, rows) <- totals.head.asInstanceOf[Seq[(Any, Long)]])
        yield value +: functions.map(function =>
          if (isCountOf(group, function) && value == null) 0L else rows)
  }

  private def rowsOfDistinctValues(totals: Seq[Any]): Option[Seq[Seq[Any]]] = {
    val otherTotals = totals.filterNot(_.isInstanceOf[DifferentValues])
    val nulls = Seq.fill(otherTotals.size)(null)
    totals.collectFirst { case DifferentValues(values) =>
      (null +: otherTotals) +: values.map(_ +: nulls)
    }
  }

  private def countsRowsOf(group: Expression, function: AggregateExpression): Boolean =
    function.mode == Complete && function.filter.isEmpty && !function.isDistinct &&
      (FileMeasures.isRowCount(function) || isCountOf(group, function))

  private def isCountOf(group: Expression, function: AggregateExpression): Boolean =
    function.aggregateFunction match {
      case Count(Seq(child)) => child.semanticEquals(group)
      case _ => false
    }
}
