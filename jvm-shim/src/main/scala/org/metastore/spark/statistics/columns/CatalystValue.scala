package org.metastore.spark.statistics.columns

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.statistics.objects.{DecimalBytes, DoubleOrder, Encoding, Values}

/** Converts stored values to Catalyst's internal values, and these to readable texts. */
object CatalystValue {

  /** The lower bound of a file as Catalyst's internal value. */
  def lo(summary: ColumnSummary, file: Int): Option[Any] = bound(summary, file, low = true)

  /**
   * The upper bound of a file as Catalyst's internal value; NaN if the file has one. A cut text may be
   * invalid UTF-8.
   */
  def hi(summary: ColumnSummary, file: Int): Option[Any] = bound(summary, file, low = false)

  /** The upper bound of the values that are not NaN. */
  def hiNumber(summary: ColumnSummary, file: Int): Option[Any] = summary.bounds match {
    case b: LongBounds if b.hasHi(file) =>
      Some(fromLong(b.hiUpTo(DoubleOrder.NaN - 1)(file), summary.dataType))
    case _ => hi(summary, file)
  }

  private def bound(summary: ColumnSummary, file: Int, low: Boolean): Option[Any] = {
    val bounds = summary.bounds
    if (bounds.has(file, low)) Some(ordered(bounds.ends(low), file, summary.dataType))
    else None
  }

  /** A value in the order of bounds as Catalyst's internal value. */
  def ordered(values: Values, index: Int, dataType: DataType): Any = values match {
    case Values.Longs(array) => fromLong(array(index), dataType)
    case Values.Bytes(array) => fromBytes(array(index), dataType)
  }

  /** A value as stored in a column's encoding, as Catalyst's internal value. */
  def catalyst(value: Any, dataType: DataType): Any = (value, dataType) match {
    case (long: Long, _) => fromLong(long, dataType)
    case (double: Double, FloatType) => double.toFloat
    case (double: Double, _) => double
    case (bytes: Array[Byte], d: DecimalType) => decimal(new java.math.BigInteger(bytes), d)
    case (bytes: Array[Byte], StringType) => UTF8String.fromBytes(bytes)
    case (other, _) => other
  }

  /** Catalyst's internal value in the order of [[LongBounds]]. */
  def orderedLong(value: Any, dataType: DataType): Long = (value, dataType) match {
    case (flag: Boolean, _) => if (flag) 1 else 0
    case (number: Number, FloatType | DoubleType) => DoubleOrder.key(number.doubleValue)
    case (decimal: Decimal, to: DecimalType) => unscaled(decimal, to).longValueExact
    case (number: Number, _) => number.longValue
    case _ => throw new IllegalArgumentException(s"$value is no ${dataType.catalogString}")
  }

  /** Catalyst's internal value in the order of [[BytesBounds]]. */
  def orderedBytes(value: Any, dataType: DataType): Array[Byte] = (value, dataType) match {
    case (text: UTF8String, _) => text.getBytes
    case (bytes: Array[Byte], _) => bytes
    case (decimal: Decimal, to: DecimalType) => DecimalBytes.fromUnscaled(unscaled(decimal, to))
    case _ => throw new IllegalArgumentException(s"$value has no order by bytes")
  }

  private def unscaled(value: Decimal, to: DecimalType): java.math.BigInteger =
    value.toJavaBigDecimal.setScale(to.scale).unscaledValue

  /** Catalyst's internal value as one to be looked up. */
  def point(value: Any, dataType: DataType): Values =
    if (TypePromotion.encoding(dataType).contains(Encoding.BinaryValues))
      Values.Bytes(Array(orderedBytes(value, dataType)))
    else Values.Longs(Array(orderedLong(value, dataType)))

  private val FromLong: Map[DataType, Long => Any] = Map(
    BooleanType -> (_ != 0),
    ByteType -> (_.toByte),
    ShortType -> (_.toShort),
    IntegerType -> (_.toInt),
    DateType -> (_.toInt),
    FloatType -> (DoubleOrder.value(_).toFloat),
    DoubleType -> (DoubleOrder.value(_)))

  private def fromLong(value: Long, dataType: DataType): Any = dataType match {
    case d: DecimalType => decimal(java.math.BigInteger.valueOf(value), d)
    case _: YearMonthIntervalType => value.toInt
    case _ => FromLong.get(dataType).fold[Any](value)(_(value))
  }

  private def fromBytes(value: Array[Byte], dataType: DataType): Any = dataType match {
    case d: DecimalType => decimal(DecimalBytes.unscaled(value), d)
    case StringType => UTF8String.fromBytes(value)
    case _ => value
  }

  private def decimal(unscaled: java.math.BigInteger, d: DecimalType): Decimal =
    Decimal(new java.math.BigDecimal(unscaled, d.scale), d.precision, d.scale)
}
