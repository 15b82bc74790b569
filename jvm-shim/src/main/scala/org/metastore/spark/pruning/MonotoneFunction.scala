package org.metastore.spark.pruning

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.{
  MICROS_PER_DAY, MICROS_PER_SECOND, SECONDS_PER_DAY
}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.IntegralTypes.Integral

/**
 * A function of one value that never decreases and is never NULL for a value. Spark's own expression computes it for a bound.
 *
 * @param argument  where the expression takes the value
 * @param isTotal   whether it is defined for every value; otherwise for all values between two for which it is
 * @param isDefined whether the expression's result for a value may be used
 * @param clock     for a function of local time, the clock that shows it at an instant
 */
private[pruning] final case class MonotoneFunction(
    expression: Expression,
    argument: Expression,
    isTotal: Boolean,
    isDefined: Any => Boolean = _ => true,
    clock: Option[LocalClock] = None) {

  /** The function, ready to be evaluated; not for several threads. `None` where it has no result for a value. */
  def evaluator(from: DataType): Any => Option[Any] = {
    val row = new GenericInternalRow(1)
    val bound = expression.mapChildren(child =>
      if (child eq argument) BoundReference(0, from, nullable = true)
      else child)
    value => {
      row.update(0, value)
      if (isDefined(value)) Option(bound.eval(row)) else None
    }
  }

  /** The value whose result no value from this one on falls below. */
  def earliest(value: Any): Any = clock.fold(value)(_.earliest(value.asInstanceOf[Long]))

  /** The value whose result no value up to this one exceeds. */
  def latest(value: Any): Any = clock.fold(value)(_.latest(value.asInstanceOf[Long]))
}

/** Recognises such functions. Rounding never reverses the order of two numbers; NaN is the greatest value before and after. */
private[pruning] object MonotoneFunction {

  def unapply(expression: Expression): Option[MonotoneFunction] = expression match {
    case operation: BinaryArithmetic =>
      besideLiteral(operation)
    case round @ (_: Round | _: BRound) =>
      rounded(round.asInstanceOf[RoundBase])
    case whole @ (_: Floor | _: Ceil) =>
      wholeNumber(expression, whole.children.head)
    case _: ToUnixTimestamp | _: UnixTimestamp if isTimestamp(expression.children.head) =>
      total(expression, expression.children.head)
    case _: UnixSeconds | _: UnixMillis | _: UnixMicros | _: MicrosToTimestamp =>
      total(expression, expression.children.head)
    case _: MillisToTimestamp | _: SecondsToTimestamp if isIntegral(expression.children.head) =>
      partial(expression, expression.children.head)
    case DateFormatClass(x, Literal(format: UTF8String, _), zone) =>
      zone.flatMap(localText(expression, x, format.toString, _))
    case FromUnixTime(x, Literal(format: UTF8String, _), zone) =>
      zone.flatMap(localText(expression, x, format.toString, _))
    case cast: Cast =>
      ofCast(cast)
    case _ => None
  }

  private def ofCast(cast: Cast): Option[MonotoneFunction] = (cast.child.dataType, cast.dataType) match {
    case (FloatType | DoubleType, IntegerType | LongType) =>
      wholeNumber(cast, cast.child)
    case types if TotalCasts(types) =>
      total(cast, cast.child)
    case (_: DecimalType, DoubleType) =>
      total(cast, cast.child)
    case (_: DecimalType, to @ (IntegerType | LongType)) =>
      partial(cast, cast.child, hasWholePart(to))
    case (_: DecimalType | Integral(), _: DecimalType) =>
      partial(cast, cast.child)
    case (DateType | TimestampNTZType, StringType) =>
      Some(text(cast, cast.child, None))
    case (TimestampType, StringType) =>
      cast.timeZoneId.map(zone => text(cast, cast.child, clockOf(zone, MICROS_PER_SECOND)))
    case _ => None
  }

  private val TotalCasts: Set[(DataType, DataType)] = Set(
    (ByteType, TimestampType),
    (ShortType, TimestampType),
    (IntegerType, TimestampType),
    (LongType, TimestampType),
    (TimestampType, LongType),
    (TimestampType, DoubleType),
    (DoubleType, FloatType))

  /** Whether a decimal's digits before the point are a value of an integral type. */
  private def hasWholePart(to: DataType)(value: Any): Boolean = {
    val decimal = value.asInstanceOf[Decimal].toJavaBigDecimal
    decimal.toBigInteger.bitLength < 8 * to.defaultSize
  }

  private def total(function: Expression, argument: Expression): Option[MonotoneFunction] =
    Some(MonotoneFunction(function, argument, isTotal = true))

  private def partial(
      function: Expression,
      argument: Expression,
      isDefined: Any => Boolean = _ => true): Option[MonotoneFunction] =
    Some(MonotoneFunction(function, argument, isTotal = false, isDefined = isDefined))

  private def number(function: Expression, argument: Expression): Option[MonotoneFunction] =
    number(function, argument, total(function, argument))

  private def number(
      function: Expression,
      argument: Expression,
      ofDoubles: => Option[MonotoneFunction]): Option[MonotoneFunction] =
    argument.dataType match {
      case FloatType | DoubleType => ofDoubles
      case _: DecimalType =>
        partial(function, argument)
      case _ => None
    }

  /** Spark rounds floats otherwise where it compiles a query. */
  private def rounded(round: RoundBase): Option[MonotoneFunction] =
    if (round.left.dataType == FloatType || !round.right.isInstanceOf[Literal]) None
    else number(round, round.left)

  /** Large values become the largest of the type, NaN zero. */
  private def wholeNumber(function: Expression, argument: Expression): Option[MonotoneFunction] =
    number(function, argument, partial(function, argument, !isNaN(_)))

  private def isNaN(value: Any): Boolean = value.asInstanceOf[Number].doubleValue.isNaN

  private def isIntegral(argument: Expression): Boolean = IntegralTypes.isIntegral(argument.dataType)

  private def isTimestamp(argument: Expression): Boolean = argument.dataType == TimestampType

  private def localText(
      function: Expression,
      argument: Expression,
      format: String,
      zone: String): Option[MonotoneFunction] =
    if (hasOldClocks || !isOrdered(format)) None
    else UnitsOfSecond.get(argument.dataType).map(units => text(function, argument, clockOf(zone, units)))

  private val UnitsOfSecond: Map[DataType, Long] = Map(LongType -> 1L, TimestampType -> MICROS_PER_SECOND)

  private def hasOldClocks: Boolean = {
    val policy = SQLConf.get.getConfString("spark.sql.legacy.timeParserPolicy", "EXCEPTION")
    policy.equalsIgnoreCase("LEGACY")
  }

  /** Years of four digits alone are in order as texts. */
  private def text(
      function: Expression,
      argument: Expression,
      clock: Option[LocalClock]): MonotoneFunction = {
    val day = UnitsOfDay(argument.dataType)
    def isDefined(value: Any): Boolean = {
      val days = Math.floorDiv(value.asInstanceOf[Number].longValue, day)
      FirstDay < days && days < LastDay
    }
    MonotoneFunction(function, argument, isTotal = false, isDefined, clock)
  }

  private val UnitsOfDay: Map[DataType, Long] = Map(
    DateType -> 1L,
    LongType -> SECONDS_PER_DAY,
    TimestampType -> MICROS_PER_DAY,
    TimestampNTZType -> MICROS_PER_DAY)

  private val FirstDay = java.time.LocalDate.of(1, 1, 2).toEpochDay
  private val LastDay = java.time.LocalDate.of(9999, 12, 30).toEpochDay

  /** Local time from its largest unit on, each of as many digits in every text. */
  private val Ordered = "(yyyy|uuuu)([-/. ]?MM([-/. ]?dd(( |'T'|-)?HH(:?mm(:?ss)?)?)?)?)?".r.pattern

  private def isOrdered(format: String): Boolean = Ordered.matcher(format).matches

  private def clockOf(zone: String, perSecond: Long): Option[LocalClock] =
    Some(LocalClock(DateTimeUtils.getZoneId(zone), perSecond))

  /** A function of one operand, where the other one is a literal with which the operation never decreases. */
  private def besideLiteral(operation: BinaryArithmetic): Option[MonotoneFunction] =
    if (signOf(operation.right).exists(RisingOnRight(operation.getClass))) number(operation, operation.left)
    else if (signOf(operation.left).exists(RisingOnLeft(operation.getClass)))
      number(operation, operation.right)
    else None

  private val AnySign = Set(-1, 0, 1)
  private val Positive = Set(1)

  /** The signs of a right operand with which an operation never decreases as the left one grows. */
  private val RisingOnRight = Map[Class[_], Set[Int]](
    classOf[Add] -> AnySign,
    classOf[Subtract] -> AnySign,
    classOf[Multiply] -> Positive,
    classOf[Divide] -> Positive).withDefaultValue(Set.empty)

  /** The signs of a left operand with which an operation never decreases as the right one grows. */
  private val RisingOnLeft =
    Map[Class[_], Set[Int]](
      classOf[Add] -> AnySign,
      classOf[Multiply] -> Positive).withDefaultValue(Set.empty)

  /** The sign of a literal of doubles or decimals; None of others, and of those that are not finite. */
  private def signOf(expression: Expression): Option[Int] = expression match {
    case Literal(value: Decimal, _: DecimalType) =>
      Some(value.toJavaBigDecimal.signum)
    case Literal(value: Number, FloatType | DoubleType) =>
      val double = value.doubleValue
      Some(Math.signum(double).toInt).filter(_ => java.lang.Double.isFinite(double))
    case _ => None
  }
}
