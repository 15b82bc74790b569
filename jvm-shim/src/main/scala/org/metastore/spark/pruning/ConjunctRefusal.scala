package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.{
  Expression, OuterReference, PlanExpression, UserDefinedExpression
}

import org.metastore.spark.reason.{Reason, ReasonCode}

/** Conjuncts that planning may not use: their answer is not fixed while a query is planned, or users' code gives it. */
private[spark] object ConjunctRefusal {

  /** The reason not to use a conjunct, or None. */
  def reason(conjunct: Expression): Option[Reason] = reason(conjunct, _ => false)

  /** The same, with users' functions that are known by their version. */
  def reason(conjunct: Expression, isKnown: UserDefinedExpression => Boolean): Option[Reason] = {
    def text = "expression" -> conjunct.sql
    if (!conjunct.deterministic) Some(Reason(ReasonCode.NotDeterministic, text))
    else conjunct.collectFirst {
      case _: PlanExpression[_] | _: OuterReference =>
        Reason(ReasonCode.Subquery, text)
      case call: UserDefinedExpression if !isKnown(call) =>
        Reason(ReasonCode.UserFunction, text)
    }
  }
}
