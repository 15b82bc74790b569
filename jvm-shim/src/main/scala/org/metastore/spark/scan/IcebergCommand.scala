package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, MetadataAttribute}
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate, LogicalPlan, ReplaceData, Subquery, V2WriteCommand
}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.write.{RowLevelOperation, SupportsDelta}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.metastore.{PushedPredicates, RowLevelTarget}

import org.metastore.spark.reason.{Optional, Reason, ReasonCode}

/**
 * An UPDATE, DELETE or MERGE of an Iceberg table, as Spark plans it.
 *
 * Copy-on-write replaces the files of the target's own scan: a file that this scan does not read is lost. So
 * its scan is never changed. A sub-query finds the files, and may skip those without a row to change.
 * Merge-on-read names the rows to delete by file and position: its scan may skip files without such a row.
 */
private[scan] final class IcebergCommand(
    table: IcebergScan,
    command: V2WriteCommand,
    operation: RowLevelOperation) {

  /** The interceptor for the target's scan, or None if the scan stays as without us. */
  def scans(planner: ScanPlanner): Option[IcebergInterceptor] = {
    val allowed = PlanScope.rowLevelPruning(table.spark, planner.settings)
    val target =
      if (allowed.byConditions && !planner.leavesAlone) IcebergCommand.targetOf(command) else None
    target.flatMap(pruneTarget(_, planner.forCommand(allowed))).orElse {
      Optional.when(planner.estimates)(unchanged(ReasonCode.RowLevelCommand, planner))
    }
  }

  private def pruneTarget(target: DataSourceV2Relation, planner: ScanPlanner): Option[IcebergInterceptor] = {
    def pruning(conjuncts: Seq[Expression]) =
      new IcebergPruning(table, target.output, ScanContext(conjuncts), planner)
    command match {
      case _ if operation.isInstanceOf[SupportsDelta] =>
        Some(pruning(RowFilters.above(target, command.query)))
      // Without the sub-query, every file that Iceberg does not skip is rewritten.
      case replace: ReplaceData if hasSubquery(replace) =>
        val skipping = pruning(RowFilters.conjuncts(replace.condition))
        Some(new IcebergReplacedFiles(skipping, unchanged(ReasonCode.FilesOfSubquery, planner)))
      case _ => None
    }
  }

  private def hasSubquery(replace: ReplaceData): Boolean =
    SQLConf.get.runtimeRowLevelOperationGroupFilterEnabled &&
      replace.groupFilterCondition.exists(_ != TrueLiteral)

  private def unchanged(code: ReasonCode, planner: ScanPlanner) =
    new IcebergPassThrough(
      table.name,
      Reason(code, "command" -> operation.command.toString),
      planner.estimates)
}

private[scan] object IcebergCommand {
  private val FileColumn = "_file"

  /**
   * Whether a sub-query has the form of the one that Spark adds to a copy-on-write command: the distinct
   * files of the rows of one relation.
   *
   * @param isTarget whether a table is the target at the snapshot that the command changes
   */
  def findsFiles(subquery: LogicalPlan, isTarget: IcebergScan => Boolean): Boolean = subquery match {
    case Subquery(files: Aggregate, false) =>
      (files.groupingExpressions ++ files.aggregateExpressions) match {
        case Seq(grouping: Attribute, result) =>
          grouping.semanticEquals(result) && isFileOfTarget(isTarget, grouping, files.child)
        case _ => false
      }
    case _ => false
  }

  private def isFileOfTarget(
      isTarget: IcebergScan => Boolean,
      column: Attribute,
      rows: LogicalPlan): Boolean = {
    val reads =
      rows.collect { case relation: DataSourceV2Relation if relation.outputSet.contains(column) => relation }
    onlyOne(reads).exists { read =>
      read.output.exists(output => output.semanticEquals(column) && isFile(output)) &&
      IcebergScan.fromTable(read.table).exists(isTarget)
    }
  }

  private def isFile(column: Attribute): Boolean =
    column.name == FileColumn && MetadataAttribute.isValid(column.metadata)

  /** The one relation of a command that reads its target, or None if several read it. */
  private def targetOf(command: V2WriteCommand): Option[DataSourceV2Relation] =
    onlyOne(command.query.collect {
      case relation: DataSourceV2Relation if RowLevelTarget.isRead(relation) => relation
    })

  private def onlyOne[A](values: Seq[A]): Option[A] = if (values.size == 1) values.headOption else None
}

/**
 * Keeps the scan of a copy-on-write command whole, as the command replaces its files. Conditions by which
 * Iceberg loses rows are not pushed to Iceberg.
 */
private final class IcebergReplacedFiles(skipping: IcebergPruning, unchanged: IcebergPassThrough)
  extends IcebergInterceptor {

  override val fingerprint: AnyRef = (skipping.fingerprint, unchanged.fingerprint)
  override def keepsFromFormat(predicate: Predicate): Boolean = skipping.keepsFromFormat(predicate)
  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = unchanged.prepare(scan, pushed)
}
