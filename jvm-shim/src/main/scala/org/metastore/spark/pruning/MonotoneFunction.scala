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
 * A function of one value that never decreases. Spark's own expression computes it for a bound.
 *
 * @param argument  the part of the expression that stands for the value
 * @param isTotal   whether all values have a result; otherwise all values between two with a result have one
 * @param isDefined whether the expression's result for a value may be used
 * @param clock     the clock of a function of local time
 */
private[pruning] final case class MonotoneFunction(
    expression: Expression,
    argument: Expression,
    isTotal: Boolean,
    isDefined: Any => Boolean = _ => true,
    clock: Option[LocalClock] = None) {

  /** The function as Spark evaluates it; None if it has no result for a value. For one thread only. */
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

  /** A value with a result that is no greater than that of any value >= this one. */
  def earliest(value: Any): Any = clock.fold(value)(_.earliest(value.asInstanceOf[Long]))

  /** A value with a result that is no less than that of any value <= this one. */
  def latest(value: Any): Any = clock.fold(value)(_.latest(value.asInstanceOf[Long]))
}

/** Recognizes monotone functions. Rounding keeps the order; NaN is the greatest argument and result. */
private[pruning] object MonotoneFunction {

  def unapply(expression: Expression): Option[MonotoneFunction] = expression match {
    case operation: BinaryArithmetic =>
      withLiteral(operation)
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
      fromCast(cast)
    case _ => None
  }

  private def fromCast(cast: Cast): Option[MonotoneFunction] = (cast.child.dataType, cast.dataType) match {
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
      cast.timeZoneId.map(zone => text(cast, cast.child, clock(zone, MICROS_PER_SECOND)))
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

  /** Whether the digits of a decimal before the point fit an integral type. */
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
    number(function, argument, fromDouble = total(function, argument))

  private def number(
      function: Expression,
      argument: Expression,
      fromDouble: => Option[MonotoneFunction]): Option[MonotoneFunction] =
    argument.dataType match {
      case FloatType | DoubleType => fromDouble
      case _: DecimalType =>
        partial(function, argument)
      case _ => None
    }

  /** ROUND of doubles or decimals. Spark's compiled code rounds floats in another way. */
  private def rounded(round: RoundBase): Option[MonotoneFunction] =
    if (round.left.dataType == FloatType || !round.right.isInstanceOf[Literal]) None
    else number(round, round.left)

  /** A function to whole numbers: too large values become the largest of the type, and NaN becomes zero. */
  private def wholeNumber(function: Expression, argument: Expression): Option[MonotoneFunction] =
    number(function, argument, fromDouble = partial(function, argument, !isNaN(_)))

  private def isNaN(value: Any): Boolean = value.asInstanceOf[Number].doubleValue.isNaN

  private def isIntegral(argument: Expression): Boolean = IntegralTypes.isIntegral(argument.dataType)

  private def isTimestamp(argument: Expression): Boolean = argument.dataType == TimestampType

  private def localText(
      function: Expression,
      argument: Expression,
      format: String,
      zone: String): Option[MonotoneFunction] =
    if (hasOldClocks || !isOrdered(format)) None
    else UnitsOfSecond.get(argument.dataType).map(units => text(function, argument, clock(zone, units)))

  private val UnitsOfSecond: Map[DataType, Long] = Map(LongType -> 1L, TimestampType -> MICROS_PER_SECOND)

  private def hasOldClocks: Boolean = {
    val policy = SQLConf.get.getConfString("spark.sql.legacy.timeParserPolicy", "EXCEPTION")
    policy.equalsIgnoreCase("LEGACY")
  }

  /** A function from times to texts; only years of four digits have texts in the order of the times. */
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

  /** Formats from the largest unit down, each with a fixed number of digits: their texts are in order. */
  private val Ordered = "(yyyy|uuuu)([-/. ]?MM([-/. ]?dd(( |'T'|-)?HH(:?mm(:?ss)?)?)?)?)?".r.pattern

  private def isOrdered(format: String): Boolean = Ordered.matcher(format).matches

  private def clock(zone: String, perSecond: Long): Option[LocalClock] =
    Some(LocalClock(DateTimeUtils.getZoneId(zone), perSecond))

  /** An operation on a value and a literal with which it never decreases. */
  private def withLiteral(operation: BinaryArithmetic): Option[MonotoneFunction] =
    if (signOf(operation.right).exists(RisingOnRight(operation.getClass))) number(operation, operation.left)
    else if (signOf(operation.left).exists(RisingOnLeft(operation.getClass)))
      number(operation, operation.right)
    else None

  private val AnySign = Set(-1, 0, 1)
  private val Positive = Set(1)

  /** The signs of a right operand for which the operation grows with the left one. */
  private val RisingOnRight = Map[Class[_], Set[Int]](
    classOf[Add] -> AnySign,
    classOf[Subtract] -> AnySign,
    classOf[Multiply] -> Positive,
    classOf[Divide] -> Positive).withDefaultValue(Set.empty)

  /** The signs of a left operand for which the operation grows with the right one. */
  private val RisingOnLeft =
    Map[Class[_], Set[Int]](
      classOf[Add] -> AnySign,
      classOf[Multiply] -> Positive).withDefaultValue(Set.empty)

  /** The sign of a finite literal of floats, doubles or decimals; None for other expressions. */
  private def signOf(expression: Expression): Option[Int] = expression match {
    case Literal(value: Decimal, _: DecimalType) =>
      Some(value.toJavaBigDecimal.signum)
    case Literal(value: Number, FloatType | DoubleType) =>
      val double = value.doubleValue
      Some(Math.signum(double).toInt).filter(_ => java.lang.Double.isFinite(double))
    case _ => None
  }
}
