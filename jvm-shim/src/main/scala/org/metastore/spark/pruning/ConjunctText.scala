package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.{Expression, InSet, Predicate, UnaryExpression, Unevaluable}

/** Writes conjuncts for people. */
private[spark] object ConjunctText {
  private val MostShown = 100 // values

  /** The SQL of a conjunct; a long list of values is shown as their number. */
  def apply(conjunct: Expression): String = conjunct.transform {
    case InSet(child, values) if values.size > MostShown => InManyValues(child, values.size)
  }.sql

  private final case class InManyValues(child: Expression, number: Int)
    extends UnaryExpression
    with Predicate
    with Unevaluable {
    override def sql: String = s"(${child.sql} IN ($number values))"
    override protected def withNewChildInternal(newChild: Expression): Expression = copy(child = newChild)
  }
}
