package org.metastore.spark.pruning

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.store.{UnsignedOrder, DecimalBytes, DoubleOrder}

/** Takes values of literals to the order in which bounds are kept, and builds sets of them. */
private[pruning] object LiteralValues {

  /** A value in the order of bounds. */
  sealed trait Key
  final case class LongKey(value: Long) extends Key
  final case class BytesKey(value: Array[Byte]) extends Key

  /** The key of Catalyst's internal value; `None` where the type has no order here, or the value does not fit it. */
  def key(value: Any, dataType: DataType): Option[Key] = (value, dataType) match {
    case (b: Boolean, BooleanType) => Some(LongKey(if (b) 1 else 0))
    case (n: Number, ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType) =>
      Some(LongKey(n.longValue))
    case (n: Number, FloatType | DoubleType) => Some(LongKey(DoubleOrder.key(n.doubleValue)))
    case (d: Decimal, to: DecimalType) => decimal(d, to)
    case (s: UTF8String, StringType) => Some(BytesKey(s.getBytes))
    case (b: Array[Byte], BinaryType) => Some(BytesKey(b))
    case _ => None
  }

  private def decimal(value: Decimal, to: DecimalType): Option[Key] = {
    val exact = value.toJavaBigDecimal
    if (exact.stripTrailingZeros.scale > to.scale) None
    else {
      val unscaled = exact.setScale(to.scale).unscaledValue
      if (to.precision <= 18) if (unscaled.bitLength < 64) Some(LongKey(unscaled.longValue)) else None
      else if (unscaled.bitLength < 128) Some(BytesKey(DecimalBytes.of(unscaled)))
      else None
    }
  }

  /** The single value. */
  def point(key: Key): ValueSet = key match {
    case LongKey(value) => ValueSet.LongRange(value, value)
    case BytesKey(value) => ValueSet.BytesRange(value, value, hiIncluded = true)
  }

  /** The single values, of one kind; `None` where there is none. */
  def points(keys: Seq[Key]): Option[ValueSet] = keys match {
    case Seq() => None
    case Seq(only) => Some(point(only))
    case Seq(_: LongKey, _*) => Some(ValueSet.LongPoints(keys.collect { case LongKey(v) => v }.distinct.sorted.toArray))
    case _ =>
      val sorted = keys.collect { case BytesKey(v) => v }.sortWith((a, b) => UnsignedOrder.compare(a, b) < 0)
      Some(ValueSet.BytesPoints(sorted.toArray))
  }

  /** All values below the key; `None` where there cannot be any. */
  def below(key: Key, included: Boolean): Option[ValueSet] = key match {
    case LongKey(value) if included => Some(ValueSet.LongRange(Long.MinValue, value))
    case LongKey(Long.MinValue) => None
    case LongKey(value) => Some(ValueSet.LongRange(Long.MinValue, value - 1))
    case BytesKey(value) => Some(ValueSet.BytesRange(null, value, included))
  }

  /** All values above the key; `None` where there cannot be any. The byte string that follows ends in a zero byte more. */
  def above(key: Key, included: Boolean): Option[ValueSet] = key match {
    case LongKey(value) if included => Some(ValueSet.LongRange(value, Long.MaxValue))
    case LongKey(Long.MaxValue) => None
    case LongKey(value) => Some(ValueSet.LongRange(value + 1, Long.MaxValue))
    case BytesKey(value) => Some(ValueSet.BytesRange(if (included) value else value :+ 0.toByte, null, hiIncluded = false))
  }
}
