package org.metastore.spark.pruning

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions
import org.apache.spark.sql.catalyst.expressions.Expression

import org.metastore.spark.pruning.Condition.{And, Evaluated, Or}
import org.metastore.spark.reason.{Reason, ReasonCode}

/**
 * A conjunct or a part of one in negation normal form.
 *
 * @param leaf the column that it reads, if it reads no other
 */
private[pruning] final case class CompiledCondition(
    rules: Condition,
    expression: Expression,
    leaf: Option[Expression])

/** Compiles a conjunct into negation normal form. */
private[pruning] final class Conjuncts(columns: ColumnLookup, allowance: EvaluationAllowance) {
  private val leaves = new LeafPredicates(columns, allowance)

  def compile(conjunct: Expression): CompiledCondition =
    ConjunctRefusal.reason(conjunct).fold(normal(conjunct, negated = false)) { reason =>
      CompiledCondition(Condition.Unknown(reason), conjunct, None)
    }

  /** The consequences of several conjuncts on the same column. */
  def combine(conjuncts: Seq[CompiledCondition]): Seq[Consequence] = {
    val indicesOfLeaf = mutable.LinkedHashMap.empty[Expression, mutable.ArrayBuffer[Int]]
    for {
      (conjunct, i) <- conjuncts.zipWithIndex
      leaf <- conjunct.leaf
      if !conjunct.expression.isInstanceOf[expressions.IsNotNull]
    } indicesOfLeaf.getOrElseUpdate(leaf.canonicalized, mutable.ArrayBuffer.empty) += i
    val indexed = conjuncts.toIndexedSeq
    val several = indicesOfLeaf.values.toSeq.filter(_.size > 1)
    several.map { indices =>
      Consequence(uniteValues(indices.toSeq.map(indexed)), indices.toSeq)
    }
  }

  /** One condition of several on one column: Spark evaluates all of them on a value. */
  private def uniteValues(conditions: Seq[CompiledCondition]): Condition = {
    val conjunction = conditions.map(_.expression).reduceLeft(expressions.And(_, _))
    val noRule =
      Condition.Unknown(Reason(ReasonCode.UnsupportedExpression, "expression" -> ConjunctText(conjunction)))
    withValues(CompiledCondition(noRule, conjunction, conditions.head.leaf))
  }

  /** Pushes NOT down to the leaves (De Morgan): only the rule of a leaf can be negated. */
  private def normal(condition: Expression, negated: Boolean): CompiledCondition = condition match {
    case expressions.Not(child) =>
      normal(child, !negated)
    case both @ (_: expressions.And | _: expressions.Or) =>
      val isOr = both.isInstanceOf[expressions.And] == negated
      both.children.map(normal(_, negated)).reduceLeft(join(isOr))
    case EquivalentCondition(equal) =>
      fromEquivalent(condition, equal, negated)
    case expressions.EqualNullSafe(child, expressions.Literal(truth: Boolean, _))
        if columns.find(child).isLeft =>
      val same = normal(child, negated == truth)
      if (negated) withLeaf(Or(same.rules, leaves.isNull(child)), condition, negated)
      else same
    case leaf =>
      val rules = if (negated) leaves.negative(leaf) else leaves.positive(leaf)
      withLeaf(rules, leaf, negated)
  }

  /** Takes the rules of an equal condition; values are evaluated by the condition as written. */
  private def fromEquivalent(
      condition: Expression,
      equal: Expression,
      negated: Boolean): CompiledCondition = {
    val same = normal(equal, negated)
    val written = withLeaf(same.rules, condition, negated)
    if (written.leaf.isDefined) written else same
  }

  private def withLeaf(rules: Condition, condition: Expression, negated: Boolean): CompiledCondition = {
    val leaf = ValuePredicate.columnOf(condition).filter(columns.find(_).isRight)
    val expression = if (negated) expressions.Not(condition) else condition
    CompiledCondition(rules, expression, leaf)
  }

  private def join(isOr: Boolean)(left: CompiledCondition, right: CompiledCondition): CompiledCondition = {
    val leaf = left.leaf.filter(column => right.leaf.exists(_.semanticEquals(column)))
    val (first, second) =
      if (leaf.isDefined) (left.rules, right.rules)
      else (withValues(left), withValues(right))
    if (isOr) CompiledCondition(Or(first, second), expressions.Or(left.expression, right.expression), leaf)
    else CompiledCondition(And(first, second), expressions.And(left.expression, right.expression), leaf)
  }

  /** The rules, with the expression itself if listed values may decide more than the rules do. */
  def withValues(condition: CompiledCondition): Condition = condition.leaf match {
    case Some(leaf) if !condition.rules.leaves.forall(_.isDecided) =>
      columns.find(leaf).fold(_ => condition.rules, Evaluated(condition.rules, _, condition.expression, leaf))
    case _ => condition.rules
  }
}
