package org.metastore.spark.statistics.values

import java.util.Arrays

import org.apache.spark.sql.types.Decimal

/**
 * Rows of a column with values between `lo` and `hi`, spread evenly; one value if both are equal.
 *
 * @param lo    the least value, as Catalyst's internal value
 * @param from  the position of `lo` on the axis
 * @param until the position of `hi`
 */
final case class Bucket(lo: Any, hi: Any, from: Double, until: Double, rows: Double, distinct: Double) {

  /** Whether all of its rows have one value. */
  val isSingle: Boolean = (lo, hi) match {
    case (least: Array[Byte], most: Array[Byte]) =>
      Arrays.equals(least, most)
    case _ => lo == hi
  }

  /** The number of rows between two positions, both included. */
  def between(least: Double, most: Double): Double =
    if (most < from || least > until) 0
    else if (from >= least && until <= most) rows
    else rows * math.max(0.0, math.min(until, most) - math.max(from, least)) / (until - from)
}

object Bucket {

  /** The order by positions on the axis. */
  val order: Ordering[Bucket] = (a, b) => {
    val begin = java.lang.Double.compare(a.from, b.from)
    if (begin != 0) begin else java.lang.Double.compare(a.until, b.until)
  }

  def single(value: Any, at: Double, rows: Double): Bucket = Bucket(value, value, at, at, rows, 1)

  /** The value at a share of the way from `lo` to `hi`; None if they are no numbers. */
  def middle(lo: Any, hi: Any, share: Double): Option[Any] = (lo, hi) match {
    case (a: Int, b: Int) => Some((a + math.round((b.toLong - a) * share)).toInt)
    case (a: Long, b: Long) => Some(a + math.round((b.toDouble - a) * share))
    case (a: Short, b: Short) => Some((a + math.round((b - a) * share)).toShort)
    case (a: Byte, b: Byte) => Some((a + math.round((b - a) * share)).toByte)
    case (a: Double, b: Double) => Some(a + (b - a) * share)
    case (a: Float, b: Float) => Some((a + (b - a) * share).toFloat)
    case (a: Decimal, b: Decimal) =>
      val scale = a.scale
      val mean = a.toBigDecimal + (b.toBigDecimal - a.toBigDecimal) * share
      Some(Decimal(mean.setScale(scale, BigDecimal.RoundingMode.HALF_UP), a.precision, scale))
    case _ => None
  }
}
