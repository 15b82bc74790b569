package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{
  Alias, AttributeMap, Expression, InputFileName, MonotonicallyIncreasingID, NamedExpression, PredicateHelper
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}

import org.metastore.spark.reason.Indexed

/** Finds the filters above a relation: they hold for all rows that a command gets from it. */
private[scan] object RowFilters extends PredicateHelper {
  def conjuncts(condition: Expression): Seq[Expression] = splitConjunctivePredicates(condition)

  /** The conjuncts of the filters directly above a relation. */
  def above(relation: LogicalPlan, plan: LogicalPlan): Seq[Expression] =
    find(relation, plan, Nil).getOrElse(Nil)

  private def find(
      relation: LogicalPlan,
      plan: LogicalPlan,
      filters: Seq[Expression]): Option[Seq[Expression]] = plan match {
    case node if node eq relation => Some(filters)
    case Filter(condition, child) => find(relation, child, filters ++ conjuncts(condition))
    case Project(list, child) if list.forall(isPlain) =>
      find(relation, child, filters.map(below(list, _)))
    case other => Indexed.firstAnswer(other.children)(find(relation, _, Nil))
  }

  /** Whether skipped files do not change a column; row numbers only have to be unique. */
  def isPlain(column: NamedExpression): Boolean = column match {
    case Alias(_: MonotonicallyIncreasingID | _: InputFileName, _) => true
    case other => other.deterministic
  }

  /** Rewrites an expression in the columns below a projection. */
  def below(list: Seq[NamedExpression], expression: Expression): Expression = {
    val named = list.collect { case alias @ Alias(child, _) => alias.toAttribute -> child }
    ReplacedColumns(expression, AttributeMap(named))
  }
}
