package org.metastore.spark.pruning

import java.time.{ZoneId, ZoneOffset}

import org.apache.spark.sql.catalyst.expressions.Cast
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_DAY
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._

import org.metastore.spark.pruning.IntegralTypes.{digits, within, Integral}
import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.objects.DoubleOrder

/** Casts that keep the order. */
private[pruning] object CastTerms {

  def apply(cast: Cast, term: Term): Option[Term] = (term.dataType, cast.dataType) match {
    case (from, to) if from == to => Some(term)
    case (Integral(), to @ Integral()) =>
      Some(convertIntegral(term, to))
    case (Integral(), to @ (DoubleType | FloatType)) =>
      Some(term.after(to, FromIntegral(to)))
    case (FloatType, DoubleType) =>
      Some(term.after(DoubleType))
    case (from @ Integral(), to: DecimalType) =>
      rescale(term, digits(from), 0, to)
    case (from: DecimalType, to: DecimalType) =>
      rescale(term, from.precision, from.scale, to)
    case types =>
      timeStep(types, cast).map(term.after(cast.dataType, _))
  }

  private def convertIntegral(term: Term, to: DataType): Term =
    if (to.defaultSize > term.dataType.defaultSize) term.after(to)
    else term.after(to, Step.Arithmetic(within(to, _), falling = false))

  private val FromIntegral: Map[DataType, Step] = Map(
    DoubleType -> Step.Monotone.exactly(value => DoubleOrder.key(value.toDouble)),
    FloatType -> Step.Monotone.exactly(value => DoubleOrder.key(value.toFloat.toDouble)))

  private def timeStep(types: (DataType, DataType), cast: Cast): Option[Step] =
    LocalTimeSteps.get(types).orElse {
      val step = ZonedTimeSteps.get(types)
      cast.timeZoneId.flatMap(zone => step.map(_(DateTimeUtils.getZoneId(zone))))
    }

  private val LocalTimeSteps: Map[(DataType, DataType), Step] = Map(
    (DateType, TimestampNTZType) -> Step.Monotone.exactly(Math.multiplyExact(_, MICROS_PER_DAY)),
    (TimestampNTZType, DateType) -> Step.Monotone.exactly(Math.floorDiv(_, MICROS_PER_DAY)))

  private val ZonedTimeSteps: Map[(DataType, DataType), ZoneId => Step] = Map(
    (DateType, TimestampType) -> { zone =>
      ClockChanges.around(zone, 1, MICROS_PER_DAY) { days =>
        DateTimeUtils.daysToMicros(Math.toIntExact(days), zone)
      }
    },
    (TimestampType, DateType) -> { zone =>
      ClockChanges.onLocalTime(zone)(DateTimeUtils.microsToDays(_, zone).toLong)
    },
    (TimestampType, TimestampNTZType) -> { zone =>
      ClockChanges.onLocalTime(zone)(DateTimeUtils.convertTz(_, ZoneOffset.UTC, zone))
    },
    (TimestampNTZType, TimestampType) -> { zone =>
      ClockChanges.around(zone, MICROS_PER_DAY, MICROS_PER_DAY) {
        DateTimeUtils.convertTz(_, zone, ZoneOffset.UTC)
      }
    })

  /** A cast to a type that has all values; None for other types: the cast may fail, round or give NULL. */
  private def rescale(term: Term, precision: Int, scale: Int, to: DecimalType): Option[Term] = {
    val more = to.scale - scale
    val mayOverflow = to.precision - to.scale < precision - scale
    Optional.when(more >= 0 && !mayOverflow)(term.after(to, multiply(more, to)))
  }

  private def multiply(digits: Int, to: DecimalType): Step =
    if (to.precision > Decimal.MAX_LONG_DIGITS) Step.ToLongDecimal(digits)
    else {
      val factor = java.math.BigInteger.TEN.pow(digits).longValueExact
      Step.Monotone.exactly(Math.multiplyExact(_, factor))
    }
}
