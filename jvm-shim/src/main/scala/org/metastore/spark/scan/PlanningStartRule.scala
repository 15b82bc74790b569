package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.{Attempt, QueryWarnings}

/** Begins each query's planning: Spark normalizes a plan once, just before it optimizes it. */
final class PlanningStartRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    ScanPlanner.recover("A query", ()) {
      QueryWarnings.begin() // first: if the rest always fails, each query still says so
      val write = PlanScope.write(plan)
      PlanningContext.begin(write, Attempt.orNone(findsRows(plan, write)).getOrElse(false))
      JoinPruningRule.register(session)
    }
    plan
  }

  /** Whether a command finds its rows by this plan and by statistics. */
  private def findsRows(plan: LogicalPlan, write: Option[PlanScope.Write]): Boolean =
    new MetastoreConf(conf).pruningRowLevel != "off" &&
      (write.exists(_.isRowLevel) || ScanFormats.isCommandQuery(plan))
}
