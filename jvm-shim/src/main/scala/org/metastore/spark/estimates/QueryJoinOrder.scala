package org.metastore.spark.estimates

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, JoinHint, LeafNode, LogicalPlan, Union}

import org.metastore.spark.reason.Indexed

/** Keeps the order of joins by keys that Spark cannot estimate: of `UNION`, computed, or under `<=>`. */
object QueryJoinOrder {

  // An empty hint: Spark reorders no join that has a hint.
  private val KeepOrder = JoinHint(Some(HintInfo()), None)

  /** The plan with such joins marked. */
  def keep(plan: LogicalPlan): LogicalPlan = markJoins(plan)._1

  /** The plan with marked joins, and those of its columns that have no statistics in Spark. */
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
        if !leftKeys.zip(rightKeys).exists(haveStatistics(_, unknown)) =>
      val marked = join.copy(hint = KeepOrder)
      marked.copyTagsFrom(join)
      (marked, unknown)
    case node =>
      (node, unknown ++ computed(node, unknown))
  }

  private def ids(columns: Seq[Attribute]): Set[ExprId] = Indexed.set(columns)(_.exprId)

  /** The columns that a node computes; a new name of a column with statistics is none. */
  private def computed(node: LogicalPlan, unknown: Set[ExprId]): Set[ExprId] = {
    val renamed = node.expressions.collect {
      case alias @ Alias(column: Attribute, _) if !unknown(column.exprId) => alias.exprId
    }
    ids(node.output) -- ids(node.children.flatMap(_.output)) -- renamed
  }

  /** Whether Spark has statistics of both keys that a join compares. */
  private def haveStatistics(keys: (Expression, Expression), unknown: Set[ExprId]): Boolean =
    keys match {
      case (a: Attribute, b: Attribute) => !unknown(a.exprId) && !unknown(b.exprId)
      case _ => false
    }
}
