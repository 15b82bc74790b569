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
 * Answers aggregates from the statistics of the files that their scan would read. If the statistics answer
 * for most of the files, the rest is read, and its partial results are merged with the answer.
 */
private[scan] final class AggregateAnswer(planner: ScanPlanner) extends PredicateHelper {

  /** The plan that replaces an aggregate, or None. May throw. */
  def replace(aggregate: Aggregate): Option[LogicalPlan] = aggregate.child match {
    case PhysicalOperation(columns, filters, leaf: LeafNode) if aggregate.groupingExpressions.size <= 1 =>
      val group = aggregate.groupingExpressions.headOption
      val results = AggregateAnswer.computedResults(aggregate)
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

  // A projection between aggregate and scan may rename columns and compute expressions.
  private def toRequest(
      group: Option[Expression],
      functions: Seq[AggregateExpression],
      columns: Seq[NamedExpression],
      filters: Seq[Expression],
      leaf: LeafNode): AggregateRequest = {
    val definitions =
      AttributeMap[Expression](columns.map(column => column.toAttribute -> withoutName(column)))
    val relationColumns = AttributeMap[Expression](leaf.output.map(column => column -> column))
    def resolveAliases[E <: Expression](expression: E): E =
      ReplacedColumns(expression, definitions).asInstanceOf[E]
    // A query spells columns as the user wrote them; formats find them by the relation's names.
    def useRelationNames[E <: Expression](expression: E): E =
      ReplacedColumns(expression, relationColumns).asInstanceOf[E]
    AggregateRequest(
      filters.flatMap(splitConjunctivePredicates).map(useRelationNames(_)),
      group.map(expression => useRelationNames(resolveAliases(expression))),
      functions.map(function => useRelationNames(resolveAliases(function))),
      columns.map(useRelationNames(_)))
  }

  private def withoutName(column: NamedExpression): Expression = column match {
    case attribute: Attribute => attribute
    case named => named.children.head
  }
}

private object AggregateAnswer {

  /** The results of an aggregate as Spark computes them: a later rule adds short decimals as integers. */
  private def computedResults(aggregate: Aggregate): Seq[NamedExpression] = {
    val excluded = SQLConf.get.optimizerExcludedRules.toSeq.flatMap(_.split(",").map(_.trim))
    if (excluded.contains(DecimalAggregates.ruleName)) aggregate.aggregateExpressions
    else DecimalAggregates(aggregate) match {
      case computed: Aggregate => computed.aggregateExpressions
      case _ => aggregate.aggregateExpressions
    }
  }
}

/**
 * Makes the plan that replaces an aggregate.
 *
 * @param results output expressions of the aggregate
 * @param rows    rows of the answer, or of the partial results to merge
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
    case Some(scan) => planMerge(scan)
  }

  private def planAnswer: LogicalPlan = {
    val columns = group.toSeq ++ functions
    val values = columns.map(column => AttributeReference(column.sql, column.dataType, column.nullable)())
    Project(toResults(values, values.drop(group.size)), answeredRows(values))
  }

  /** Merges the answer with the partial results of the files that `scan` reads. */
  private def planMerge(scan: LogicalPlan): LogicalPlan = {
    // Rows that are read are grouped by the column with DISTINCT. So a value that also stands in answered
    // files counts once.
    val grouping = group.orElse(functions.find(_.isDistinct).map(_.aggregateFunction.children.head))
    val mergeable = functions.map(MergeableFunction.fromExpression)
    val aggregates = for (function <- mergeable; part <- function.parts) yield part.toAggregateExpression()
    val columns = grouping.toSeq ++ aggregates
    val values = columns.map(column => AttributeReference(column.sql, column.dataType)())
    val partial = Aggregate(
      grouping.toSeq,
      columns.map(column => Alias(column, column.sql)()),
      child.transformUp { case _: LeafNode => scan })
    val merged = mergeParts(mergeable, values.take(1), values.drop(grouping.size))
    Aggregate(values.take(group.size), toResults(values, merged), Union(answeredRows(values), partial))
  }

  /** Merges each function's own part of `partials`; a function without parts merges `grouping`. */
  private def mergeParts(
      mergeable: Seq[MergeableFunction],
      grouping: Seq[Attribute],
      partials: Seq[Attribute]): Seq[Expression] = {
    val merged = Seq.newBuilder[Expression]
    var start = 0
    for (function <- mergeable) {
      val end = start + function.parts.size
      merged += function.merge(if (function.parts.isEmpty) grouping else partials.slice(start, end))
      start = end
    }
    merged.result()
  }

  private def answeredRows(values: Seq[Attribute]) =
    AnsweredRows(values, rows.map(InternalRow.fromSeq))(answer.decision)

  /** The results of the aggregate, given the value of the group and the result of each function. */
  private def toResults(values: Seq[Attribute], computed: Seq[Expression]): Seq[NamedExpression] = {
    val replacements = (group ++ functions).zip(values.take(group.size) ++ computed)
    val valueOf = Indexed.entries(replacements) { case (function, value) => function.canonicalized -> value }
    def replaceFunctions(result: Expression): Expression =
      result.transform { case part if valueOf.contains(part.canonicalized) => valueOf(part.canonicalized) }
    results.map {
      case column: Attribute =>
        Alias(replaceFunctions(column), column.name)(column.exprId, column.qualifier, Some(column.metadata))
      case other => replaceFunctions(other).asInstanceOf[NamedExpression]
    }
  }
}

/**
 * An aggregate function whose partial results can be merged.
 *
 * @param parts partial functions; none for DISTINCT, whose column groups the rows
 * @param merge makes the result from the columns of the partial results, or from the grouping column
 */
private final case class MergeableFunction(
    parts: Seq[AggregateFunction],
    merge: Seq[Attribute] => Expression)

private object MergeableFunction {

  /** Parses a function that `FileMeasure` supports: its sums cannot overflow. */
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

  /** The sum of partial sums, in their own type: Spark's type is wider for decimals. */
  private def sum(partial: Attribute): Expression = {
    val wide = Sum(partial).toAggregateExpression()
    if (wide.dataType == partial.dataType) wide else Cast(wide, partial.dataType)
  }
}
