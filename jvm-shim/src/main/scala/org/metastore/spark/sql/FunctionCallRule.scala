package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/** Reads the rows of the calls that are answered in analysis, after Spark has resolved the names. */
object FunctionCallRule extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case call: FunctionCall if call.answer.isInstanceOf[Answer.InAnalysis] => call.read((_, _) => true)
    case call: UnresolvedTableValuedFunction =>
      TableFunctions.called(call.name).foreach(Arguments.requireQuotes(_, call.functionArgs))
      call
  }
}
