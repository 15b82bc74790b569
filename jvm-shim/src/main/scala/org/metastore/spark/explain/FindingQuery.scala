package org.metastore.spark.explain

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{And, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical.{
  DeleteFromTable, Filter, Join, JoinHint, LogicalPlan, MergeIntoTable, UpdateTable
}
import org.apache.spark.sql.execution.SparkPlan

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.scan.RowLevelPruning
import org.metastore.spark.tables.{LakeTable, QueryPermission, TableFormats}

/**
 * The query by which UPDATE, DELETE or MERGE finds its rows, for formats that plan it when the command runs.
 *
 * @param analyzed the query of the rows that the command may change
 * @param command  the first word of the statement
 */
private[explain] final class FindingQuery private (
    analyzed: LogicalPlan,
    target: LakeTable,
    command: String) {

  /** The decisions on the scans of the query; `find` finds them in its plan. */
  def decisions(session: SparkSession, find: SparkPlan => Seq[ScanDecision]): Seq[ScanDecision] = {
    QueryPermission.require(session, analyzed)
    val scans = find(PlannedQuery.fromPlan(session, analyzed).executedPlan)
    if (isPruned(session)) scans
    else scans.map(_.withoutPruning(Reason(ReasonCode.RowLevelCommand, "command" -> command)))
  }

  private def isPruned(session: SparkSession): Boolean = {
    val allowed = RowLevelPruning.allowed(MetastoreConf.fromSession(session), target.properties)
    if (command == FindingQuery.Merge) allowed.byKeys else allowed.byConditions
  }
}

private[explain] object FindingQuery extends PredicateHelper {
  private val Merge = "MERGE"

  /** Finds the query of a statement; None if no rows change, or the format plans commands as queries. */
  def fromStatement(session: SparkSession, statement: LogicalPlan): Option[FindingQuery] =
    for {
      (command, rows) <- rowsToChange(statement)
      analyzed = PlannedQuery.fromPlan(session, rows).analyzed
      target <- TableFormats.open(leftmostLeaf(analyzed))
      if target.plansCommandsLate
    } yield new FindingQuery(withoutTargetConditions(analyzed), target, command)

  private def rowsToChange(statement: LogicalPlan): Option[(String, LogicalPlan)] = statement match {
    case delete: DeleteFromTable => Some("DELETE" -> Filter(delete.condition, delete.table))
    case update: UpdateTable =>
      Some("UPDATE" -> update.condition.fold(update.table)(Filter(_, update.table)))
    // Rows without a match may be in any file.
    case merge: MergeIntoTable if merge.notMatchedBySourceActions.nonEmpty => Some(Merge -> merge.targetTable)
    case merge: MergeIntoTable =>
      val condition = Some(merge.mergeCondition)
      Some(Merge -> Join(merge.targetTable, merge.sourceTable, LeftSemi, condition, JoinHint.NONE))
    case _ => None
  }

  /** The leaf of the target, which a query names first. */
  private def leftmostLeaf(plan: LogicalPlan): LogicalPlan = plan.collectLeaves().head

  // The format numbers the rows of a MERGE's target below the conditions on it, so that these choose no
  // files.
  private def withoutTargetConditions(analyzed: LogicalPlan): LogicalPlan = analyzed match {
    case join: Join =>
      val conjuncts = join.condition.toSeq.flatMap(splitConjunctivePredicates)
      val remaining = conjuncts.filterNot(_.references.subsetOf(join.left.outputSet))
      join.copy(condition = remaining.reduceOption(And(_, _)))
    case other => other
  }
}
