package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_DAY
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.IntegralTypes.{isIntegral, within}
import org.metastore.spark.statistics.columns.TypePromotion

/** Recognises columns, and the functions of a column whose bounds follow from the column's. */
private[pruning] final class Terms(columns: ColumnLookup) {
  import Terms._

  /** The expression as a term; `None` where there is no proof for it, or its type has no usable bounds. */
  def unapply(expression: Expression): Option[Term] = expression match {
    case ColumnLookup.BoundedColumn() =>
      column(expression)
    case cast: Cast =>
      unapply(cast.child).flatMap(convert(cast, _))
    case field: GetDateField =>
      for {
        step <- DateFields.get(field.getClass)
        term <- Date.unapply(field.child)
      } yield term.after(IntegerType, step)
    case TruncDate(Date(term), Literal(format: UTF8String, _)) =>
      truncatedDate(term, format)
    case t: TruncTimestamp if t.timeZoneId.isDefined =>
      truncatedTimestamp(t)
    case DateAdd(Date(term), Literal(days: Int, IntegerType)) =>
      Some(shift(term, days.toLong, IntegerType, DateType))
    case DateSub(Date(term), Literal(days: Int, IntegerType)) =>
      Some(shift(term, -days.toLong, IntegerType, DateType))
    case TermAndNumber(_: Add, term, value) =>
      Some(shift(term, value))
    case Subtract(Integral(term), Whole(value), _) =>
      minus(term, value)
    case Subtract(Whole(value), Integral(term), _) =>
      Some(mirror(term, value))
    case UnaryMinus(Integral(term), _) =>
      Some(mirror(term, 0))
    case TermAndNumber(_: Multiply, term, value) =>
      Some(multiply(term, value))
    case IntegralDivide(Integral(term), Whole(value), _) if value > 0 =>
      Some(term.after(LongType, Step.Monotone.exactly(_ / value)))
    case Abs(Integral(term), _) =>
      Some(term.after(term.dataType, Step.Absolute(within(term.dataType, _))))
    case MonotoneFunction(function) =>
      unapply(function.argument).flatMap(rising(_, function))
    case _ => None
  }

  /** An operation on an integral term and a literal, in either order. */
  private object TermAndNumber {
    def unapply(operation: BinaryArithmetic): Option[(BinaryArithmetic, Term, Long)] =
      (operation.left, operation.right) match {
        case (Integral(term), Whole(value)) =>
          Some((operation, term, value))
        case (Whole(value), Integral(term)) =>
          Some((operation, term, value))
        case _ => None
      }
  }

  private object Integral extends TypedTerm(isIntegral)
  private object Date extends TypedTerm(_ == DateType)

  private abstract class TypedTerm(fits: DataType => Boolean) {
    def unapply(expression: Expression): Option[Term] =
      if (fits(expression.dataType)) Terms.this.unapply(expression)
      else None
  }

  private def column(expression: Expression): Option[Term] =
    if (TypePromotion.hasBounds(expression.dataType)) columns.find(expression).toOption.map(fromColumn)
    else None

  /** Truncation goes from instants to local time and back, so that both sides may jump. */
  private def truncatedTimestamp(t: TruncTimestamp): Option[Term] = t.format match {
    case Literal(format: UTF8String, _) =>
      val level = DateTimeUtils.parseTruncLevel(format)
      val zone = DateTimeUtils.getZoneId(t.timeZoneId.get)
      val isUnit = t.copy(timestamp = Literal(0L, TimestampType)).eval() != null
      def truncate(micros: Long): Long = DateTimeUtils.truncTimestamp(micros, level, zone)
      val step = ClockChanges.around(zone, MICROS_PER_DAY, MICROS_PER_DAY)(truncate)
      val instants = unapply(t.timestamp).filter(_.dataType == TimestampType)
      if (isUnit) instants.map(_.after(TimestampType, step))
      else None
    case _ => None
  }
}

private[pruning] object Terms {

  /** An integral literal that is not NULL. */
  private object Whole {
    def unapply(expression: Expression): Option[Long] = expression match {
      case Literal(value: Number, dataType) if isIntegral(dataType) =>
        Some(value.longValue)
      case _ => None
    }
  }

  private val DateFields: Map[Class[_], Step] = Map(
    classOf[Year] -> Step.Monotone.exactly(days => DateTimeUtils.getYear(Math.toIntExact(days)).toLong),
    classOf[Quarter] -> Step.Within(DateTimeUtils.getYear, DateTimeUtils.getQuarter),
    classOf[Month] -> Step.Within(DateTimeUtils.getYear, DateTimeUtils.getMonth),
    classOf[DayOfYear] -> Step.Within(DateTimeUtils.getYear, DateTimeUtils.getDayInYear),
    classOf[DayOfMonth] -> Step.Within(monthOf, DateTimeUtils.getDayOfMonth))

  private def fromColumn(column: ColumnReference): Term = Term(column, column.dataType, Nil)

  private def convert(cast: Cast, term: Term): Option[Term] =
    CastTerms(cast, term).orElse(MonotoneFunction.unapply(cast).flatMap(rising(term, _)))

  private def truncatedDate(term: Term, format: UTF8String): Option[Term] = {
    val level = DateTimeUtils.parseTruncLevel(format)
    val isUnit = TruncDate(Literal(0, DateType), Literal(format, StringType)).eval() != null
    def truncate(days: Long): Long = DateTimeUtils.truncDate(Math.toIntExact(days), level).toLong
    if (isUnit) Some(term.after(DateType, Step.Monotone.exactly(truncate)))
    else None
  }

  private def rising(term: Term, function: MonotoneFunction): Option[Term] = {
    val to = function.expression.dataType
    if (TypePromotion.hasBounds(to)) Some(term.after(to, Step.SparkFunction(function, term.dataType, to)))
    else None
  }

  private def multiply(term: Term, by: Long): Term = {
    def times(value: Long): Long = within(term.dataType, Math.multiplyExact(value, by))
    term.after(term.dataType, Step.Arithmetic(times, falling = by < 0))
  }

  private def monthOf(days: Int): Int = 12 * DateTimeUtils.getYear(days) + DateTimeUtils.getMonth(days)

  private def shift(term: Term, by: Long): Term = shift(term, by, term.dataType, term.dataType)

  private def shift(term: Term, by: Long, range: DataType, result: DataType): Term = {
    def plus(value: Long): Long = within(range, Math.addExact(value, by))
    term.after(result, Step.Arithmetic(plus, falling = false))
  }

  private def minus(term: Term, value: Long): Option[Term] =
    if (value == Long.MinValue) None else Some(shift(term, -value))

  private def mirror(term: Term, from: Long): Term = {
    def subtracted(value: Long): Long = within(term.dataType, Math.subtractExact(from, value))
    term.after(term.dataType, Step.Arithmetic(subtracted, falling = true))
  }
}
