package org.metastore.spark.pruning

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.statistics.objects.{DecimalBytes, DoubleOrder, UnsignedOrder, Values}

/** Takes values of literals to the order in which bounds are kept, and builds sets of them. */
private[pruning] object LiteralValues {

  /** A value in the order of bounds. */
  sealed trait Key
  final case class LongKey(value: Long) extends Key
  final case class BytesKey(value: Array[Byte]) extends Key

  /** The key of Catalyst's internal value; `None` where the type has no order here, or the value does not fit it. */
  def key(value: Any, dataType: DataType): Option[Key] = (value, dataType) match {
    case (b: Boolean, BooleanType) =>
      Some(LongKey(if (b) 1 else 0))
    case (n: Number, ByteType | ShortType | IntegerType | LongType) =>
      Some(LongKey(n.longValue))
    case (n: Number, DateType | TimestampType | TimestampNTZType) =>
      Some(LongKey(n.longValue))
    case (n: Number, FloatType | DoubleType) =>
      Some(LongKey(DoubleOrder.key(n.doubleValue)))
    case (d: Decimal, to: DecimalType) =>
      decimal(d, to)
    case (s: UTF8String, StringType) =>
      Some(BytesKey(s.getBytes))
    case (b: Array[Byte], BinaryType) =>
      Some(BytesKey(b))
    case _ => None
  }

  private def decimal(value: Decimal, to: DecimalType): Option[Key] = {
    val exact = value.toJavaBigDecimal
    val isRounded = exact.stripTrailingZeros.scale > to.scale
    if (isRounded) None
    else {
      val unscaled = exact.setScale(to.scale).unscaledValue
      val isLong = to.precision <= Decimal.MAX_LONG_DIGITS
      if (isLong && unscaled.bitLength < 64) Some(LongKey(unscaled.longValue))
      else if (!isLong && unscaled.bitLength < 128) Some(BytesKey(DecimalBytes.of(unscaled)))
      else None
    }
  }

  /** The single value. */
  def point(key: Key): ValueSet = points(Seq(key)).get

  /** The single values, of one kind; `None` where there is none. */
  def points(keys: Seq[Key]): Option[ValueSet] = {
    val numbers = keys.collect { case LongKey(value) => value }
    val texts = keys.collect { case BytesKey(value) => value }
    if (texts.nonEmpty) {
      val sorted = texts.sortWith((a, b) => UnsignedOrder.compare(a, b) < 0)
      Some(ValueSet.ofSorted(Values.Bytes(sorted.toArray)))
    } else if (numbers.nonEmpty) Some(ValueSet.ofSorted(Values.Longs(numbers.distinct.sorted.toArray)))
    else None
  }

  /** All values below the key; `None` where there cannot be any. */
  def below(key: Key, included: Boolean): Option[ValueSet] = key match {
    case LongKey(value) if included =>
      Some(ValueSet.LongRange(Long.MinValue, value))
    case LongKey(Long.MinValue) => None
    case LongKey(value) =>
      Some(ValueSet.LongRange(Long.MinValue, value - 1))
    case BytesKey(value) =>
      Some(ValueSet.BytesRange(null, value, included))
  }

  /** All values above the key; `None` where there cannot be any. The byte string that follows ends in a zero byte more. */
  def above(key: Key, included: Boolean): Option[ValueSet] = key match {
    case LongKey(value) if included =>
      Some(ValueSet.LongRange(value, Long.MaxValue))
    case LongKey(Long.MaxValue) => None
    case LongKey(value) =>
      Some(ValueSet.LongRange(value + 1, Long.MaxValue))
    case BytesKey(value) =>
      Some(ValueSet.BytesRange(if (included) value else value :+ 0.toByte, null, hiIncluded = false))
  }
}
