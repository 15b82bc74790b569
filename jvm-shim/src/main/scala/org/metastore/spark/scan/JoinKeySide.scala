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

  /** Whether each run of the side returns the same keys. A sub-query in it might wait for its own thread. */
  final def isRepeatable: Boolean = isFixed(keys) && !plan.exists(!isFixed(_))

  protected def isFixed(expressions: Seq[Expression]): Boolean =
    expressions.map(withoutCounters).forall { expression =>
      expression.deterministic && !expression.exists(_.isInstanceOf[PlanExpression[_]])
    }

  protected def isFixed(node: LogicalPlan): Boolean

  /**
   * Whether collecting the keys pays off for this scan.
   *
   * @param isCommandTarget whether the scan reads the target of a command
   */
  def isWorthIt(scan: LogicalPlan, isCommandTarget: Boolean): Boolean

  /** Makes the filter of a key of the other side by key number `index` of this side. */
  def filter(key: Expression, index: Int): Expression

  /** Whether the side has few rows, and fewer than a scan. */
  protected final def isSmallFor(scan: LogicalPlan): Boolean = plan.stats.rowCount match {
    case Some(rows) => rows <= JoinKeyFilter.MostKeys && scan.stats.rowCount.forall(_ > rows)
    case None => plan.stats.sizeInBytes < scan.stats.sizeInBytes
  }

  protected final def withoutCounters(expression: Expression): Expression = expression.transform {
    case counter if ScanFormats.countsRows(counter) => counter.children.head
  }
}

/** The keys from the broadcast of the join. If the join has none, no query runs for the filter alone. */
private[scan] final class BroadcastKeys(plan: LogicalPlan, keys: Seq[Expression])
  extends JoinKeySide(plan, keys) {

  // A LIMIT or a sample may return other rows in the next run. Other nodes are not known to be repeatable.
  override protected def isFixed(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Aggregate | _: Union => isFixed(node.expressions)
    case _: DataSourceV2ScanRelation | _: LocalRelation | _: OneRowRelation | _: Range => true
    case _: InMemoryRelation | _: LogicalRDD => true
    case other => FileRelation.unapply(other).isDefined
  }

  override def isWorthIt(scan: LogicalPlan, isCommandTarget: Boolean): Boolean = isSmallFor(scan)

  override def filter(key: Expression, index: Int): Expression =
    JoinKeySubquery(key, plan, keys, index, onlyInBroadcast = true)
}

/** Collects the keys by a separate query, for commands: outer and anti joins do not broadcast this side. */
private[scan] final class QueriedKeys(plan: LogicalPlan, keys: Seq[Expression])
  extends JoinKeySide(plan, keys) {
  import QueriedKeys._

  // A user's function may claim to be deterministic without being so.
  override protected def isFixed(expressions: Seq[Expression]): Boolean =
    super.isFixed(expressions) && !expressions.exists(_.exists(_.isInstanceOf[UserDefinedExpression]))

  // A second run may read newer data, compute a cache again, or add doubles in another order.
  override protected def isFixed(node: LogicalPlan): Boolean = node match {
    case _: Project | _: Filter | _: Join | _: Union => isFixed(node.expressions)
    case scan: DataSourceV2ScanRelation =>
      TableFormats.open(DelegateProxy.unwrap(scan.relation.table)).isDefined
    case _: LocalRelation | _: OneRowRelation | _: Range => true
    case rows: LogicalRDD => rows.rdd.isCheckpointed
    case relation: LogicalRelation => isPinned(relation)
    case _ => false
  }

  override def isWorthIt(scan: LogicalPlan, isCommandTarget: Boolean): Boolean =
    isCommandTarget && isSmallFor(scan) && isCheapFor(scan)

  /** Whether the side reads little compared to a scan: it is read once more for each key. */
  private def isCheapFor(scan: LogicalPlan): Boolean =
    plan.collectLeaves().map(bytesToRead).sum * keys.size * CheapShare <= scan.stats.sizeInBytes

  override def filter(key: Expression, index: Int): Expression = {
    // A command compares the numbers of rows that its queries count. This extra run must not count again.
    val rows = plan.transform { case node => node.mapExpressions(withoutCounters(_)) }
    val column = Alias(keys(index), "key")()
    val notNull = Filter(IsNotNull(column.toAttribute), Project(Seq(column), rows))
    val distinct = Aggregate(Seq(column.toAttribute), Seq(column.toAttribute), notNull)
    // One key more than allowed shows that there are too many.
    val most = Literal(JoinKeyFilter.MostKeys + 1)
    val limited = GlobalLimit(most, LocalLimit(most, distinct))
    JoinKeySubquery(key, limited, Seq(column.toAttribute), 0, onlyInBroadcast = false)
  }
}

private object QueriedKeys {
  private val CheapShare = 4

  /** Whether each read of a relation lists the same files, and reads all of them. */
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
