package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Statistics}
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * The call of a table function before it is answered. Spark looks functions up with its catalog locked, and every other
 * statement of the session would wait for what is read there.
 */
final case class FunctionCall(output: Seq[Attribute], function: String)(val read: Seq[Attribute] => LogicalPlan)
  extends LeafNode with MultiInstanceRelation {

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(read)
  override def newInstance(): LogicalPlan = copy(output = output.map(_.newInstance()))(read)
  override def computeStats(): Statistics = Statistics(sizeInBytes = conf.defaultSizeInBytes)

  def answer: LogicalPlan = read(output)
}

/** Answers calls once all names are resolved and nothing is locked; still in analysis, so that mistakes are told at once. */
object FunctionCallRule extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators { case call: FunctionCall => call.answer }
}
