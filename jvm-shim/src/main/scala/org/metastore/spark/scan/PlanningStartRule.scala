package org.metastore.spark.scan

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/** Marks the beginning of each query's planning: Spark normalizes a plan once, just before it is optimized. */
final class PlanningStartRule(session: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = {
    ScanPlanner.recover("A query", ()) {
      PlanningContext.begin(plan, ScanFormats.isOfCommand(plan))
      JoinPruningRule.register(session)
    }
    plan
  }
}
