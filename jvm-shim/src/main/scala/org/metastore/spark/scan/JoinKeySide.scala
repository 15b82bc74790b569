package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, PlanExpression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

import org.metastore.spark.tables.{FileRelation, TableFormats}

/** The side of a join whose keys choose files of the other side. */
private[scan] sealed abstract class JoinKeySide(plan: LogicalPlan, keys: Seq[Expression]) {

  /** Whether each run of the side has the same keys. A filter that waits for another sub-query may wait for its own thread. */
  final def isRepeatable: Boolean = keys.forall(_.deterministic) && !plan.exists(!isFixed(_))

  protected def isFixed(node: LogicalPlan): Boolean

  /** Whether the keys are worth their collection for a scan; `isOfCommand`: which reads the target of a command. */
  def isFor(scan: LogicalPlan, isOfCommand: Boolean): Boolean

  /** The filter of a key of the other side by the key at a place. */
  def filter(key: Expression, place: Int): Expression

  /** Whether there are few keys, and fewer rows than in a scan. */
  protected final def isSmallFor(scan: LogicalPlan): Boolean = plan.stats.rowCount match {
    case Some(rows) => rows <= JoinKeyFilter.MostKeys && scan.stats.rowCount.forall(_ > rows)
    case None => plan.stats.sizeInBytes < scan.stats.sizeInBytes
  }

  protected final def hasFixedExpressions(node: LogicalPlan): Boolean =
    node.expressions.map(withoutCounters).forall { one =>
      one.deterministic && !one.exists(_.isInstanceOf[PlanExpression[_]])
    }

  protected final def withoutCounters(expression: Expression): Expression = expression.transform {
    case counter if ScanFormats.countsRows(counter) => counter.children.head
  }
}

/** The keys in the broadcast of the join, if it makes one: nothing is run for the filter alone. */
private[scan] final class BroadcastKeys(plan: LogicalPlan, keys: Seq[Expression])
  extends JoinKeySide(plan, keys) {

  // A LIMIT or a sample may take other rows the next time, and other nodes may do anything.
  override protected def isFixed(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union => hasFixedExpressions(node)
    case _: DataSourceV2ScanRelation | _: LocalRelation | _: OneRowRelation | _: Range => true
    case _: InMemoryRelation | _: LogicalRDD => true
    case other => FileRelation.unapply(other).isDefined
  }

  override def isFor(scan: LogicalPlan, isOfCommand: Boolean): Boolean = isSmallFor(scan)

  override def filter(key: Expression, place: Int): Expression =
    JoinKeySubquery(key, plan, keys, place, onlyInBroadcast = true)
}

/**
 * The keys by a query of their own, for the target of a command: of an outer join, and of an anti join, Spark broadcasts the side
 * that would lose files.
 */
private[scan] final class QueriedKeys(plan: LogicalPlan, keys: Seq[Expression])
  extends JoinKeySide(plan, keys) {

  // A cache may be computed again, and a source that has no snapshots may have changed. Of the aggregates, sums of doubles depend
  // on the order of rows, and some functions take any of several values.
  override protected def isFixed(node: LogicalPlan): Boolean = node match {
    case aggregate: Aggregate if !aggregate.aggregateExpressions.forall(_.isInstanceOf[Attribute]) => false
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union => hasFixedExpressions(node)
    case scan: DataSourceV2ScanRelation => TableFormats.open(scan.relation.table).isDefined
    case _: LocalRelation | _: OneRowRelation | _: Range => true
    case rows: LogicalRDD => rows.rdd.isCheckpointed
    case other => FileRelation.unapply(other).isDefined
  }

  override def isFor(scan: LogicalPlan, isOfCommand: Boolean): Boolean =
    isOfCommand && isSmallFor(scan) && isCheapFor(scan)

  /** Whether the side reads little beside a scan: it is read twice. */
  private def isCheapFor(scan: LogicalPlan): Boolean =
    plan.collectLeaves().map(QueriedKeys.bytesToRead).sum * QueriedKeys.CheapShare <= scan.stats.sizeInBytes

  // A command compares the rows that it counts in two of its queries.
  override def filter(key: Expression, place: Int): Expression = {
    val uncounted = plan.transform { case node => node.mapExpressions(withoutCounters(_)) }
    JoinKeySubquery(key, uncounted, keys, place, onlyInBroadcast = false)
  }
}

private object QueriedKeys {
  private val CheapShare = 4

  private def bytesToRead(leaf: LogicalPlan): BigInt = leaf match {
    case _: LocalRelation | _: OneRowRelation | _: Range | _: LogicalRDD => 0
    case other => other.stats.sizeInBytes
  }
}
