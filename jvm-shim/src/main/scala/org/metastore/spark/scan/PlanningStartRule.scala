package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

import org.metastore.spark.conf.MetastoreConf
import org.metastore.spark.reason.Attempt

/** Marks the beginning of each query's planning: Spark normalizes a plan once, just before it is optimized. */
final class PlanningStartRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    ScanPlanner.recover("A query", ()) {
      val write = PlanScope.write(plan)
      PlanningContext.begin(write, Attempt.orNone(findsRows(plan, write)).getOrElse(false))
      JoinPruningRule.register(session)
    }
    plan
  }

  /** Whether a plan is of a command that looks for its rows by statistics. */
  private def findsRows(plan: LogicalPlan, write: Option[PlanScope.Write]): Boolean =
    new MetastoreConf(conf).pruningRowLevel != "off" &&
      (write.exists(_.rowLevel) || ScanFormats.isOfCommand(plan))
}
