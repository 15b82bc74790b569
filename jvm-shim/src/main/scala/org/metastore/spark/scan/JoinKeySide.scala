package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Expression, IsNotNull, Literal, PlanExpression, UserDefinedExpression
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, InMemoryFileIndex, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

import org.metastore.spark.tables.{DelegateProxy, FileRelation, TableFormats}

/** The side of a join whose keys choose files of the other side. */
private[scan] sealed abstract class JoinKeySide(plan: LogicalPlan, keys: Seq[Expression]) {

  /** Whether each run of the side has the same keys. A filter that waits for another sub-query may wait for its own thread. */
  final def isRepeatable: Boolean = isFixed(keys) && !plan.exists(!isFixed(_))

  protected def isFixed(expressions: Seq[Expression]): Boolean =
    expressions.map(withoutCounters).forall { one =>
      one.deterministic && !one.exists(_.isInstanceOf[PlanExpression[_]])
    }

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

  protected final def withoutCounters(expression: Expression): Expression = expression.transform {
    case counter if ScanFormats.countsRows(counter) => counter.children.head
  }
}

/** The keys in the broadcast of the join, if it makes one: nothing is run for the filter alone. */
private[scan] final class BroadcastKeys(plan: LogicalPlan, keys: Seq[Expression])
  extends JoinKeySide(plan, keys) {

  // A LIMIT or a sample may take other rows the next time, and other nodes may do anything.
  override protected def isFixed(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union => isFixed(node.expressions)
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
  import QueriedKeys._

  // What users write need not be deterministic, whatever it says.
  override protected def isFixed(expressions: Seq[Expression]): Boolean =
    super.isFixed(expressions) && !expressions.exists(_.exists(_.isInstanceOf[UserDefinedExpression]))

  // A second run may see newer data, compute a cache again, or add doubles in another order.
  override protected def isFixed(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Union => isFixed(node.expressions)
    case scan: DataSourceV2ScanRelation =>
      TableFormats.open(DelegateProxy.unwrap(scan.relation.table)).isDefined
    case _: LocalRelation | _: OneRowRelation | _: Range => true
    case rows: LogicalRDD => rows.rdd.isCheckpointed
    case relation: LogicalRelation => isPinned(relation)
    case _ => false
  }

  override def isFor(scan: LogicalPlan, isOfCommand: Boolean): Boolean =
    isOfCommand && isSmallFor(scan) && isCheapFor(scan)

  /** Whether the side reads little beside a scan: it is read once more for each key. */
  private def isCheapFor(scan: LogicalPlan): Boolean =
    plan.collectLeaves().map(bytesToRead).sum * keys.size * CheapShare <= scan.stats.sizeInBytes

  /** One key more than may be used tells that there are too many. A command compares the rows that it counts in its queries. */
  override def filter(key: Expression, place: Int): Expression = {
    val rows = plan.transform { case node => node.mapExpressions(withoutCounters(_)) }
    val column = Alias(keys(place), "key")()
    val present = Filter(IsNotNull(column.toAttribute), Project(Seq(column), rows))
    val distinct = Aggregate(Seq(column.toAttribute), Seq(column.toAttribute), present)
    val most = Literal(JoinKeyFilter.MostKeys + 1)
    val bounded = GlobalLimit(most, LocalLimit(most, distinct))
    JoinKeySubquery(key, bounded, Seq(column.toAttribute), 0, onlyInBroadcast = false)
  }
}

private object QueriedKeys {
  private val CheapShare = 4

  /** Whether a relation lists the same files again, and reads all of them. */
  private def isPinned(relation: LogicalRelation): Boolean = relation match {
    case FileRelation(files) => readsAll(files) && (isListed(relation, files) || ScanFormats.isPinned(files))
    case _ => false
  }

  // Writes refresh the listing of a catalog's table.
  private def isListed(relation: LogicalRelation, files: HadoopFsRelation): Boolean =
    relation.catalogTable.isEmpty && files.location.getClass == classOf[InMemoryFileIndex]

  private def readsAll(files: HadoopFsRelation): Boolean = {
    val options = new FileSourceOptions(files.options)
    !options.ignoreCorruptFiles && !options.ignoreMissingFiles
  }

  private def bytesToRead(leaf: LogicalPlan): BigInt = leaf match {
    case _: LocalRelation | _: OneRowRelation | _: Range | _: LogicalRDD => 0
    case other => other.stats.sizeInBytes
  }
}
