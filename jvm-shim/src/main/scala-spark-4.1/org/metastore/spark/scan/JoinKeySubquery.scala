package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Spark's filter by the keys of one side of a join. */
private[scan] object JoinKeySubquery {

  /**
   * The filter of a key by one of the keys of the join's other side. This build serves
   * Spark 4.3 too, where the class has one more field.
   */
  def apply(
      key: Expression,
      build: LogicalPlan,
      buildKeys: Seq[Expression],
      index: Int,
      onlyInBroadcast: Boolean): Expression =
    CaseClassCopy.create(
      classOf[DynamicPruningSubquery],
      "pruningKey" -> key,
      "buildQuery" -> build,
      "buildKeys" -> buildKeys,
      "broadcastKeyIndices" -> Seq(index),
      "onlyInBroadcast" -> onlyInBroadcast)
}
