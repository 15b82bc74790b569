package org.metastore.spark.pruning

import org.apache.spark.sql.types.{DataType, Decimal, DecimalType}

import org.metastore.spark.reason.Optional
import org.metastore.spark.statistics.columns.{CatalystValue, TypePromotion}
import org.metastore.spark.statistics.objects.{Encoding, UnsignedOrder, Values}

/** Converts values of literals to the order in which bounds are stored, and builds sets of them. */
private[pruning] object LiteralValues {

  /** A value in the order of bounds, of one of two kinds. */
  sealed trait Key {
    def toLong: Long = otherKind
    def toBytes: Array[Byte] = otherKind

    /** All values below the key; None if there are none. */
    def valuesBelow(included: Boolean): Option[ValueSet]

    /** All values above the key; None if there are none. */
    def valuesAbove(included: Boolean): Option[ValueSet]

    private def otherKind = throw new IllegalArgumentException(s"$this is of another kind")
  }

  final case class LongKey(value: Long) extends Key {
    override def toLong: Long = value

    override def valuesBelow(included: Boolean): Option[ValueSet] =
      if (included) Some(ValueSet.LongRange(Long.MinValue, value))
      else Optional.when(value > Long.MinValue)(ValueSet.LongRange(Long.MinValue, value - 1))

    override def valuesAbove(included: Boolean): Option[ValueSet] =
      if (included) Some(ValueSet.LongRange(value, Long.MaxValue))
      else Optional.when(value < Long.MaxValue)(ValueSet.LongRange(value + 1, Long.MaxValue))
  }

  final case class BytesKey(value: Array[Byte]) extends Key {
    override def toBytes: Array[Byte] = value

    override def valuesBelow(included: Boolean): Option[ValueSet] =
      Some(ValueSet.BytesRange(null, value, included))

    // The next byte string has one more byte, a zero.
    override def valuesAbove(included: Boolean): Option[ValueSet] =
      Some(ValueSet.BytesRange(if (included) value else value :+ 0.toByte, null, hiIncluded = false))
  }

  /** The key of Catalyst's internal value; None if the type has no order here, or lacks the value. */
  def key(value: Any, dataType: DataType): Option[Key] = (value, dataType) match {
    case (null, _) => None
    case (decimal: Decimal, to: DecimalType) if isRounded(decimal, to) => None
    case _ =>
      TypePromotion.encoding(dataType).map(keyIn(_, value, dataType))
  }

  private def isRounded(value: Decimal, to: DecimalType): Boolean =
    value.toJavaBigDecimal.stripTrailingZeros.scale > to.scale

  private def keyIn(encoding: Encoding, value: Any, dataType: DataType): Key =
    if (encoding == Encoding.BinaryValues) BytesKey(CatalystValue.orderedBytes(value, dataType))
    else LongKey(CatalystValue.orderedLong(value, dataType))

  /** The set of one value. */
  def point(key: Key): ValueSet = points(Seq(key)).get

  /** The set of several values of one kind; None if there are none. */
  def points(keys: Seq[Key]): Option[ValueSet] = keys.headOption.map {
    case _: LongKey =>
      ValueSet.fromSorted(Values.Longs(keys.map(_.toLong).distinct.sorted.toArray))
    case _: BytesKey =>
      val sorted = keys.map(_.toBytes).sortWith((a, b) => UnsignedOrder.compare(a, b) < 0)
      ValueSet.fromSorted(Values.Bytes(sorted.toArray))
  }
}
