package org.metastore.spark.pruning

import java.time.ZoneId

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_DAY
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.IntegralTypes.{isIntegral, within}
import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.TypePromotion

/** Recognizes columns, and functions of a column whose bounds follow from the column's. */
private[pruning] final class Terms(columns: ColumnLookup) {
  import Terms._

  /** Matches an expression that is a term of a type with bounds. */
  def unapply(expression: Expression): Option[Term] = expression match {
    case ColumnLookup.BoundedColumn() =>
      columns.findBounded(expression).map(fromColumn)
    case cast: Cast =>
      unapply(cast.child).flatMap(convert(cast, _))
    case field: GetDateField =>
      for {
        step <- DateFields.get(field.getClass)
        term <- Date.unapply(field.child)
      } yield term.after(IntegerType, step)
    case TruncDate(Date(term), Literal(format: UTF8String, _)) =>
      truncatedDate(term, format)
    case truncation @ TruncTimestamp(Literal(format: UTF8String, _), Timestamp(term), Some(zone)) =>
      truncatedTimestamp(truncation, term, format, DateTimeUtils.getZoneId(zone))
    case DateAdd(Date(term), Literal(days: Int, IntegerType)) =>
      Some(shift(term, days.toLong, IntegerType, DateType))
    case DateSub(Date(term), Literal(days: Int, IntegerType)) =>
      Some(shift(term, -days.toLong, IntegerType, DateType))
    case UnaryMinus(Integral(term), _) =>
      mirror(term, 0)
    case operation: BinaryArithmetic if isIntegral(operation.left.dataType) =>
      withLiteral(operation)
    case Abs(Integral(term), _) =>
      Some(term.after(term.dataType, Step.Absolute(within(term.dataType, _))))
    case MonotoneFunction(function) =>
      unapply(function.argument).flatMap(monotone(_, function))
    case _ => None
  }

  /** An operation on an integral term and a literal. */
  private def withLiteral(operation: BinaryArithmetic): Option[Term] =
    (operation.left, operation.right) match {
      case (Integral(term), IntegralLiteral(value)) =>
        LiteralAfterTerm.get(operation.getClass).flatMap(_(term, value))
      case (IntegralLiteral(value), Integral(term)) =>
        LiteralBeforeTerm.get(operation.getClass).flatMap(_(term, value))
      case _ => None
    }

  private object Integral extends TypedTerm(isIntegral)
  private object Date extends TypedTerm(_ == DateType)
  private object Timestamp extends TypedTerm(_ == TimestampType)

  private abstract class TypedTerm(fits: DataType => Boolean) {
    def unapply(expression: Expression): Option[Term] =
      if (fits(expression.dataType)) Terms.this.unapply(expression)
      else None
  }
}

private[pruning] object Terms {

  /** Matches an integral literal that is not NULL. */
  private object IntegralLiteral {
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
    CastTerms(cast, term).orElse(MonotoneFunction.unapply(cast).flatMap(monotone(term, _)))

  private def truncatedDate(term: Term, format: UTF8String): Option[Term] = {
    val level = DateTimeUtils.parseTruncLevel(format)
    val isUnit = TruncDate(Literal(0, DateType), Literal(format, StringType)).eval() != null
    def truncate(days: Long): Long = DateTimeUtils.truncDate(Math.toIntExact(days), level).toLong
    Optional.when(isUnit)(term.after(DateType, Step.Monotone.exactly(truncate)))
  }

  /** Truncation converts instants to local time and back: clock changes make both sides jump. */
  private def truncatedTimestamp(
      truncation: TruncTimestamp,
      term: Term,
      format: UTF8String,
      zone: ZoneId): Option[Term] = {
    val level = DateTimeUtils.parseTruncLevel(format)
    val isUnit = truncation.copy(timestamp = Literal(0L, TimestampType)).eval() != null
    def truncate(micros: Long): Long = DateTimeUtils.truncTimestamp(micros, level, zone)
    val step = ClockChanges.around(zone, MICROS_PER_DAY, MICROS_PER_DAY)(truncate)
    Optional.when(isUnit)(term.after(TimestampType, step))
  }

  private def monotone(term: Term, function: MonotoneFunction): Option[Term] = {
    val to = function.expression.dataType
    Optional.when(TypePromotion.hasBounds(to))(term.after(
      to,
      Step.SparkFunction(function, term.dataType, to)))
  }

  /** Operations on an integral term and a literal on its right; None if there is no rule for the literal. */
  private val LiteralAfterTerm: Map[Class[_], (Term, Long) => Option[Term]] = Map(
    classOf[Add] -> (shift(_, _)),
    classOf[Subtract] -> (minus(_, _)),
    classOf[Multiply] -> (multiply(_, _)),
    classOf[IntegralDivide] -> (divide(_, _)))

  /** Operations on an integral term and a literal on its left. */
  private val LiteralBeforeTerm: Map[Class[_], (Term, Long) => Option[Term]] = Map(
    classOf[Add] -> (shift(_, _)),
    classOf[Subtract] -> (mirror(_, _)),
    classOf[Multiply] -> (multiply(_, _)))

  private def multiply(term: Term, by: Long): Option[Term] = {
    def times(value: Long): Long = within(term.dataType, Math.multiplyExact(value, by))
    Some(term.after(term.dataType, Step.Arithmetic(times, falling = by < 0)))
  }

  private def divide(term: Term, by: Long): Option[Term] =
    Optional.when(by > 0)(term.after(LongType, Step.Monotone.exactly(_ / by)))

  private def monthOf(days: Int): Int = 12 * DateTimeUtils.getYear(days) + DateTimeUtils.getMonth(days)

  private def shift(term: Term, by: Long): Option[Term] = Some(shift(term, by, term.dataType, term.dataType))

  private def shift(term: Term, by: Long, range: DataType, result: DataType): Term = {
    def plus(value: Long): Long = within(range, Math.addExact(value, by))
    term.after(result, Step.Arithmetic(plus, falling = false))
  }

  private def minus(term: Term, value: Long): Option[Term] =
    if (value == Long.MinValue) None else shift(term, -value)

  private def mirror(term: Term, from: Long): Option[Term] = {
    def subtracted(value: Long): Long = within(term.dataType, Math.subtractExact(from, value))
    Some(term.after(term.dataType, Step.Arithmetic(subtracted, falling = true)))
  }
}
