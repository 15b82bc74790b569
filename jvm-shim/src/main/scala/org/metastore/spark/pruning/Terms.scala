package org.metastore.spark.pruning

import java.time.{Instant, ZoneId, ZoneOffset}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.{
  MICROS_PER_DAY, MICROS_PER_SECOND, SECONDS_PER_DAY
}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.pruning.LiteralValues.{BytesKey, Key, LongKey}
import org.metastore.spark.reason.Recoverable
import org.metastore.spark.statistics.columns.{Bounds, BytesBounds, CatalystValue, LongBounds, TypePromotion}
import org.metastore.spark.statistics.objects.{DecimalBytes, DoubleOrder, Encoding}

/** Recognises columns, and the functions of a column whose bounds follow from the column's. */
private[pruning] final class Terms(columns: ColumnLookup) {
  import Terms._

  /** The expression as a term; `None` where there is no proof for it, or its type has no usable bounds. */
  def unapply(expression: Expression): Option[Term] = expression match {
    case ColumnLookup.BoundedColumn() =>
      columns.find(expression).toOption.filter(use => TypePromotion.hasBounds(use.dataType))
        .map(use => Term(use, use.dataType, Nil))
    case cast: Cast =>
      unapply(cast.child).flatMap(term =>
        CastTerms(cast, term).orElse(MonotoneFunction.unapply(cast).flatMap(rising(term, _))))
    case year: Year => Date.unapply(year.child)
        .map(_.after(
          IntegerType,
          Step.Monotone.exactly(days => DateTimeUtils.getYear(Math.toIntExact(days)).toLong)))
    case TruncDate(Date(term), Literal(format: UTF8String, _)) => truncatedDate(term, format)
    case t: TruncTimestamp if t.timeZoneId.isDefined => truncatedTimestamp(t)
    case DateAdd(Date(term), Literal(days: Int, IntegerType)) =>
      Some(shift(term, days.toLong, IntegerType, DateType))
    case DateSub(Date(term), Literal(days: Int, IntegerType)) =>
      Some(shift(term, -days.toLong, IntegerType, DateType))
    case Add(Integral(term), Whole(value), _) => Some(shift(term, value, term.dataType, term.dataType))
    case Add(Whole(value), Integral(term), _) => Some(shift(term, value, term.dataType, term.dataType))
    case Subtract(Integral(term), Whole(value), _) => minus(term, value)
    case Subtract(Whole(value), Integral(term), _) => Some(mirror(term, value))
    case UnaryMinus(Integral(term), _) => Some(mirror(term, 0))
    case Multiply(Integral(term), Whole(value), _) => Some(multiply(term, value))
    case Multiply(Whole(value), Integral(term), _) => Some(multiply(term, value))
    case IntegralDivide(Integral(term), Whole(value), _) if value > 0 =>
      Some(term.after(LongType, Step.Monotone.exactly(_ / value)))
    case Abs(Integral(term), _) => Some(term.after(term.dataType, Step.Absolute(within(term.dataType, _))))
    case Month(Date(term)) =>
      Some(term.after(IntegerType, Step.Within(DateTimeUtils.getYear, DateTimeUtils.getMonth)))
    case Quarter(Date(term)) =>
      Some(term.after(IntegerType, Step.Within(DateTimeUtils.getYear, DateTimeUtils.getQuarter)))
    case DayOfYear(Date(term)) =>
      Some(term.after(IntegerType, Step.Within(DateTimeUtils.getYear, DateTimeUtils.getDayInYear)))
    case DayOfMonth(Date(term)) =>
      Some(term.after(IntegerType, Step.Within(monthOf, DateTimeUtils.getDayOfMonth)))
    case MonotoneFunction(function) => unapply(function.argument).flatMap(rising(_, function))
    case _ => None
  }

  private object Integral extends TypedTerm(isIntegral)
  private object Date extends TypedTerm(_ == DateType)

  private abstract class TypedTerm(fits: DataType => Boolean) {
    def unapply(expression: Expression): Option[Term] =
      if (fits(expression.dataType)) Terms.this.unapply(expression) else None
  }

  private def truncatedDate(term: Term, format: UTF8String): Option[Term] = {
    val level = DateTimeUtils.parseTruncLevel(format)
    // not a unit of dates
    if (TruncDate(Literal(0, DateType), Literal(format, StringType)).eval() == null) None
    else Some(term.after(
      DateType,
      Step.Monotone.exactly(days => DateTimeUtils.truncDate(Math.toIntExact(days), level).toLong)))
  }

  /** Truncation goes from instants to local time and back, so that both sides may jump. */
  private def truncatedTimestamp(t: TruncTimestamp): Option[Term] = t.format match {
    case Literal(format: UTF8String, _) =>
      val level = DateTimeUtils.parseTruncLevel(format)
      val zone = DateTimeUtils.getZoneId(t.timeZoneId.get)
      val isUnit = t.copy(timestamp = Literal(0L, TimestampType)).eval() != null
      val step = ClockChanges.around(
        zone,
        MICROS_PER_DAY,
        MICROS_PER_DAY)(DateTimeUtils.truncTimestamp(_, level, zone))
      unapply(t.timestamp).filter(_.dataType == TimestampType && isUnit).map(_.after(TimestampType, step))
    case _ => None
  }
}

private[pruning] object Terms {

  /** An integral literal that is not NULL. */
  private object Whole {
    def unapply(expression: Expression): Option[Long] = expression match {
      case Literal(value: Number, dataType) if isIntegral(dataType) => Some(value.longValue)
      case _ => None
    }
  }

  def isIntegral(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }

  private def rising(term: Term, function: MonotoneFunction): Option[Term] = {
    val to = function.expression.dataType
    if (TypePromotion.hasBounds(to)) Some(term.after(to, Step.Evaluated(function, term.dataType, to)))
    else None
  }

  private def multiply(term: Term, by: Long): Term =
    term.after(
      term.dataType,
      Step.Arithmetic(value => within(term.dataType, Math.multiplyExact(value, by)), falling = by < 0))

  private def monthOf(days: Int): Int = 12 * DateTimeUtils.getYear(days) + DateTimeUtils.getMonth(days)

  private def shift(term: Term, by: Long, range: DataType, result: DataType): Term =
    term.after(result, Step.Arithmetic(value => within(range, Math.addExact(value, by)), falling = false))

  private def minus(term: Term, value: Long): Option[Term] =
    if (value == Long.MinValue) None else Some(shift(term, -value, term.dataType, term.dataType))

  private def mirror(term: Term, from: Long): Term =
    term.after(
      term.dataType,
      Step.Arithmetic(value => within(term.dataType, Math.subtractExact(from, value)), falling = true))

  /** The value, if the type holds it: otherwise Spark's result would have wrapped around or failed. */
  private[pruning] def within(dataType: DataType, value: Long): Long = {
    val fits = dataType match {
      case ByteType => value.isValidByte
      case ShortType => value.isValidShort
      case IntegerType => value.isValidInt
      case _ => true
    }
    if (fits) value else throw new ArithmeticException("overflow")
  }
}

/** Functions whose results are instants of local times: both sides may jump. */
private[pruning] object ClockChanges {

  /** A day, `argument` and `result` in units of each, is given away on both sides. */
  def around(zone: ZoneId, argument: Long, result: Long)(function: Long => Long): Step =
    if (zone.getRules.isFixedOffset) Step.Monotone.exactly(function)
    else Step.Monotone(
      value => Math.subtractExact(function(Math.subtractExact(value, argument)), result),
      value => Math.addExact(function(Math.addExact(value, argument)), result))
}

/**
 * The clocks of a zone, which are set back now and then: no instant from one on shows an earlier local time than `earliest` of it,
 * none up to one a later than `latest`. Offsets lie within 18 hours of UTC, so that those of instants two days apart do not turn them.
 *
 * @param perSecond units of an instant
 */
private[pruning] final case class LocalClock(zone: ZoneId, perSecond: Long) {
  private val rules = zone.getRules
  private val twoDays = 2 * SECONDS_PER_DAY * perSecond

  def earliest(instant: Long): Long =
    if (isSteady(instant, Math.addExact(instant, twoDays))) instant else Math.subtractExact(instant, twoDays)

  def latest(instant: Long): Long =
    if (isSteady(Math.subtractExact(instant, twoDays), instant)) instant else Math.addExact(instant, twoDays)

  private def isSteady(from: Long, to: Long): Boolean = rules.isFixedOffset || {
    val next = rules.nextTransition(Instant.ofEpochSecond(Math.floorDiv(from, perSecond) - 1))
    next == null || next.toEpochSecond > Math.floorDiv(to, perSecond)
  }
}

/** Casts that keep the order. */
private[pruning] object CastTerms {

  def apply(cast: Cast, term: Term): Option[Term] = (term.dataType, cast.dataType) match {
    case (from, to) if from == to => Some(term)
    case (from, to) if Terms.isIntegral(from) && Terms.isIntegral(to) =>
      if (to.defaultSize > from.defaultSize) Some(term.after(to))
      else Some(term.after(to, Step.Arithmetic(Terms.within(to, _), falling = false)))
    case (from, DoubleType) if Terms.isIntegral(from) =>
      rising(term, DoubleType)(value => DoubleOrder.key(value.toDouble))
    case (from, FloatType) if Terms.isIntegral(from) =>
      rising(term, FloatType)(value => DoubleOrder.key(value.toFloat.toDouble))
    case (FloatType, DoubleType) => Some(term.after(DoubleType))
    case (from, to: DecimalType) if Terms.isIntegral(from) => rescale(term, digits(from), 0, to)
    case (from: DecimalType, to: DecimalType) => rescale(term, from.precision, from.scale, to)
    case (DateType, TimestampNTZType) => rising(term, TimestampNTZType)(Math.multiplyExact(_, MICROS_PER_DAY))
    case (TimestampNTZType, DateType) => rising(term, DateType)(Math.floorDiv(_, MICROS_PER_DAY))
    case (from, to) if cast.timeZoneId.isDefined => convertZone(term, from, to, cast.zoneId)
    case _ => None
  }

  private def convertZone(term: Term, from: DataType, to: DataType, zone: ZoneId): Option[Term] = {
    def after(argument: Long, result: Long)(function: Long => Long) =
      Some(term.after(to, ClockChanges.around(zone, argument, result)(function)))
    def local(function: Long => Long) = {
      val clock = LocalClock(zone, MICROS_PER_SECOND)
      Some(term.after(
        to,
        Step.Monotone(value => function(clock.earliest(value)), value => function(clock.latest(value)))))
    }
    (from, to) match {
      case (DateType, TimestampType) =>
        after(1, MICROS_PER_DAY)(days => DateTimeUtils.daysToMicros(Math.toIntExact(days), zone))
      case (TimestampType, DateType) => local(DateTimeUtils.microsToDays(_, zone).toLong)
      case (TimestampType, TimestampNTZType) => local(DateTimeUtils.convertTz(_, ZoneOffset.UTC, zone))
      case (TimestampNTZType, TimestampType) =>
        after(MICROS_PER_DAY, MICROS_PER_DAY)(DateTimeUtils.convertTz(_, zone, ZoneOffset.UTC))
      case _ => None
    }
  }

  private def rising(term: Term, to: DataType)(function: Long => Long): Option[Term] =
    Some(term.after(to, Step.Monotone.exactly(function)))

  private def digits(integral: DataType): Int = integral match {
    case ByteType => 3
    case ShortType => 5
    case IntegerType => 10
    case _ => 19
  }

  /** Only where every value of the narrower type fits: then the cast neither fails nor rounds nor gives NULL. */
  private def rescale(term: Term, precision: Int, scale: Int, to: DecimalType): Option[Term] = {
    val more = to.scale - scale
    if (more < 0 || to.precision - to.scale < precision - scale) None
    else if (to.precision > 18) Some(term.after(to, Step.ToLongDecimal(more)))
    else {
      val factor = java.math.BigInteger.TEN.pow(more).longValueExact
      rising(term, to)(Math.multiplyExact(_, factor))
    }
  }
}

/** Takes the bounds of a value to the bounds of a monotone function of it. */
private[pruning] sealed trait Step extends (Bounds => Bounds)

private[pruning] object Step {

  /**
   * A function that never decreases and is defined everywhere, or nearly. Where it fails on a bound, that bound is unknown. Bounds
   * with something given away count as exact too: that they are is of interest where both are one value, which all values then are.
   */
  final case class Monotone(low: Long => Long, high: Long => Long) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      if (from.hasLo(i)) attempt(low(from.lo(i))).foreach(to.setLo(i, _, from.loExact(i)))
      if (from.hasHi(i)) attempt(high(from.hi(i))).foreach(to.setHi(i, _, from.hiExact(i)))
    }
  }

  object Monotone {
    def exactly(function: Long => Long): Monotone = Monotone(function, function)
  }

  /** Integer arithmetic that may overflow: both bounds must pass, an unknown one as the least or greatest integer, or nothing is. */
  final case class Arithmetic(function: Long => Long, falling: Boolean) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      for (ofLo <- attempt(function(from.lo(i))); ofHi <- attempt(function(from.hi(i)))) {
        to.setLo(i, if (falling) ofHi else ofLo, if (falling) from.hiExact(i) else from.loExact(i))
        to.setHi(i, if (falling) ofLo else ofHi, if (falling) from.loExact(i) else from.hiExact(i))
      }
    }
  }

  /** The distance from zero of integers; `check` raises where it is none. Both bounds must be known. */
  final case class Absolute(check: Long => Long) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      if (from.hasLo(i) && from.hasHi(i)) {
        val (lo, hi) = (from.lo(i), from.hi(i))
        for (ofLo <- attempt(check(absolute(lo))); ofHi <- attempt(check(absolute(hi)))) {
          val areSwapped = hi <= 0
          val (least, most) = (math.min(ofLo, ofHi), math.max(ofLo, ofHi))
          if (lo >= 0 || areSwapped) to.setLo(i, least, if (areSwapped) from.hiExact(i) else from.loExact(i))
          else to.setLo(i, 0, exact = false)
          to.setHi(i, most, if (ofLo > ofHi) from.loExact(i) else from.hiExact(i))
        }
      }
    }

    // Java's own absExact came with 15, and Spark 3.5 runs on 11.
    private def absolute(value: Long): Long = if (value < 0) Math.negateExact(value) else value
  }

  /** A part of a date, such as its month, that never decreases within a larger one, such as its year: where both bounds lie in one. */
  final case class Within(larger: Int => Int, part: Int => Int) extends Step {
    override def apply(bounds: Bounds): Bounds = mapLongs(bounds) { (from, to, i) =>
      if (from.hasLo(i) && from.hasHi(i)) {
        val (lo, hi) = (from.lo(i).toInt, from.hi(i).toInt)
        if (larger(lo) == larger(hi)) {
          to.setLo(i, part(lo).toLong, from.loExact(i))
          to.setHi(i, part(hi).toLong, from.hiExact(i))
        }
      }
    }
  }

  /** A function that Spark evaluates; bounds with something given away count as exact, as those of `Monotone` do. */
  final case class Evaluated(function: MonotoneFunction, from: DataType, to: DataType) extends Step {
    override def apply(bounds: Bounds): Bounds = {
      val evaluate = function.evaluator(from)
      val (los, his) = (bounds.los, bounds.his)
      val images = Array.tabulate(los.length) { i =>
        val lo = if (bounds.hasLo(i)) image(evaluate(function.earliest(CatalystValue.ordered(los, i, from))))
        else None
        val hi =
          if (bounds.hasHi(i)) image(evaluate(function.latest(CatalystValue.ordered(his, i, from)))) else None
        if (function.isTotal || (lo.isDefined && hi.isDefined)) (lo, hi) else (None, None)
      }
      Images.bounds(images, bounds, to)
    }

    private def image(result: => Option[Any]): Option[Key] =
      try result.flatMap(LiteralValues.key(_, to))
      catch { case Recoverable(_) => None }
  }

  /** Unscaled decimals up to 18 digits times 10^digits, as decimals of more than 18. */
  final case class ToLongDecimal(digits: Int) extends Step {
    private val factor = java.math.BigInteger.TEN.pow(digits)

    override def apply(bounds: Bounds): Bounds = bounds match {
      case b: LongBounds =>
        def convert(
            values: Array[Long],
            isKnown: Int => Boolean): Array[Array[Byte]] = Array.tabulate(values.length) { i =>
          if (isKnown(i)) DecimalBytes.of(java.math.BigInteger.valueOf(values(i)).multiply(factor)) else null
        }
        new BytesBounds(convert(b.lo, b.hasLo), convert(b.hi, b.hasHi), b.flags)
      case b: BytesBounds =>
        def convert(value: Array[Byte]): Array[Byte] =
          if (value == null) null else DecimalBytes.of(DecimalBytes.unscaled(value).multiply(factor))
        new BytesBounds(b.lo.map(convert), b.hi.map(convert), b.flags)
      case other => other
    }
  }

  private def attempt(value: => Long): Option[Long] =
    try Some(value)
    catch { case Recoverable(_) => None } // the bound is then unknown, which is sound

  /** Bounds that become known one by one. */
  private final class Target(length: Int) {
    val bounds = new LongBounds(
      Array.fill(length)(Long.MinValue),
      Array.fill(length)(Long.MaxValue),
      new Array[Byte](length))

    def setLo(i: Int, value: Long, exact: Boolean): Unit = {
      bounds.lo(i) = value
      bounds.flags(i) =
        (bounds.flags(i) | (if (exact) Bounds.HasLo | Bounds.LoExact else Bounds.HasLo)).toByte
    }

    def setHi(i: Int, value: Long, exact: Boolean): Unit = {
      bounds.hi(i) = value
      bounds.flags(i) =
        (bounds.flags(i) | (if (exact) Bounds.HasHi | Bounds.HiExact else Bounds.HasHi)).toByte
    }
  }

  private object Images {

    /** Bounds of values of a type, by the bounds that they were made of. */
    def bounds(images: Array[(Option[Key], Option[Key])], of: Bounds, dataType: DataType): Bounds =
      if (TypePromotion.encoding(dataType).contains(Encoding.BinaryValues)) bytes(images, of)
      else longs(images, of)

    private def longs(images: Array[(Option[Key], Option[Key])], of: Bounds): Bounds = {
      val to = new Target(images.length)
      for (((lo, hi), i) <- images.iterator.zipWithIndex) {
        lo.foreach {
          case LongKey(value) => to.setLo(i, value, of.loExact(i)); case other => otherKind(other)
        }
        hi.foreach {
          case LongKey(value) => to.setHi(i, value, of.hiExact(i)); case other => otherKind(other)
        }
      }
      to.bounds
    }

    private def bytes(images: Array[(Option[Key], Option[Key])], of: Bounds): Bounds = {
      def known(key: Option[Key]): Array[Byte] = key match {
        case Some(BytesKey(value)) => value
        case Some(other) => otherKind(other)
        case None => null
      }
      val flags = Array.tabulate(images.length) { i =>
        ((if (of.loExact(i)) Bounds.LoExact else 0) | (if (of.hiExact(i)) Bounds.HiExact else 0)).toByte
      }
      new BytesBounds(images.map(pair => known(pair._1)), images.map(pair => known(pair._2)), flags)
    }

    private def otherKind(key: Key) = throw new IllegalArgumentException(s"$key is of another kind")
  }

  private def mapLongs(bounds: Bounds)(put: (LongBounds, Target, Int) => Unit): Bounds = bounds match {
    case from: LongBounds =>
      val length = from.flags.length
      val to = new Target(length)
      var i = 0
      while (i < length) {
        put(from, to, i)
        i += 1
      }
      to.bounds
    case other => throw new IllegalArgumentException(s"no step over ${other.getClass.getName}")
  }
}
