package org.metastore.spark.adapter

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

import org.metastore.spark.explain.{Reason, ReasonCode, ScanDecision}
import org.metastore.spark.sql.ReadPermission
import org.metastore.spark.tables.{DeltaTable, Reflection}

/** Counts and bounds that Delta answers from its log: no scan is left in the plan. */
object MetadataAnswers {
  private val FromMetadata = "spark.databricks.delta.optimizeMetadataQuery.enabled"

  /**
   * One decision for each scan that a query would have if Delta did not answer it.
   *
   * @param plan    the parsed query, `planned` what it becomes, `shown` the scans that this has
   */
  def of(session: SparkSession, plan: LogicalPlan, planned: QueryExecution, shown: Seq[ScanDecision]): Seq[ScanDecision] =
    if (!holds(planned.analyzed)(isDelta) || !holds(planned.optimizedPlan)(_.isInstanceOf[LocalRelation])) Nil
    else {
      val reading = Reflection.call[SparkSession](session, "cloneSession")
      reading.conf.set(FromMetadata, "false")
      val all = ReadPermission.asActive(reading)(ScanDecisions.of(reading.sessionState.executePlan(plan, CommandExecutionMode.SKIP).executedPlan))
      all.map(_.table).diff(shown.map(_.table)).map(ScanDecision.withoutPruning(_, Reason(ReasonCode.AnsweredByFormat)))
    }

  private def holds(plan: LogicalPlan)(test: LogicalPlan => Boolean): Boolean =
    plan.collectWithSubqueries { case node if test(node) => node }.nonEmpty

  private def isDelta(node: LogicalPlan): Boolean = node match {
    case relation: LogicalRelation => relation.relation match {
      case files: HadoopFsRelation => DeltaTable.is(files)
      case _ => false
    }
    case _ => false
  }
}
