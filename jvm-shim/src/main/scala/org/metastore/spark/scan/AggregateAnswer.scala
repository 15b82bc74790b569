package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, AttributeReference, Expression, NamedExpression, PredicateHelper}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LeafNode, LogicalPlan, Project}

import org.metastore.spark.pruning.{ColumnResolver, FileMeasure, LiveFiles}
import org.metastore.spark.statistics.objects.TableIdentity

/** What a scan would read if it were planned now, and how the statistics call its columns. */
private[scan] final case class ScannedFiles(
    table: TableIdentity, files: IndexedSeq[ScanFile], resolver: ColumnResolver, live: LiveFiles)

/**
 * What is asked of a scan by an aggregate of all its rows.
 *
 * @param conjuncts of the rows that count
 * @param functions aggregate functions of columns of the scan
 * @param columns   those that they and the conjuncts need
 */
private[scan] final case class AggregateRequest(
    conjuncts: Seq[Expression], functions: Seq[AggregateExpression], columns: Seq[NamedExpression]) {

  /** Whether statistics may answer it, whatever they are: to list files for nothing would cost. */
  def isPossible: Boolean = functions.forall(_.deterministic) && measures((_, _) => Some("")).isDefined

  /** What is to be computed of each file; None where some function cannot be answered by statistics. */
  def measures(resolver: ColumnResolver): Option[Seq[FileMeasure]] = {
    val found = functions.map(FileMeasure.of(_, resolver))
    if (found.forall(_.isDefined)) Some(found.flatten) else None
  }
}

/** Aggregates whose answer follows from the statistics of the files that their scan would read: then none is read. */
private[scan] final class AggregateAnswer(adapters: Seq[RelationAdapter], planner: ScanPlanner) extends PredicateHelper {

  /** What is planned in an aggregate's place; None: it stays. May throw. */
  def of(aggregate: Aggregate): Option[LogicalPlan] = aggregate.child match {
    case PhysicalOperation(columns, filters, leaf: LeafNode) if aggregate.groupingExpressions.isEmpty =>
      val results = aggregate.aggregateExpressions
      val functions = results.flatMap(_.collect { case function: AggregateExpression => function }).distinct
      val asked = requestOf(functions, columns, filters, leaf)
      if (functions.isEmpty || !asked.isPossible) None
      else adapters.iterator.flatMap(_.answer(leaf, asked, planner)).toSeq.headOption.map(inPlace(results, functions, _))
    case _ => None
  }

  // Above a scan stand columns with other names, and expressions, that the functions name.
  private def requestOf(
      functions: Seq[AggregateExpression], columns: Seq[NamedExpression], filters: Seq[Expression],
      leaf: LeafNode): AggregateRequest = {
    val meant = AttributeMap(columns.map(column => column.toAttribute -> withoutName(column)))
    // In a query columns stand as the user wrote them; formats look for them by the names of the relation.
    val own = AttributeMap(leaf.output.map(column => column -> column))
    def named[E <: Expression](expression: E): E =
      expression.transform { case column: Attribute => own.getOrElse(column, column) }.asInstanceOf[E]
    val ofScan = functions.map(_.transform { case name: Attribute => meant.getOrElse(name, name) }.asInstanceOf[AggregateExpression])
    AggregateRequest(filters.flatMap(splitConjunctivePredicates).map(named(_)), ofScan.map(named(_)), columns.map(named(_)))
  }

  private def withoutName(column: NamedExpression): Expression = column match {
    case attribute: Attribute => attribute
    case named => named.children.head
  }

  private def inPlace(results: Seq[NamedExpression], functions: Seq[AggregateExpression], answer: MeasuredScan): LogicalPlan = {
    val values = functions.map(function => AttributeReference(function.sql, function.dataType, function.nullable)())
    val valueOf = functions.map(_.canonicalized).zip(values).toMap
    val shown = results.map(_.transform { case function: AggregateExpression => valueOf(function.canonicalized) })
    Project(shown.map(_.asInstanceOf[NamedExpression]), AnsweredRows(values, Seq(InternalRow.fromSeq(answer.totals)))(answer.decision))
  }
}
