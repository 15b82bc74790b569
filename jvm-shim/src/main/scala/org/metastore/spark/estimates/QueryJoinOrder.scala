package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint, LeafNode, LogicalPlan, Union}

import org.metastore.spark.reason.Indexed

/** Keeps joins in the written order whose keys Spark cannot estimate: from a `UNION`, computed, or compared by `<=>`. */
object QueryJoinOrder extends PredicateHelper {

  // A hint that asks for nothing: Spark reorders no join that has one.
  private val inPlace = JoinHint(Some(HintInfo()), None)

  /** The plan with such joins marked. */
  def keep(plan: LogicalPlan): LogicalPlan = markJoins(plan)._1

  /** The plan with marked joins, and its columns that Spark has no statistics of. */
  private def markJoins(plan: LogicalPlan): (LogicalPlan, Set[ExprId]) = plan match {
    case leaf: LeafNode =>
      val unsupported = leaf.output.filterNot(column => EstimatedTypes.isSupported(column.dataType))
      (leaf, ids(unsupported))
    case other =>
      val children = other.children.map(markJoins)
      val unknown = children.flatMap(_._2).toSet
      markNode(other.withNewChildren(children.map(_._1)), unknown)
  }

  private def markNode(plan: LogicalPlan, unknown: Set[ExprId]): (LogicalPlan, Set[ExprId]) = plan match {
    case union: Union =>
      (union, ids(union.output))
    case join @ Join(left, right, _: InnerLike, Some(condition), JoinHint.NONE)
        if isUnknown(condition, left, right, unknown) =>
      val marked = join.copy(hint = inPlace)
      marked.copyTagsFrom(join)
      (marked, unknown)
    case node =>
      (node, unknown ++ computed(node, unknown))
  }

  private def ids(columns: Seq[Attribute]): Set[ExprId] = Indexed.set(columns)(_.exprId)

  /** The columns that a node adds, except other names of known columns. */
  private def computed(node: LogicalPlan, unknown: Set[ExprId]): Set[ExprId] = {
    val renamed = node.expressions.collect {
      case alias @ Alias(column: Attribute, _) if !unknown(column.exprId) => alias.exprId
    }
    ids(node.output) -- ids(node.children.flatMap(_.output)) -- renamed
  }

  /** Whether a join compares keys, and Spark has statistics of none of them. */
  private def isUnknown(
      condition: Expression,
      left: LogicalPlan,
      right: LogicalPlan,
      unknown: Set[ExprId]): Boolean = {
    val keys = splitConjunctivePredicates(condition).collect {
      case equality @ Equality(a, b) if joins(a, b, left, right) || joins(b, a, left, right) => equality
    }
    keys.nonEmpty && !keys.exists(isKnown(_, unknown))
  }

  private def isKnown(equality: Expression, unknown: Set[ExprId]): Boolean = equality match {
    case EqualTo(a: Attribute, b: Attribute) =>
      !unknown(a.exprId) && !unknown(b.exprId)
    case _ => false
  }

  private def joins(a: Expression, b: Expression, left: LogicalPlan, right: LogicalPlan): Boolean =
    a.references.nonEmpty && b.references.nonEmpty && canEvaluate(a, left) && canEvaluate(b, right)
}
