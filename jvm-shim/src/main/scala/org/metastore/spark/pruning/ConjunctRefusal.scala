package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.{
  Expression, OuterReference, PlanExpression, UserDefinedExpression
}

import org.metastore.spark.reason.{Reason, ReasonCode}

/** Refuses conjuncts whose result is not fixed while a query is planned, and those that call users' code. */
private[spark] object ConjunctRefusal {

  /** The reason not to use a conjunct, or None. */
  def reason(conjunct: Expression): Option[Reason] = reason(conjunct, _ => false)

  /** The reason not to use a conjunct, or None; it may call users' functions that have a version. */
  def reason(conjunct: Expression, hasVersion: UserDefinedExpression => Boolean): Option[Reason] = {
    def text = "expression" -> conjunct.sql
    if (!conjunct.deterministic) Some(Reason(ReasonCode.NotDeterministic, text))
    else conjunct.collectFirst {
      case _: PlanExpression[_] | _: OuterReference =>
        Reason(ReasonCode.Subquery, text)
      case call: UserDefinedExpression if !hasVersion(call) =>
        Reason(ReasonCode.UserFunction, text)
    }
  }
}
