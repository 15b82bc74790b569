package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{
  And, Attribute, DynamicPruning, DynamicPruningExpression, Expression, ExprId, InSet, Literal,
  PredicateHelper, Unevaluable
}
import org.apache.spark.sql.catalyst.trees.UnaryLike
import org.apache.spark.sql.execution.{
  BaseSubqueryExec, ExecSubqueryExpression, FileSourceScanExec, FilterExec, InSubqueryExec, ProjectExec,
  SparkPlan, SubqueryAdaptiveBroadcastExec
}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.types.{BooleanType, DataType}

import org.metastore.spark.statistics.columns.TypePromotion

/** The keys of a join's other side, once they are collected; None before, where that failed, and where there are too many. */
private[scan] final class JoinKeyValues extends Serializable {
  @transient @volatile private var condition: Option[Expression] = None

  def conjunct: Option[Expression] = Option(condition).flatten // it is null where it was sent to

  def set(found: Option[Expression]): Unit = condition = found
}

/**
 * Among the data filters of a file scan: its column has one of the values that a sub-query collects. Spark runs the sub-query
 * before the scan lists its files; no row is put through it.
 */
private[scan] final case class JoinKeyFilter(
    child: Expression,
    plan: BaseSubqueryExec,
    exprId: ExprId)(val keys: JoinKeyValues)
  extends ExecSubqueryExpression
  with UnaryLike[Expression]
  with Unevaluable {

  override def dataType: DataType = BooleanType
  override def nullable: Boolean = child.nullable
  override def toString: String = s"$child IN ${plan.name}"
  override protected def otherCopyArgs: Seq[AnyRef] = keys :: Nil
  override def withNewPlan(other: BaseSubqueryExec): JoinKeyFilter = copy(plan = other)(keys)
  override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)(keys)

  override lazy val canonicalized: Expression =
    JoinKeyFilter(
      child.canonicalized,
      plan.canonicalized.asInstanceOf[BaseSubqueryExec],
      ExprId(0))(new JoinKeyValues)

  override def updateResult(): Unit =
    keys.set(ScanPlanner.recover(s"The keys of $child", Option.empty[Expression]) {
      JoinKeyFilter.conjunct(child, plan.executeCollect().map(_.get(0, child.dataType)))
    })
}

/** Takes the filters of joins from where rows would pass them to the scans whose files they choose. */
private[scan] object JoinKeyFilter extends PredicateHelper {

  /** So many keys are looked for in a file's statistics. */
  val MostKeys = 10000

  /** What a column satisfies that is equal to one of these; None where they are too many. */
  def conjunct(column: Expression, keys: Array[Any]): Option[Expression] = {
    val distinct = keys.iterator.filter(_ != null).toSet
    if (distinct.size > MostKeys) None else Some(InSet(column, distinct))
  }

  /** Such a condition before the keys are there; None of types whose values have no order that the statistics know. */
  def example(key: Expression): Option[Expression] =
    if (TypePromotion.hasBounds(key.dataType)) Some(InSet(key, Set(Literal.default(key.dataType).value)))
    else None

  /** Whether a scan is going to be told keys. */
  def isIn(scan: FileSourceScanExec): Boolean = scan.dataFilters.exists(isOfJoin)

  /** The filters at the scans below, and nowhere else. */
  def moveToScans(plan: SparkPlan): SparkPlan = plan.transformUp {
    case filter @ FilterExec(condition, child) if condition.exists(_.isInstanceOf[DynamicPruning]) =>
      val (keys, others) = splitConjunctivePredicates(condition).partition(isOfJoin)
      val scan = addTo(child, keys)
      others.reduceOption(And(_, _)).fold(scan)(rest =>
        WithTags(filter.copy(condition = rest, child = scan), filter))
  }

  private def addTo(plan: SparkPlan, keys: Seq[Expression]): SparkPlan = plan match {
    case scan: FileSourceScanExec =>
      withFilters(scan, scan.dataFilters ++ keys.filter(_.references.subsetOf(scan.outputSet)))
    case _: FilterExec | _: ProjectExec => plan.withNewChildren(plan.children.map(addTo(_, keys)))
    case other => other
  }

  /** The scan with filters that it tells its index of; without those that Spark found not to be worth it. */
  def bind(scan: FileSourceScanExec): FileSourceScanExec = if (!scan.dataFilters.exists(isReady)) scan
  else withFilters(
    scan,
    scan.dataFilters.flatMap {
      case DynamicPruningExpression(in: InSubqueryExec)
          if !in.plan.isInstanceOf[SubqueryAdaptiveBroadcastExec] =>
        Some(JoinKeyFilter(in.child, in.plan, in.exprId)(new JoinKeyValues))
      case DynamicPruningExpression(_: Literal) => None
      case other => Some(other)
    })

  /** A table format's scan with filters of columns alone, where some are of expressions: Spark tells a scan of no others. */
  def bind(scan: BatchScanExec): BatchScanExec = {
    val named = scan.runtimeFilters.map {
      case pruning @ DynamicPruningExpression(in: InSubqueryExec) if !in.child.isInstanceOf[Attribute] =>
        PrunedScan.find(scan.scan).flatMap(_.nameOf(in.child)).fold(pruning)(name =>
          DynamicPruningExpression(in.copy(child = name)))
      case other => other
    }
    if (named == scan.runtimeFilters) scan
    else WithTags(CaseClassCopy(scan, "runtimeFilters" -> named), scan)
  }

  /** What the filters of a scan have collected. */
  def valuesOf(scan: FileSourceScanExec): Seq[JoinKeyValues] =
    scan.dataFilters.collect { case filter: JoinKeyFilter => filter.keys }

  private def isReady(filter: Expression): Boolean = filter match {
    case DynamicPruningExpression(in: InSubqueryExec) => !in.plan.isInstanceOf[SubqueryAdaptiveBroadcastExec]
    case other => other.isInstanceOf[DynamicPruningExpression]
  }

  private def isOfJoin(filter: Expression): Boolean =
    filter.isInstanceOf[DynamicPruning] || filter.isInstanceOf[JoinKeyFilter]

  private def withFilters(scan: FileSourceScanExec, filters: Seq[Expression]): FileSourceScanExec =
    WithTags(CaseClassCopy(scan, "dataFilters" -> filters), scan)
}
