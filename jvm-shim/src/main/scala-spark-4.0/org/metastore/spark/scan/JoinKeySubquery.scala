package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{DynamicPruningSubquery, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Spark's filter by the keys in the broadcast of a join. */
private[scan] object JoinKeySubquery {

  /** The filter of a key by one of the keys of the join's other side; it runs nothing of its own. */
  def apply(key: Expression, build: LogicalPlan, buildKeys: Seq[Expression], index: Int): Expression =
    DynamicPruningSubquery(key, build, buildKeys, Seq(index), onlyInBroadcast = true)
}
