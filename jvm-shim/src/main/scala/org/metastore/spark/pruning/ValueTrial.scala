package org.metastore.spark.pruning

import scala.collection.mutable

import org.apache.spark.sql.types.FloatType

import org.metastore.spark.statistics.columns.CatalystValue
import org.metastore.spark.statistics.objects.{DoubleOrder, Values}

/** Evaluates one predicate on the values of many files, on each distinct value once. */
private[pruning] final class ValueTrial(
    predicate: ValuePredicate,
    column: ColumnReference,
    allowance: EvaluationAllowance) {
  import ValueTrial._

  private val answers = mutable.HashMap.empty[Long, Truth]

  lazy val holdsForNull: Boolean = predicate.holds(null)
  lazy val holdsForNaN: Boolean = predicate.holds(if (column.dataType == FloatType) Float.NaN else Double.NaN)

  /** Whether the predicate is true of some of the values; true if the allowance does not suffice. */
  def holdsForSome(values: Values): Boolean =
    !allowance.take(values.length) || (0 until values.length).exists(truthOf(values, _).inSomeForm)

  /** Whether the predicate is true of all of the values; false if the allowance does not suffice. */
  def holdsForAll(values: Values): Boolean =
    allowance.take(values.length) && (0 until values.length).forall(truthOf(values, _).inAllForms)

  private def truthOf(values: Values, i: Int): Truth = values match {
    case Values.Longs(array) =>
      answers.getOrElseUpdate(array(i), evaluate(CatalystValue.ordered(values, i, column.dataType)))
    case _ =>
      evaluate(CatalystValue.ordered(values, i, column.dataType))
  }

  private def evaluate(value: Any): Truth =
    if (DoubleOrder.isZero(value)) Truth(zeros.map(predicate.holds): _*)
    else Truth(predicate.holds(value))

  /** Statistics hold one zero, and files may hold two. */
  private def zeros: Seq[Any] = if (column.dataType == FloatType) Seq(0.0f, -0.0f) else Seq(0.0d, -0.0d)
}

private object ValueTrial {

  /** Whether a predicate is true of some forms of a value, and of all: 0.0 and -0.0 are forms of zero. */
  private final class Truth(val inSomeForm: Boolean, val inAllForms: Boolean)

  private object Truth {
    def apply(forms: Boolean*): Truth = new Truth(forms.contains(true), !forms.contains(false))
  }
}
