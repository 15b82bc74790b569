package org.metastore.spark.pruning

import java.time.{ZoneId, ZoneOffset}

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.{MICROS_PER_DAY, MICROS_PER_SECOND}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._

import org.metastore.spark.pruning.IntegralTypes.{isIntegral, within}
import org.metastore.spark.statistics.objects.DoubleOrder

/** Casts that keep the order. */
private[pruning] object CastTerms {

  def apply(cast: Cast, term: Term): Option[Term] = (term.dataType, cast.dataType) match {
    case (from, to) if from == to => Some(term)
    case (from, to) if isIntegral(from) && isIntegral(to) =>
      Some(convertIntegral(term, from, to))
    case (from, DoubleType) if isIntegral(from) =>
      rising(term, DoubleType)(value => DoubleOrder.key(value.toDouble))
    case (from, FloatType) if isIntegral(from) =>
      rising(term, FloatType)(value => DoubleOrder.key(value.toFloat.toDouble))
    case (FloatType, DoubleType) =>
      Some(term.after(DoubleType))
    case (from, to: DecimalType) if isIntegral(from) =>
      rescale(term, digits(from), 0, to)
    case (from: DecimalType, to: DecimalType) =>
      rescale(term, from.precision, from.scale, to)
    case (DateType, TimestampNTZType) =>
      rising(term, TimestampNTZType)(Math.multiplyExact(_, MICROS_PER_DAY))
    case (TimestampNTZType, DateType) =>
      rising(term, DateType)(Math.floorDiv(_, MICROS_PER_DAY))
    case (from, to) if cast.timeZoneId.isDefined =>
      convertZone(term, from, to, cast.zoneId)
    case _ => None
  }

  private def convertIntegral(term: Term, from: DataType, to: DataType): Term =
    if (to.defaultSize > from.defaultSize) term.after(to)
    else term.after(to, Step.Arithmetic(within(to, _), falling = false))

  private def convertZone(term: Term, from: DataType, to: DataType, zone: ZoneId): Option[Term] = {
    def after(argument: Long, result: Long)(function: Long => Long): Option[Term] =
      Some(term.after(to, ClockChanges.around(zone, argument, result)(function)))
    def local(function: Long => Long): Option[Term] =
      Some(term.after(to, ClockChanges.ofLocalTime(zone)(function)))
    (from, to) match {
      case (DateType, TimestampType) =>
        after(1, MICROS_PER_DAY)(days => DateTimeUtils.daysToMicros(Math.toIntExact(days), zone))
      case (TimestampType, DateType) =>
        local(DateTimeUtils.microsToDays(_, zone).toLong)
      case (TimestampType, TimestampNTZType) =>
        local(DateTimeUtils.convertTz(_, ZoneOffset.UTC, zone))
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
    val mayOverflow = to.precision - to.scale < precision - scale
    if (more < 0 || mayOverflow) None
    else if (to.precision > 18) Some(term.after(to, Step.ToLongDecimal(more)))
    else {
      val factor = java.math.BigInteger.TEN.pow(more).longValueExact
      rising(term, to)(Math.multiplyExact(_, factor))
    }
  }
}

/** Functions that lead from instants to local times, or back: both sides may jump. */
private[pruning] object ClockChanges {

  /** A day, `argument` and `result` in units of each, is given away on both sides. */
  def around(zone: ZoneId, argument: Long, result: Long)(function: Long => Long): Step = {
    def low(value: Long): Long = Math.subtractExact(function(Math.subtractExact(value, argument)), result)
    def high(value: Long): Long = Math.addExact(function(Math.addExact(value, argument)), result)
    if (zone.getRules.isFixedOffset) Step.Monotone.exactly(function)
    else Step.Monotone(low, high)
  }

  /** A function of the local time that a zone's clock shows at instants in microseconds. */
  def ofLocalTime(zone: ZoneId)(function: Long => Long): Step = {
    val clock = LocalClock(zone, MICROS_PER_SECOND)
    Step.Monotone(value => function(clock.earliest(value)), value => function(clock.latest(value)))
  }
}
