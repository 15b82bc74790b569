package org.metastore.spark.sql

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.analysis.ResolveDataSource
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedDataSource}
import org.apache.spark.sql.classic

/** A data source that a query names and the analyzer has not found yet. */
private[sql] object NamedSource {

  /** Matches such a source, by its name. */
  def unapply(plan: LogicalPlan): Option[String] = plan match {
    case UnresolvedDataSource(name, _, _, _, _) => Some(name)
    case _ => None
  }

  /** Finds the source as Spark does. */
  def resolve(plan: LogicalPlan, session: SparkSession): LogicalPlan = session match {
    case ours: classic.SparkSession => new ResolveDataSource(ours).apply(plan)
    case _ => plan
  }
}
