package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, JoinHint, LeafNode, LogicalPlan, Union}

import org.metastore.spark.reason.Indexed

/** Keeps joins in the written order whose keys Spark cannot estimate: from a `UNION`, computed, or compared by `<=>`. */
object QueryJoinOrder {

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
    case join @ ExtractEquiJoinKeys(_: InnerLike, leftKeys, rightKeys, _, _, _, _, JoinHint.NONE)
        if !leftKeys.zip(rightKeys).exists(areKnown(_, unknown)) =>
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

  /** Whether Spark has statistics of two keys that a join compares. */
  private def areKnown(keys: (Expression, Expression), unknown: Set[ExprId]): Boolean =
    keys match {
      case (a: Attribute, b: Attribute) => !unknown(a.exprId) && !unknown(b.exprId)
      case _ => false
    }
}
