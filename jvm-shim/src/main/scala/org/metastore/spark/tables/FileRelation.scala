package org.metastore.spark.tables

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/** A leaf of a plan that reads files by Spark's own file source. */
private[spark] object FileRelation {
  def unapply(plan: LogicalPlan): Option[HadoopFsRelation] = plan match {
    case logical: LogicalRelation => logical.relation match {
        case files: HadoopFsRelation => Some(files)
        case _ => None
      }
    case _ => None
  }
}
