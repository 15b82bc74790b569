package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Attribute, AttributeMap, AttributeReference, Expression, NamedExpression, PredicateHelper
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Complete, Count}
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LeafNode, LogicalPlan, Project}

import org.metastore.spark.pruning.{ColumnResolver, FileMeasure, LiveFiles}
import org.metastore.spark.statistics.objects.TableIdentity

/** What a scan would read if it were planned now, and how the statistics call its columns. */
private[scan] final case class ScannedFiles(
    table: TableIdentity, files: IndexedSeq[ScanFile], resolver: ColumnResolver, live: LiveFiles)

/**
 * What is asked of a scan by an aggregate.
 *
 * @param conjuncts of the rows that count
 * @param grouping  what tells groups of rows apart; None: all rows are one
 * @param functions aggregate functions of columns of the scan
 * @param columns   those that they and the conjuncts need
 */
private[scan] final case class AggregateRequest(
    conjuncts: Seq[Expression], grouping: Option[Expression], functions: Seq[AggregateExpression], columns: Seq[NamedExpression]) {

  /** Whether statistics may answer it, whatever they are: to list files for nothing would cost. */
  def isPossible: Boolean = functions.forall(_.deterministic) && (functions.nonEmpty || grouping.isDefined) &&
    measures((_, _) => Some("")).isDefined

  /** What is to be computed of each file; None where some function cannot be answered by statistics. */
  def measures(resolver: ColumnResolver): Option[Seq[FileMeasure]] = grouping match {
    case Some(group) if functions.forall(countsRowsOf(group, _)) => FileMeasure.ofGroups(group, resolver).map(Seq(_))
    case Some(_) => None
    case None =>
      val found = functions.map(FileMeasure.of(_, resolver))
      if (found.forall(_.isDefined)) Some(found.flatten) else None
  }

  /** The rows of the answer, each the value of the group, if there is one, and then of each function. */
  def rows(totals: Seq[Any]): Seq[Seq[Any]] = grouping match {
    case None => Seq(totals)
    case Some(group) => totals.head.asInstanceOf[Seq[(Any, Long)]].map { case (value, rows) =>
        value +: functions.map(function => if (isCountOf(group, function) && value == null) 0L else rows) // scalastyle:ignore
      }
  }

  private def countsRowsOf(group: Expression, function: AggregateExpression): Boolean =
    function.mode == Complete && function.filter.isEmpty && !function.isDistinct &&
      (FileMeasure.isRowCount(function) || isCountOf(group, function))

  private def isCountOf(group: Expression, function: AggregateExpression): Boolean = function.aggregateFunction match {
    case Count(Seq(child)) => child.semanticEquals(group)
    case _ => false
  }
}

/** Aggregates whose answer follows from the statistics of the files that their scan would read: then none is read. */
private[scan] final class AggregateAnswer(adapters: Seq[RelationAdapter], planner: ScanPlanner) extends PredicateHelper {

  /** What is planned in an aggregate's place; None: it stays. May throw. */
  def of(aggregate: Aggregate): Option[LogicalPlan] = aggregate.child match {
    case PhysicalOperation(columns, filters, leaf: LeafNode) if aggregate.groupingExpressions.size <= 1 =>
      val (group, results) = (aggregate.groupingExpressions.headOption, aggregate.aggregateExpressions)
      val functions = results.flatMap(_.collect { case function: AggregateExpression => function }).distinct
      val asked = requestOf(group, functions, columns, filters, leaf)
      if (!asked.isPossible) None
      else adapters.iterator.flatMap(_.answer(leaf, asked, planner)).toSeq.headOption
        .map(inPlace(group.toSeq, results, functions, asked, _))
    case _ => None
  }

  // Above a scan stand columns with other names, and expressions, that the functions name.
  private def requestOf(
      group: Option[Expression], functions: Seq[AggregateExpression], columns: Seq[NamedExpression], filters: Seq[Expression],
      leaf: LeafNode): AggregateRequest = {
    val meant = AttributeMap(columns.map(column => column.toAttribute -> withoutName(column)))
    // In a query columns stand as the user wrote them; formats look for them by the names of the relation.
    val own = AttributeMap(leaf.output.map(column => column -> column))
    def named[E <: Expression](expression: E): E =
      expression.transform { case column: Attribute => own.getOrElse(column, column) }.asInstanceOf[E]
    def ofScan[E <: Expression](expression: E): E =
      named(expression.transform { case name: Attribute => meant.getOrElse(name, name) }.asInstanceOf[E])
    AggregateRequest(
      filters.flatMap(splitConjunctivePredicates).map(named(_)), group.map(ofScan(_)), functions.map(ofScan(_)), columns.map(named(_)))
  }

  private def withoutName(column: NamedExpression): Expression = column match {
    case attribute: Attribute => attribute
    case named => named.children.head
  }

  private def inPlace(
      group: Seq[Expression], results: Seq[NamedExpression], functions: Seq[AggregateExpression], asked: AggregateRequest,
      answer: MeasuredScan): LogicalPlan = {
    val computed = group ++ functions
    val values = computed.map(one => AttributeReference(one.sql, one.dataType, one.nullable)())
    val valueOf = computed.map(_.canonicalized).zip(values).toMap
    def shown(result: Expression): Expression =
      result.transform { case one if valueOf.contains(one.canonicalized) => valueOf(one.canonicalized) }
    val named = results.map {
      case column: Attribute => Alias(shown(column), column.name)(column.exprId, column.qualifier, Some(column.metadata))
      case other => shown(other).asInstanceOf[NamedExpression]
    }
    Project(named, AnsweredRows(values, asked.rows(answer.totals).map(InternalRow.fromSeq))(answer.decision))
  }
}
