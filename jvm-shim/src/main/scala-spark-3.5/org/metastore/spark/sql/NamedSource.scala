package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * A data source that a query names and the analyzer has not found yet: Spark 3.5 finds sources before it
 * analyzes.
 */
private[sql] object NamedSource {

  /** Matches no plan. */
  def unapply(plan: LogicalPlan): Option[String] = None

  /** Returns the plan as it is. */
  def resolve(plan: LogicalPlan, session: SparkSession): LogicalPlan = plan
}
