package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Attribute, AttributeMap, AttributeReference, Cast, Coalesce, Expression, Literal, NamedExpression,
  PredicateHelper
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression, AggregateFunction, Average, Complete, Count, Max, Min, Sum
}
import org.apache.spark.sql.catalyst.optimizer.DecimalAggregates
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LeafNode, LogicalPlan, Project, Union}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DecimalType, DoubleType}

import org.metastore.spark.pruning.{ColumnResolver, DifferentValues, FileMeasure, FileMeasures, LiveFiles}
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
      val found = functions.map(FileMeasures.fromFunction(_, resolver))
      if (found.forall(_.isDefined)) Some(found.flatten) else None
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
    case Some(group) => totals.head.asInstanceOf[Seq[(Any, Long)]].map { case (value, rows) =>
        value +: functions.map(function => if (isCountOf(group, function) && value == null) 0L else rows)
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

/**
 * Aggregates whose answer follows from the statistics of the files that their scan would read: then none is read. Where it
 * follows of most of them, the others are read, and what they add is merged with it.
 */
private[scan] final class AggregateAnswer(adapters: Seq[RelationAdapter], planner: ScanPlanner)
  extends PredicateHelper {

  /** What is planned in an aggregate's place; None: it stays. May throw. */
  def of(aggregate: Aggregate): Option[LogicalPlan] = aggregate.child match {
    case PhysicalOperation(columns, filters, leaf: LeafNode) if aggregate.groupingExpressions.size <= 1 =>
      val (group, results) = (aggregate.groupingExpressions.headOption, AggregateAnswer.asComputed(aggregate))
      val functions = results.flatMap(_.collect { case function: AggregateExpression => function }).distinct
      val asked = requestOf(group, functions, columns, filters, leaf)
      if (!asked.isPossible) None
      else adapters.iterator.flatMap(_.answer(leaf, asked, planner)).toSeq.headOption
        .map(answer =>
          new AggregateInPlace(
            aggregate.child,
            group,
            results,
            functions,
            asked.rows(answer.totals),
            answer).plan)
    case _ => None
  }

  // Above a scan stand columns with other names, and expressions, that the functions name.
  private def requestOf(
      group: Option[Expression],
      functions: Seq[AggregateExpression],
      columns: Seq[NamedExpression],
      filters: Seq[Expression],
      leaf: LeafNode): AggregateRequest = {
    val meant = AttributeMap(columns.map(column => column.toAttribute -> withoutName(column)))
    // In a query columns stand as the user wrote them; formats look for them by the names of the relation.
    val own = AttributeMap(leaf.output.map(column => column -> column))
    def named[E <: Expression](expression: E): E =
      expression.transform { case column: Attribute => own.getOrElse(column, column) }.asInstanceOf[E]
    def ofScan[E <: Expression](expression: E): E =
      named(expression.transform { case name: Attribute => meant.getOrElse(name, name) }.asInstanceOf[E])
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
      val split = functions.map(MergeableFunction.of)
      val computed = apart ++ split.flatMap(_.parts).map(_.toAggregateExpression())
      val values = computed.map(one => AttributeReference(one.sql, one.dataType)()).toSeq
      val open = Aggregate(
        apart.toSeq,
        computed.map(one => Alias(one, one.sql)()).toSeq,
        child.transformUp { case _: LeafNode => rest })
      val left = values.drop(apart.size).iterator
      val merged =
        split.map(function =>
          function.merged(if (function.parts.isEmpty) values.take(1)
          else function.parts.map(_ => left.next())))
      Aggregate(values.take(group.size), named(values, merged), Union(answered(values), open))
  }

  private def answered(values: Seq[Attribute]) =
    AnsweredRows(values, rows.map(InternalRow.fromSeq))(answer.decision)

  /** The results of the aggregate, made of a value of the group and one of each function. */
  private def named(values: Seq[Attribute], computed: Seq[Expression]): Seq[NamedExpression] = {
    val valueOf = (group ++ functions).map(_.canonicalized).zip(values.take(group.size) ++ computed).toMap
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
  def of(function: AggregateExpression): MergeableFunction =
    if (function.isDistinct)
      MergeableFunction(Nil, groups => Count(groups.head).toAggregateExpression(isDistinct = true))
    else of(function.aggregateFunction)

  private def of(function: AggregateFunction): MergeableFunction = function match {
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
