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
 * Copy-on-write replaces the files of the target's own scan: a file that this scan does not read is lost. Its scan is never
 * changed. A sub-query finds the files, and may leave out those without a row to change. Merge-on-read names the rows to delete by
 * file and position: files without such a row may be left out of the scan itself.
 */
private[scan] final class IcebergCommand(
    table: IcebergScan,
    command: V2WriteCommand,
    operation: RowLevelOperation) {

  /** How the target is scanned; None: as without us. */
  def scans(planner: ScanPlanner): Option[IcebergInterceptor] = {
    val allowed = PlanScope.rowLevelPruning(table.spark, planner.settings)
    val searched =
      if (allowed.byConditions && !planner.leavesAlone) IcebergCommand.targetOf(command) else None
    searched.flatMap(searchedBy(_, planner.ofCommand(allowed))).orElse {
      Optional.when(planner.estimates)(unchanged(ReasonCode.RowLevelCommand, planner))
    }
  }

  private def searchedBy(target: DataSourceV2Relation, planner: ScanPlanner): Option[IcebergInterceptor] = {
    def pruning(conjuncts: Seq[Expression]) =
      new IcebergPruning(table, target.output, ScanContext(conjuncts), planner)
    command match {
      case _ if operation.isInstanceOf[SupportsDelta] =>
        Some(pruning(RowFilters.above(target, command.query)))
      // Without the sub-query every file that Iceberg does not skip is rewritten.
      case replace: ReplaceData if hasSubquery(replace) =>
        val skipping = pruning(RowFilters.conjuncts(replace.condition))
        Some(new IcebergReplacedFiles(skipping, unchanged(ReasonCode.FilesOfSubquery, planner)))
      case _ => None
    }
  }

  private def hasSubquery(replace: ReplaceData): Boolean =
    SQLConf.get.runtimeRowLevelOperationGroupFilterEnabled &&
      replace.groupFilterCondition.exists(_ != TrueLiteral)

  private def unchanged(why: ReasonCode, planner: ScanPlanner) =
    new IcebergPassThrough(
      table.name,
      Reason(why, "command" -> operation.command.toString),
      planner.estimates)
}

private[scan] object IcebergCommand {
  private val FileColumn = "_file"

  /**
   * Whether a sub-query has the form of the one that Spark adds to a copy-on-write command: the distinct files of the rows of
   * one relation, which reads the target at the snapshot that the command changes.
   *
   * @param target None: any table
   */
  def findsFiles(subquery: LogicalPlan, target: Option[IcebergScan]): Boolean = subquery match {
    case Subquery(files: Aggregate, false) =>
      (files.groupingExpressions ++ files.aggregateExpressions) match {
        case Seq(by: Attribute, shown) => by.semanticEquals(shown) && isFileOf(target, by, files.child)
        case _ => false
      }
    case _ => false
  }

  private def isFileOf(target: Option[IcebergScan], column: Attribute, rows: LogicalPlan): Boolean = {
    val reads =
      rows.collect { case relation: DataSourceV2Relation if relation.outputSet.contains(column) => relation }
    onlyOne(reads).exists { read =>
      read.output.exists(own => own.semanticEquals(column) && isFile(own)) &&
      IcebergScan.fromTable(read.table).exists(table => target.forall(table.isSameSnapshot))
    }
  }

  private def isFile(column: Attribute): Boolean =
    column.name == FileColumn && MetadataAttribute.isValid(column.metadata)

  /** The one relation of a command that reads its target; None where it is read more than once. */
  private def targetOf(command: V2WriteCommand): Option[DataSourceV2Relation] =
    onlyOne(command.query.collect {
      case relation: DataSourceV2Relation if RowLevelTarget.isRead(relation) => relation
    })

  private def onlyOne[A](found: Seq[A]): Option[A] = if (found.size == 1) found.headOption else None
}

/**
 * The scan of a copy-on-write command, whose files are replaced: it stays whole. Iceberg is not asked about conditions by which
 * it loses rows.
 */
private final class IcebergReplacedFiles(skipping: IcebergPruning, unchanged: IcebergPassThrough)
  extends IcebergInterceptor {

  override val fingerprint: AnyRef = (skipping.fingerprint, unchanged.fingerprint)
  override def keepsFromFormat(predicate: Predicate): Boolean = skipping.keepsFromFormat(predicate)
  override def prepare(scan: AnyRef, pushed: PushedPredicates): AnyRef = unchanged.prepare(scan, pushed)
}
