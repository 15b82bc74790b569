package org.metastore.spark.pruning

import scala.collection.mutable

import org.apache.spark.sql.types.FloatType

import org.metastore.spark.statistics.columns.CatalystValue
import org.metastore.spark.statistics.objects.{DoubleOrder, Values}

/** Evaluates one predicate on the values of many files, on each distinct value once. */
private[pruning] final class ValueTrial(
    predicate: ValuePredicate,
    use: ColumnReference,
    allowance: EvaluationAllowance) {
  import ValueTrial._

  private val answers = mutable.HashMap.empty[Long, Truth]

  lazy val holdsForNull: Boolean = predicate.holds(null)
  lazy val holdsForNaN: Boolean = predicate.holds(if (use.dataType == FloatType) Float.NaN else Double.NaN)

  /** Whether it is true of some of the values; true where no more may be asked. */
  def holdsForSome(values: Values): Boolean =
    !allowance.take(values.length) || (0 until values.length).exists(answer(values, _).ofSome)

  /** Whether it is true of all of the values; false where no more may be asked. */
  def holdsForAll(values: Values): Boolean =
    allowance.take(values.length) && (0 until values.length).forall(answer(values, _).ofAll)

  private def answer(values: Values, i: Int): Truth = values match {
    case Values.Longs(array) =>
      answers.getOrElseUpdate(array(i), ask(CatalystValue.ordered(values, i, use.dataType)))
    case _ =>
      ask(CatalystValue.ordered(values, i, use.dataType))
  }

  private def ask(value: Any): Truth =
    if (DoubleOrder.isZero(value)) Truth(zeros.map(predicate.holds): _*)
    else Truth(predicate.holds(value))

  /** Statistics hold one zero, and files may hold two. */
  private def zeros: Seq[Any] = if (use.dataType == FloatType) Seq(0.0f, -0.0f) else Seq(0.0d, -0.0d)
}

private object ValueTrial {

  /** Whether a predicate is true of some of the forms in which a value may stand in a file, and whether of all. */
  private final class Truth(val ofSome: Boolean, val ofAll: Boolean)

  private object Truth {
    def apply(forms: Boolean*): Truth = new Truth(forms.contains(true), !forms.contains(false))
  }
}
