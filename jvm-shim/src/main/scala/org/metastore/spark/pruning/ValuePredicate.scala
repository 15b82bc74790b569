package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions.{BoundReference, Expression, GenericInternalRow}
import org.apache.spark.sql.catalyst.expressions.objects.{InvokeLike, StaticInvoke}

import org.metastore.spark.statistics.columns.TypePromotion

/**
 * A condition on one column that Spark's own expression, if it is deterministic, decides for values.
 *
 * For one thread only: some of Spark's expressions cache their last result.
 */
private[spark] final class ValuePredicate(condition: Expression, leaf: Expression) {
  private val row = new GenericInternalRow(1)
  private val clock = new EvaluationClock

  /** The condition over a row with the column as its only value. */
  val bound: Expression = condition.transformDown {
    case part if part.semanticEquals(leaf) =>
      BoundReference(0, leaf.dataType, nullable = true)
  }

  private lazy val timed = TimedMatch.within(bound, clock)

  /** Whether the condition is true of a value. Throws what the expression throws, and TimeoutException. */
  def holds(value: Any): Boolean = clock.run {
    row.update(0, value)
    timed.eval(row) == true
  }
}

private[spark] object ValuePredicate {

  /** Whether Spark's own code decides a condition, so that it can be evaluated while a query is planned. */
  def canEvaluate(condition: Expression): Boolean =
    ConjunctRefusal.reason(condition).isEmpty && !condition.exists {
      case static: StaticInvoke =>
        !static.staticObject.getName.startsWith("org.apache.")
      case call =>
        call.isInstanceOf[InvokeLike] || TimedMatch.isEndless(call)
    }

  /** The column that a condition reads, if it reads no other, and reads its values as they are stored. */
  def columnOf(condition: Expression): Option[Expression] = {
    val leaves = ColumnLookup.leavesOf(condition)
    leaves.headOption.filter { leaf =>
      val hasBounds = ColumnLookup.BoundedColumn.unapply(leaf) && TypePromotion.hasBounds(leaf.dataType)
      hasBounds && leaves.tail.forall(_.semanticEquals(leaf)) && canEvaluate(condition)
    }
  }
}
