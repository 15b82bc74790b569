package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan

/** Copies the tags of a node to the node that replaces it. */
private[scan] object WithTags {
  def apply[P <: LogicalPlan](copy: P, original: LogicalPlan): P = {
    copy.copyTagsFrom(original)
    copy
  }

  def apply[P <: SparkPlan](copy: P, original: SparkPlan): P = {
    copy.copyTagsFrom(original)
    copy
  }
}
