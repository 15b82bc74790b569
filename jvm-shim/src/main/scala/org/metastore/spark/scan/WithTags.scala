package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan

/** A copy of a node with the tags of the one that it stands for. */
private[scan] object WithTags {
  def apply[P <: LogicalPlan](copy: P, of: LogicalPlan): P = {
    copy.copyTagsFrom(of)
    copy
  }

  def apply[P <: SparkPlan](copy: P, of: SparkPlan): P = {
    copy.copyTagsFrom(of)
    copy
  }
}
