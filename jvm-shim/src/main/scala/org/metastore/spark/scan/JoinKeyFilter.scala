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

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.TypePromotion
import org.metastore.spark.statistics.objects.Values

/** The keys of a join's other side as a conjunct; None if not collected yet, too many, or unavailable. */
private[scan] final class JoinKeyValues extends Serializable {
  @transient @volatile private var condition: Option[Expression] = None

  def conjunct: Option[Expression] = Option(condition).flatten // null after deserialization

  def set(conjunct: Option[Expression]): Unit = condition = conjunct
}

/**
 * A data filter of a file scan: the column has one of the values that a sub-query collects. Spark runs the
 * sub-query before the scan lists its files. The filter is never evaluated on rows.
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

/** Moves the filters by join keys from the rows to the scans whose files they choose. */
private[scan] object JoinKeyFilter extends PredicateHelper {

  /** Most keys that are looked up in a file's statistics. */
  val MostKeys: Int = Values.MostLookedUp

  /** The condition that a column has one of these values, or None if there are too many. */
  def conjunct(column: Expression, keys: Array[Any]): Option[Expression] = {
    val distinct = keys.iterator.filter(_ != null).toSet
    Optional.when(distinct.size <= MostKeys)(InSet(column, distinct))
  }

  /** An example of the condition on keys, before they are known; None for types without bounds. */
  def example(key: Expression): Option[Expression] =
    Optional.when(TypePromotion.hasBounds(key.dataType))(InSet(key, Set(Literal.default(key.dataType).value)))

  /** Whether a scan will get keys. */
  def isIn(scan: FileSourceScanExec): Boolean = scan.dataFilters.exists(isKeyFilter)

  /** The plan with the filters by keys at its scans, and nowhere else. */
  def moveToScans(plan: SparkPlan): SparkPlan = plan.transformUp {
    case filter @ FilterExec(condition, child) if condition.exists(_.isInstanceOf[DynamicPruning]) =>
      val (keyFilters, remaining) = splitConjunctivePredicates(condition).partition(isKeyFilter)
      val scan = addTo(child, keyFilters)
      if (remaining.isEmpty) scan
      else WithTags(filter.copy(condition = remaining.reduceLeft(And(_, _)), child = scan), filter)
  }

  private def addTo(plan: SparkPlan, filters: Seq[Expression]): SparkPlan = plan match {
    case scan: FileSourceScanExec =>
      withFilters(scan, scan.dataFilters ++ filters.filter(_.references.subsetOf(scan.outputSet)))
    case _: FilterExec | _: ProjectExec => plan.withNewChildren(plan.children.map(addTo(_, filters)))
    case other => other
  }

  /** Replaces Spark's filters by keys with ours; drops those that Spark found not worth running. */
  def bind(scan: FileSourceScanExec): FileSourceScanExec =
    if (!scan.dataFilters.exists(isReady)) scan
    else withFilters(
      scan,
      scan.dataFilters.flatMap {
        case DynamicPruningExpression(in: InSubqueryExec)
            if !in.plan.isInstanceOf[SubqueryAdaptiveBroadcastExec] =>
          Some(JoinKeyFilter(in.child, in.plan, in.exprId)(new JoinKeyValues))
        case DynamicPruningExpression(_: Literal) => None
        case other => Some(other)
      })

  /** Replaces expressions in the filters of a table format's scan with columns: Spark passes on no others. */
  def bind(scan: BatchScanExec): BatchScanExec = {
    def nameOf(key: Expression) = PrunedScan.fromScan(scan.scan).flatMap(_.nameOf(key))
    val filters = scan.runtimeFilters.map {
      case pruning @ DynamicPruningExpression(in: InSubqueryExec) if !in.child.isInstanceOf[Attribute] =>
        nameOf(in.child) match {
          case Some(column) => DynamicPruningExpression(in.copy(child = column))
          case None => pruning
        }
      case other => other
    }
    if (filters == scan.runtimeFilters) scan
    else WithTags(CaseClassCopy(scan, "runtimeFilters" -> filters), scan)
  }

  /** The keys that a scan's filters collect. */
  def valuesOf(scan: FileSourceScanExec): Seq[JoinKeyValues] =
    scan.dataFilters.collect { case filter: JoinKeyFilter => filter.keys }

  private def isReady(filter: Expression): Boolean = filter match {
    case DynamicPruningExpression(in: InSubqueryExec) => !in.plan.isInstanceOf[SubqueryAdaptiveBroadcastExec]
    case other => other.isInstanceOf[DynamicPruningExpression]
  }

  private def isKeyFilter(filter: Expression): Boolean =
    filter.isInstanceOf[DynamicPruning] || filter.isInstanceOf[JoinKeyFilter]

  private def withFilters(scan: FileSourceScanExec, filters: Seq[Expression]): FileSourceScanExec =
    WithTags(CaseClassCopy(scan, "dataFilters" -> filters), scan)
}
