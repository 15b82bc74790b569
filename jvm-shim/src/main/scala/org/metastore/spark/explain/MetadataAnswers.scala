package org.metastore.spark.explain

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.metastore.SessionCopy

import org.metastore.spark.pruning.ScanDecision
import org.metastore.spark.reason.{Reason, ReasonCode}
import org.metastore.spark.scan.ScanDecisions
import org.metastore.spark.tables.{ReadPermission, TableFormats}

/** Finds the counts and bounds that a table format answers from its metadata, without a scan in the plan. */
private[explain] object MetadataAnswers {

  /**
   * One decision for each scan that a query would have if the formats did not answer it.
   *
   * @param scans the scans that the query has
   */
  def decisions(
      session: SparkSession,
      planned: QueryExecution,
      scans: Seq[ScanDecision]): Seq[ScanDecision] =
    if (!mayBeAnswered(planned)) Nil
    else {
      val copy = SessionCopy(session)
      for (format <- TableFormats.all; setting <- format.metadataAnswers) copy.conf.set(setting, "false")
      val unanswered = ReadPermission.asActive(copy) {
        ScanDecisions.fromPlan(PlannedQuery.fromPlan(copy, planned.logical).executedPlan)
      }
      val tables = unanswered.map(_.table).diff(scans.map(_.table))
      tables.map(ScanDecision.withoutPruning(_, Reason(ReasonCode.AnsweredByFormat)))
    }

  // A format's answer is a local relation in the plan.
  private def mayBeAnswered(planned: QueryExecution): Boolean =
    contains(planned.analyzed)(canBeAnswered) &&
      contains(planned.optimizedPlan)(_.isInstanceOf[LocalRelation])

  private def canBeAnswered(node: LogicalPlan): Boolean = node match {
    case relation: LogicalRelation =>
      TableFormats.all.exists(format => format.metadataAnswers.isDefined && format.reads(relation))
    case _ => false
  }

  private def contains(plan: LogicalPlan)(test: LogicalPlan => Boolean): Boolean =
    plan.collectWithSubqueries { case node if test(node) => node }.nonEmpty
}
