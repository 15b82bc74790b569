package org.metastore.spark.explain

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution}

import org.metastore.spark.tables.TableLookup

/** Plans a query for a session, and never runs it: a command is planned only. */
private[explain] object PlannedQuery {

  /**
   * Parses and analyzes a query.
   *
   * @throws org.apache.spark.sql.AnalysisException the text is no query
   * @throws org.metastore.spark.reason.MetastoreException Spark has no type for a column of one of its tables
   */
  def fromText(session: SparkSession, text: String): QueryExecution = {
    val parsed = session.sessionState.sqlParser.parsePlan(text)
    val planned = fromPlan(session, parsed)
    try planned.assertAnalyzed()
    catch {
      case e: UnsupportedOperationException =>
        TableLookup.requireReadable(session, parsed)
        throw e
    }
    planned
  }

  def fromPlan(session: SparkSession, plan: LogicalPlan): QueryExecution =
    session.sessionState.executePlan(plan, CommandExecutionMode.SKIP)
}
