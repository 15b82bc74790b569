package org.metastore.spark.explain

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.CommandExecutionMode

import org.metastore.spark.adapter.ScanDecisions

/** What would be read for a query, without running it. */
object ExplainQuery {

  /**
   * Plans a query and tells, for each of its scans and data files, whether it would be read and why.
   *
   * A scan that is left alone before its files are known has one row without a path. Commands are planned, never run.
   *
   * @throws org.apache.spark.sql.AnalysisException the query itself is wrong
   */
  def decisions(session: SparkSession, query: String): Seq[FileDecision] = {
    val plan = session.sessionState.sqlParser.parsePlan(query)
    val planned = session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)
    ScanDecisions.of(planned.executedPlan).zipWithIndex.flatMap { case (decision, scan) => decision.perFile(scan) }
  }
}
