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
 * Aggregates whose answer follows from the statistics of the files that their scan would read: then none is read. Where it
 * follows of most of them, the others are read, and what they add is merged with it.
 */
private[scan] final class AggregateAnswer(planner: ScanPlanner) extends PredicateHelper {

  /** What is planned in an aggregate's place; None: it stays. May throw. */
  def replace(aggregate: Aggregate): Option[LogicalPlan] = aggregate.child match {
    case PhysicalOperation(columns, filters, leaf: LeafNode) if aggregate.groupingExpressions.size <= 1 =>
      val (group, results) = (aggregate.groupingExpressions.headOption, AggregateAnswer.asComputed(aggregate))
      val functions = results.flatMap(_.collect { case function: AggregateExpression => function }).distinct
      val asked = requestOf(group, functions, columns, filters, leaf)
      if (!asked.isPossible) None
      else RelationAdapters.first(_.answer(leaf, asked, planner)).map { answer =>
        val rows = asked.rows(answer.totals)
        new AggregateInPlace(aggregate.child, group, results, functions, rows, answer).plan
      }
    case _ => None
  }

  // Above a scan stand columns with other names, and expressions, that the functions name.
  private def requestOf(
      group: Option[Expression],
      functions: Seq[AggregateExpression],
      columns: Seq[NamedExpression],
      filters: Seq[Expression],
      leaf: LeafNode): AggregateRequest = {
    val meant =
      AttributeMap[Expression](columns.map(column => column.toAttribute -> withoutName(column)))
    // In a query columns stand as the user wrote them; formats look for them by the names of the relation.
    val own = AttributeMap[Expression](leaf.output.map(column => column -> column))
    def named[E <: Expression](expression: E): E =
      ReplacedColumns(expression, own).asInstanceOf[E]
    def ofScan[E <: Expression](expression: E): E =
      named(ReplacedColumns(expression, meant).asInstanceOf[E])
    AggregateRequest(
      filters.flatMap(splitConjunctivePredicates).map(named(_)),
      group.map(ofScan(_)),
      functions.map(ofScan(_)),
      columns.map(named(_)))
  }

  private def withoutName(column: NamedExpression): Expression = column match {
    case attribute: Attribute => attribute
    case named => named.children.head
  }
}

private object AggregateAnswer {

  /** The results of an aggregate as Spark is going to compute them: it adds short decimals by their digits, where it may. */
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
 * What is planned in the place of an aggregate.
 *
 * @param results what it computes
 * @param rows    of the answer, or of what is to be merged
 */
private final class AggregateInPlace(
    child: LogicalPlan,
    group: Option[Expression],
    results: Seq[NamedExpression],
    functions: Seq[AggregateExpression],
    rows: Seq[Seq[Any]],
    answer: MeasuredScan) {

  def plan: LogicalPlan = answer.rest match {
    case None =>
      val values =
        (group ++ functions).map(one => AttributeReference(one.sql, one.dataType, one.nullable)()).toSeq
      Project(named(values, values.drop(group.size)), answered(values))
    case Some(rest) =>
      // What is counted once makes groups of the rows that are read: the values that others have are then counted once.
      val apart = group.orElse(functions.find(_.isDistinct).map(_.aggregateFunction.children.head))
      val split = functions.map(MergeableFunction.fromExpression)
      val aggregates =
        for (function <- split; part <- function.parts) yield part.toAggregateExpression()
      val computed = apart ++ aggregates
      val values = computed.map(one => AttributeReference(one.sql, one.dataType)()).toSeq
      val open = Aggregate(
        apart.toSeq,
        computed.map(one => Alias(one, one.sql)()).toSeq,
        child.transformUp { case _: LeafNode => rest })
      val remaining = values.drop(apart.size).iterator
      val merged = split.map { function =>
        val parts = if (function.parts.isEmpty) values.take(1) else function.parts.map(_ => remaining.next())
        function.merged(parts)
      }
      Aggregate(values.take(group.size), named(values, merged), Union(answered(values), open))
  }

  private def answered(values: Seq[Attribute]) =
    AnsweredRows(values, rows.map(InternalRow.fromSeq))(answer.decision)

  /** The results of the aggregate, made of a value of the group and one of each function. */
  private def named(values: Seq[Attribute], computed: Seq[Expression]): Seq[NamedExpression] = {
    val shownAs = (group ++ functions).zip(values.take(group.size) ++ computed)
    val valueOf = Indexed.entries(shownAs) { case (function, value) => function.canonicalized -> value }
    def shown(result: Expression): Expression =
      result.transform { case one if valueOf.contains(one.canonicalized) => valueOf(one.canonicalized) }
    results.map {
      case column: Attribute =>
        Alias(shown(column), column.name)(column.exprId, column.qualifier, Some(column.metadata))
      case other => shown(other).asInstanceOf[NamedExpression]
    }
  }
}

/**
 * An aggregate function of rows that lie in two places.
 *
 * @param parts  what is computed of each; nothing of what tells groups of the rows apart
 * @param merged the function of all rows, of columns with these parts, or of that with the groups
 */
private final case class MergeableFunction(
    parts: Seq[AggregateFunction],
    merged: Seq[Attribute] => Expression)

private object MergeableFunction {

  /** Those that `FileMeasure` knows: their sums cannot overflow. */
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

  /** The sum of sums, of their type: Spark's is wider for decimals. */
  private def sum(of: Attribute): Expression = {
    val wide = Sum(of).toAggregateExpression()
    if (wide.dataType == of.dataType) wide else Cast(wide, of.dataType)
  }
}
