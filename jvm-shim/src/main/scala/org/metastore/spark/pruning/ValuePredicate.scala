package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, GenericInternalRow}
import org.apache.spark.sql.catalyst.expressions.objects.{InvokeLike, StaticInvoke}

import org.metastore.spark.statistics.columns.TypePromotion

/**
 * A condition on one column, answered by evaluating Catalyst's own expression on values: any deterministic one will do.
 *
 * Not for several threads: some of Spark's expressions keep what they made of the last value.
 */
private[spark] final class ValuePredicate(condition: Expression, leaf: Expression) {
  private val row = new GenericInternalRow(1)
  private val clock = new EvaluationClock

  /** The condition over a row that has the column's value alone. */
  val bound: Expression = condition.transformDown {
    case one if one.semanticEquals(leaf) =>
      BoundReference(0, leaf.dataType, nullable = true)
  }

  private lazy val timed = TimedMatch.within(bound, clock)

  /** Whether it is true of a value; null, false and null are not. Raises what the expression raises, and TimeoutException. */
  def holds(value: Any): Boolean = clock.run {
    row.update(0, value)
    timed.eval(row) == true
  }
}

private[spark] object ValuePredicate {

  /** Whether a condition can be answered while a query is planned, by Spark's own code. */
  def canEvaluate(condition: Expression): Boolean =
    ConjunctRefusal.reason(condition).isEmpty && !condition.exists {
      case static: StaticInvoke =>
        !static.staticObject.getName.startsWith("org.apache.")
      case call =>
        call.isInstanceOf[InvokeLike] || TimedMatch.isEndless(call)
    }

  /** The one column that a condition reads, if that is all, and its values are read as they are stored. */
  def columnOf(condition: Expression): Option[Expression] = {
    val leaves = ColumnLookup.leavesOf(condition)
    leaves.headOption.filter { leaf =>
      val hasBounds = ColumnLookup.BoundedColumn.unapply(leaf) && TypePromotion.hasBounds(leaf.dataType)
      hasBounds && leaves.tail.forall(_.semanticEquals(leaf)) && canEvaluate(condition)
    }
  }
}
