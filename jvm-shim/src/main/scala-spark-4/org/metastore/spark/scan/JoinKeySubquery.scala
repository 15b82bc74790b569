package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Spark's filter by the keys of one side of a join. */
private[scan] object JoinKeySubquery {

  /**
   * The filter of a key by one of the keys of the join's other side. One source serves Spark 4.0 to 4.3, of which the last has
   * one more field.
   *
   * @param onlyInBroadcast whether the keys come from the broadcast of the join alone; else Spark may run a query for them
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
