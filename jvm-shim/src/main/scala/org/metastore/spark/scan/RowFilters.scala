package org.metastore.spark.scan

import org.apache.spark.sql.catalyst.expressions.{
  Alias, AttributeMap, Expression, InputFileName, MonotonicallyIncreasingID, NamedExpression, PredicateHelper
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, Project}

/** The filters above a relation: all rows that a command gets of it satisfy them. */
private[scan] object RowFilters extends PredicateHelper {
  def conjuncts(condition: Expression): Seq[Expression] = splitConjunctivePredicates(condition)

  /** The conjuncts of the filters directly above a relation. */
  def above(relation: LogicalPlan, plan: LogicalPlan): Seq[Expression] =
    find(relation, plan, Nil).getOrElse(Nil)

  private def find(
      relation: LogicalPlan,
      plan: LogicalPlan,
      known: Seq[Expression]): Option[Seq[Expression]] = plan match {
    case same if same eq relation => Some(known)
    case Filter(condition, child) => find(relation, child, known ++ conjuncts(condition))
    case Project(list, child) if list.forall(isPlain) =>
      find(relation, child, known.map(below(list, _)))
    case other =>
      val found = other.children.iterator.flatMap(find(relation, _, Nil))
      if (found.hasNext) Some(found.next()) else None
  }

  /** Whether a column is the same where fewer files are read; the numbers of rows need only differ from each other. */
  def isPlain(column: NamedExpression): Boolean = column match {
    case Alias(_: MonotonicallyIncreasingID | _: InputFileName, _) => true
    case other => other.deterministic
  }

  /** An expression in terms of the columns below a projection. */
  def below(list: Seq[NamedExpression], expression: Expression): Expression = {
    val named = list.collect { case alias @ Alias(child, _) => alias.toAttribute -> child }
    ReplacedColumns(expression, AttributeMap(named))
  }
}
