package org.metastore.spark.explain

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution}

/** Plans a query for a session, and never runs it: a command is planned only. */
private[explain] object PlannedQuery {

  /** @throws org.apache.spark.sql.AnalysisException the text is no query */
  def fromText(session: SparkSession, text: String): QueryExecution =
    fromPlan(session, session.sessionState.sqlParser.parsePlan(text))

  def fromPlan(session: SparkSession, plan: LogicalPlan): QueryExecution =
    session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)
}
