package org.metastore.spark.cardinality

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, Join, JoinHint, LeafNode, LogicalPlan, Union}

/**
 * Leaves joins where they were written of whose keys Spark's estimator knows nothing: keys that come out of a `UNION`, that are
 * computed (`cast(a.id as bigint) = b.id`) or compared by `<=>`, or whose type has no statistics. It takes such a join for a cross join, and puts
 * it last or joins the smallest tables to it first, whatever they filter. Joins below and above are still reordered.
 */
object QueryJoinOrder extends PredicateHelper {

  // A hint that asks for nothing: Spark reorders no join that has one.
  private val inPlace = JoinHint(Some(HintInfo()), None)

  /** The plan with such joins marked. */
  def keep(plan: LogicalPlan): LogicalPlan = markJoins(plan)._1

  /** With the columns of the plan of which nothing is known. */
  private def markJoins(plan: LogicalPlan): (LogicalPlan, Set[ExprId]) = plan match {
    case leaf: LeafNode => (leaf, leaf.output.filterNot(column => ScanStatistics.isSupported(column.dataType)).map(_.exprId).toSet)
    case other =>
      val children = other.children.map(markJoins)
      val unknown = children.flatMap(_._2).toSet
      other.withNewChildren(children.map(_._1)) match {
        case union: Union => (union, union.output.map(_.exprId).toSet)
        case join @ Join(left, right, _: InnerLike, Some(condition), JoinHint.NONE) if isUnknown(condition, left, right, unknown) =>
          val kept = join.copy(hint = inPlace)
          kept.copyTagsFrom(join)
          (kept, unknown)
        case node => (node, unknown ++ computed(node, unknown))
      }
  }

  /** Of what a node adds to its children's columns, all that is no other name of one that is known. */
  private def computed(node: LogicalPlan, unknown: Set[ExprId]): Set[ExprId] = {
    val renamed = node.expressions.collect { case alias @ Alias(of: Attribute, _) if !unknown(of.exprId) => alias.exprId }
    node.output.map(_.exprId).toSet -- node.children.flatMap(_.output).map(_.exprId) -- renamed
  }

  private def isUnknown(condition: Expression, left: LogicalPlan, right: LogicalPlan, unknown: Set[ExprId]): Boolean = {
    val keys = splitConjunctivePredicates(condition).collect {
      case equality @ Equality(a, b) if joins(a, b, left, right) || joins(b, a, left, right) => equality
    }
    keys.nonEmpty && !keys.exists {
      case EqualTo(a: Attribute, b: Attribute) => !unknown(a.exprId) && !unknown(b.exprId)
      case _ => false
    }
  }

  private def joins(a: Expression, b: Expression, left: LogicalPlan, right: LogicalPlan): Boolean =
    a.references.nonEmpty && b.references.nonEmpty && canEvaluate(a, left) && canEvaluate(b, right)
}
