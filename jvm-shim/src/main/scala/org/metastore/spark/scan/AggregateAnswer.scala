package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Attribute, AttributeMap, AttributeReference, Cast, Coalesce, Expression, Literal, NamedExpression,
  PredicateHelper
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, AggregateFunction, Average, Count, Max, Min, Sum
}
import org.apache.spark.sql.catalyst.optimizer.DecimalAggregates
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LeafNode, LogicalPlan, Project, Union}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DecimalType, DoubleType}

import org.metastore.spark.reason.Indexed

/**
 * Answers aggregates from the statistics of the files that their scan would read. Where statistics answer for most of the files, the
 * others are read and their partial results are merged with the answer.
 */
private[scan] final class AggregateAnswer(planner: ScanPlanner) extends PredicateHelper {

  /** The plan in an aggregate's place; None: the aggregate stays. May throw. */
  def replace(aggregate: Aggregate): Option[LogicalPlan] = aggregate.child match {
    case PhysicalOperation(columns, filters, leaf: LeafNode) if aggregate.groupingExpressions.size <= 1 =>
      val group = aggregate.groupingExpressions.headOption
      val results = AggregateAnswer.asComputed(aggregate)
      val functions = results.flatMap(_.collect { case function: AggregateExpression => function }).distinct
      val request = toRequest(group, functions, columns, filters, leaf)
      val answer =
        if (request.isPossible) RelationAdapters.first(_.answer(leaf, request, planner)) else None
      answer.map { measured =>
        val rows = request.rows(measured.totals)
        new AggregateInPlace(aggregate.child, group, results, functions, rows, measured).plan
      }
    case _ => None
  }

  // Between aggregate and scan a projection may rename columns and compute expressions.
  private def toRequest(
      group: Option[Expression],
      functions: Seq[AggregateExpression],
      columns: Seq[NamedExpression],
      filters: Seq[Expression],
      leaf: LeafNode): AggregateRequest = {
    val definitions =
      AttributeMap[Expression](columns.map(column => column.toAttribute -> withoutName(column)))
    // In a query columns stand as the user wrote them; formats look for them by the names of the relation.
    val ofRelation = AttributeMap[Expression](leaf.output.map(column => column -> column))
    def byRelationNames[E <: Expression](expression: E): E =
      ReplacedColumns(expression, ofRelation).asInstanceOf[E]
    def ofScan[E <: Expression](expression: E): E =
      byRelationNames(ReplacedColumns(expression, definitions).asInstanceOf[E])
    AggregateRequest(
      filters.flatMap(splitConjunctivePredicates).map(byRelationNames(_)),
      group.map(ofScan(_)),
      functions.map(ofScan(_)),
      columns.map(byRelationNames(_)))
  }

  private def withoutName(column: NamedExpression): Expression = column match {
    case attribute: Attribute => attribute
    case named => named.children.head
  }
}

private object AggregateAnswer {

  /** The results of an aggregate as Spark will compute them: a later rule lets it add short decimals as integers. */
  private def asComputed(aggregate: Aggregate): Seq[NamedExpression] = {
    val excluded = SQLConf.get.optimizerExcludedRules.toSeq.flatMap(_.split(",").map(_.trim))
    if (excluded.contains(DecimalAggregates.ruleName)) aggregate.aggregateExpressions
    else DecimalAggregates(aggregate) match {
      case computed: Aggregate => computed.aggregateExpressions
      case _ => aggregate.aggregateExpressions
    }
  }
}

/**
 * The plan in the place of an aggregate.
 *
 * @param results output expressions of the aggregate
 * @param rows    of the answer, or of the partial results that are to be merged
 */
private final class AggregateInPlace(
    child: LogicalPlan,
    group: Option[Expression],
    results: Seq[NamedExpression],
    functions: Seq[AggregateExpression],
    rows: Seq[Seq[Any]],
    answer: MeasuredScan) {

  def plan: LogicalPlan = answer.rest match {
    case None => planAnswer
    case Some(rest) => planMerge(rest)
  }

  private def planAnswer: LogicalPlan = {
    val columns = group.toSeq ++ functions
    val values = columns.map(column => AttributeReference(column.sql, column.dataType, column.nullable)())
    Project(toResults(values, values.drop(group.size)), answered(values))
  }

  /** The answer merged with the partial results of the files that `rest` reads. */
  private def planMerge(rest: LogicalPlan): LogicalPlan = {
    // A column with DISTINCT groups the rows that are read: a value that answered files have, too, is then counted once.
    val grouping = group.orElse(functions.find(_.isDistinct).map(_.aggregateFunction.children.head))
    val mergeable = functions.map(MergeableFunction.fromExpression)
    val aggregates = for (function <- mergeable; part <- function.parts) yield part.toAggregateExpression()
    val columns = grouping.toSeq ++ aggregates
    val values = columns.map(column => AttributeReference(column.sql, column.dataType)())
    val partial = Aggregate(
      grouping.toSeq,
      columns.map(column => Alias(column, column.sql)()),
      child.transformUp { case _: LeafNode => rest })
    val remaining = values.drop(grouping.size).iterator
    val merged = mergeable.map { function =>
      val parts = if (function.parts.isEmpty) values.take(1) else function.parts.map(_ => remaining.next())
      function.merge(parts)
    }
    Aggregate(values.take(group.size), toResults(values, merged), Union(answered(values), partial))
  }

  private def answered(values: Seq[Attribute]) =
    AnsweredRows(values, rows.map(InternalRow.fromSeq))(answer.decision)

  /** The results of the aggregate, by a value of the group and one of each function. */
  private def toResults(values: Seq[Attribute], computed: Seq[Expression]): Seq[NamedExpression] = {
    val replacements = (group ++ functions).zip(values.take(group.size) ++ computed)
    val valueOf = Indexed.entries(replacements) { case (function, value) => function.canonicalized -> value }
    def replaced(result: Expression): Expression =
      result.transform { case part if valueOf.contains(part.canonicalized) => valueOf(part.canonicalized) }
    results.map {
      case column: Attribute =>
        Alias(replaced(column), column.name)(column.exprId, column.qualifier, Some(column.metadata))
      case other => replaced(other).asInstanceOf[NamedExpression]
    }
  }
}

/**
 * An aggregate function whose partial results can be merged.
 *
 * @param parts partial functions; none for DISTINCT, whose column groups the rows
 * @param merge makes the function of columns with the partial results, or of the column that groups
 */
private final case class MergeableFunction(
    parts: Seq[AggregateFunction],
    merge: Seq[Attribute] => Expression)

private object MergeableFunction {

  /** A function that `FileMeasure` knows: its sums cannot overflow. */
  def fromExpression(function: AggregateExpression): MergeableFunction =
    if (function.isDistinct)
      MergeableFunction(Nil, groups => Count(groups.head).toAggregateExpression(isDistinct = true))
    else fromFunction(function.aggregateFunction)

  private def fromFunction(function: AggregateFunction): MergeableFunction = function match {
    case _: Min => MergeableFunction(Seq(function), parts => Min(parts.head).toAggregateExpression())
    case _: Max => MergeableFunction(Seq(function), parts => Max(parts.head).toAggregateExpression())
    case _: Count => MergeableFunction(Seq(function), parts => Coalesce(Seq(sum(parts.head), Literal(0L))))
    case _: Sum => MergeableFunction(Seq(function), parts => sum(parts.head))
    case average: Average =>
      val buffer = average.aggBufferAttributes
      def value(parts: Seq[Attribute]) = average.evaluateExpression.transform {
        case column: Attribute if buffer.exists(_.semanticEquals(column)) =>
          sum(parts(buffer.indexWhere(_.semanticEquals(column))))
      }
      val summed = average.child.dataType match {
        case _: DecimalType => average.child
        case _ => Cast(average.child, DoubleType)
      }
      MergeableFunction(Seq(Sum(summed), Count(average.child)), value)
    case other => throw new IllegalArgumentException(other.prettyName)
  }

  /** The sum of partial sums in their type: Spark's is wider for decimals. */
  private def sum(partial: Attribute): Expression = {
    val wide = Sum(partial).toAggregateExpression()
    if (wide.dataType == partial.dataType) wide else Cast(wide, partial.dataType)
  }
}
