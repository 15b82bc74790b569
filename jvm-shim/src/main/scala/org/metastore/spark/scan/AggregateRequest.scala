package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Expression, NamedExpression}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Complete, Count}

import org.metastore.spark.pruning.{ColumnResolver, DifferentValues, FileMeasure, FileMeasures, LiveFiles}
import org.metastore.spark.reason.Indexed
import org.metastore.spark.statistics.objects.TableIdentity

/**
 * What a scan would read if it were planned now, and how the statistics call its columns.
 *
 * @param areChosen whether a scan can be made of some of the files, whatever happens until it runs
 */
private[scan] final case class ScannedFiles(
    table: TableIdentity,
    files: IndexedSeq[ScanFile],
    resolver: ColumnResolver,
    live: LiveFiles,
    areChosen: Boolean)

/**
 * What is asked of a scan by an aggregate.
 *
 * @param conjuncts of the rows that count
 * @param grouping  what tells groups of rows apart; None: all rows are one
 * @param functions aggregate functions of columns of the scan
 * @param columns   those that they and the conjuncts need
 */
private[scan] final case class AggregateRequest(
    conjuncts: Seq[Expression],
    grouping: Option[Expression],
    functions: Seq[AggregateExpression],
    columns: Seq[NamedExpression]) {

  /** Whether statistics may answer it, whatever they are: to list files for nothing would cost. */
  def isPossible: Boolean = functions.forall(_.deterministic) && (functions.nonEmpty || grouping.isDefined) &&
    measures((_, _) => Some("")).isDefined

  /** What is to be computed of each file; None where some function cannot be answered by statistics. */
  def measures(resolver: ColumnResolver): Option[Seq[FileMeasure]] = grouping match {
    case Some(group) if functions.forall(countsRowsOf(group, _)) =>
      FileMeasures.fromGrouping(group, resolver).map(Seq(_))
    case Some(_) => None
    case None =>
      Indexed.all(functions.map(FileMeasures.fromFunction(_, resolver)))
  }

  /** Whether what some rows add can be merged with what others do: what is counted once can be of one column. */
  def isMergeable: Boolean =
    functions.filter(_.isDistinct).map(_.aggregateFunction.canonicalized).distinct.size <= 1

  /**
   * The rows of the answer, each the value of the group, if there is one, and then of each function or part of one. To be merged
   * with others, each value that is counted once has a row, and the parts stand with NULL, which is not counted.
   */
  def rows(totals: Seq[Any]): Seq[Seq[Any]] = grouping match {
    case None =>
      val others = totals.filterNot(_.isInstanceOf[DifferentValues])
      totals.collectFirst { case DifferentValues(values) =>
        (null +: others) +: values.map(_ +: others.map(_ => null))
      }.getOrElse(Seq(totals))
    case Some(group) =>
      for ((value, rows) <- totals.head.asInstanceOf[Seq[(Any, Long)]])
        yield value +: functions.map(function =>
          if (isCountOf(group, function) && value == null) 0L else rows)
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
