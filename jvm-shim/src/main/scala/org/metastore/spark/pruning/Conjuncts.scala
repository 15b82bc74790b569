package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.{And, Expression, Not, Or, OuterReference, PlanExpression, UserDefinedExpression}

import org.metastore.spark.explain.{Reason, ReasonCode}

/** Compiles a conjunct into negation normal form. */
private[pruning] final class Conjuncts(columns: ColumnLookup) {
  private val leaves = new LeafPredicates(columns)

  def compile(conjunct: Expression): Condition =
    Conjuncts.refusal(conjunct).fold(normal(conjunct, negated = false))(Condition.Unknown)

  /** NOT goes down to the leaves first (De Morgan); only there it is known whether a rule is exact. */
  private def normal(condition: Expression, negated: Boolean): Condition = condition match {
    case Not(child) => normal(child, !negated)
    case And(left, right) if negated => Condition.Or(normal(left, negated), normal(right, negated))
    case And(left, right) => Condition.And(normal(left, negated), normal(right, negated))
    case Or(left, right) if negated => Condition.And(normal(left, negated), normal(right, negated))
    case Or(left, right) => Condition.Or(normal(left, negated), normal(right, negated))
    case leaf => if (negated) leaves.negative(leaf) else leaves.positive(leaf)
  }
}

private[spark] object Conjuncts {

  /** Why nothing may be made of a conjunct: its answer is not fixed while a query is planned, or users' code gives it. */
  def refusal(conjunct: Expression): Option[Reason] = {
    val text = "expression" -> conjunct.sql
    if (!conjunct.deterministic) Some(Reason(ReasonCode.NotDeterministic, text))
    else conjunct.collectFirst {
      case _: PlanExpression[_] | _: OuterReference => Reason(ReasonCode.Subquery, text)
      case _: UserDefinedExpression => Reason(ReasonCode.UserFunction, text)
    }
  }
}
