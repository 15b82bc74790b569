package org.metastore.spark.explain

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{AppendData, LogicalPlan, OverwriteByExpression, OverwritePartitionsDynamic, V2CreateTableAsSelectPlan}
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand

import org.metastore.spark.MetastoreConf
import org.metastore.spark.adapter.{MetadataAnswers, ScanDecisions}
import org.metastore.spark.sql.ReadPermission

/** What would be read for a query, without running it. */
object ExplainQuery {

  /**
   * Plans a query and tells, for each of its scans and data files, whether it would be read and why.
   *
   * A scan that is left alone before its files are known has one row without a path. Commands are planned, never run. The
   * query of a write that Spark plans when the command runs (CREATE TABLE .. AS SELECT) is planned by itself.
   *
   * @throws org.apache.spark.sql.AnalysisException the query itself is wrong, or reads a table that is not shown to this
   *                                               user as it is: reasons quote values
   */
  def decisions(session: SparkSession, query: String): Seq[FileDecision] = {
    val plan = session.sessionState.sqlParser.parsePlan(query)
    val planned = session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)
    ReadPermission.requireOfAll(session, planned.analyzed)
    val shown = ScanDecisions.of(planned.executedPlan)
    val answered = MetadataAnswers.of(session, plan, planned, shown)
    val decisions = shown ++ queryOfWrite(planned.analyzed).filter(_ => shown.isEmpty).toSeq.flatMap { written =>
      val read = ScanDecisions.of(session.sessionState.executePlan(written).executedPlan)
      if (MetastoreConf.of(session).pruneInsideWrites) read else read.map(_.withoutPruning(Reason(ReasonCode.InsideWrite)))
    }
    (decisions ++ answered).zipWithIndex.flatMap { case (decision, scan) => decision.perFile(scan) }
  }

  /** The query whose rows a table gets. */
  private def queryOfWrite(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case create: V2CreateTableAsSelectPlan => Some(create.query)
    case insert @ (_: AppendData | _: OverwriteByExpression | _: OverwritePartitionsDynamic) => insert.children.headOption
    case CreateDataSourceTableAsSelectCommand(_, _, query, _) => Some(query)
    case _ => None
  }
}
