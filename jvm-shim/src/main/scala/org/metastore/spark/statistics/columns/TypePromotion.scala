package org.metastore.spark.statistics.columns

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.statistics.objects.{ColumnEntry, DecimalBytes, DoubleOrder, Encoding, Values}

/** What statistics written under one type can say about a column that the query sees as another. */
sealed trait TypePromotion

object TypePromotion {

  /** Bounds and counts. */
  case object Full extends TypePromotion

  /** Counts only: bounds of such a type say nothing. */
  case object Counts extends TypePromotion

  /** Nothing. */
  case object Nothing extends TypePromotion

  private val DecimalType18 = 18

  def of(entry: ColumnEntry, dataType: DataType): TypePromotion = {
    val written = entry.dataType
    if (entry.collation.exists(_ != "UTF8_BINARY") && dataType == StringType) Nothing
    else if (entry.casts && dataType == DoubleType && written == "float") Nothing
    else if (encoding(dataType).exists(entry.encoding.contains) && sameOrPromoted(written, dataType)) Full
    else if (written == dataType.catalogString || isChar(written, dataType)) Counts
    else Nothing
  }

  /** Whether bounds of the type may decide comparisons; otherwise only its counts say something. */
  def hasBounds(dataType: DataType): Boolean = encoding(dataType).isDefined

  /** The encoding whose bounds agree with Spark's order of the type; none where bounds say nothing. */
  def encoding(dataType: DataType): Option[Encoding] = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType | TimestampNTZType =>
      Some(Encoding.LongValues)
    case d: DecimalType =>
      Some(if (d.precision <= DecimalType18) Encoding.LongValues else Encoding.BinaryValues)
    case FloatType | DoubleType => Some(Encoding.DoubleValues)
    case BinaryType => Some(Encoding.BinaryValues)
    case StringType => Some(Encoding.BinaryValues) // equal only to UTF8_BINARY without a length
    case _ => None
  }

  private def sameOrPromoted(written: String, dataType: DataType): Boolean = dataType match {
    case ShortType => Set("smallint", "tinyint")(written)
    case IntegerType => Set("int", "smallint", "tinyint")(written)
    case LongType => Set("bigint", "int", "smallint", "tinyint")(written)
    case DoubleType => Set("double", "float")(written)
    case StringType => written == "string" || written.startsWith("varchar(")
    case d: DecimalType => decimal(written).exists { case (precision, scale) =>
        scale == d.scale && precision <= d.precision
      }
    case other => written == other.catalogString
  }

  private val Decimal = "decimal\\((\\d{1,2}),(\\d{1,2})\\)".r

  private def decimal(written: String): Option[(Int, Int)] = written match {
    case Decimal(precision, scale) => Some((precision.toInt, scale.toInt))
    case _ => None
  }

  private def isChar(written: String, dataType: DataType): Boolean =
    dataType == StringType && written.startsWith("char(")
}

/** Converts stored values to Catalyst's internal values and back to what people read. */
object CatalystValue {

  /** The lower bound of a file as Catalyst's internal value. */
  def lo(summary: ColumnSummary, file: Int): Option[Any] = bound(summary, file, low = true)

  /** The upper bound of a file as Catalyst's internal value; NaN where the file holds one. A cut one may be invalid UTF-8. */
  def hi(summary: ColumnSummary, file: Int): Option[Any] = bound(summary, file, low = false)

  /** As `hi`, of the values that are no NaN. */
  def hiNumber(summary: ColumnSummary, file: Int): Option[Any] = summary.bounds match {
    case b: LongBounds if b.hasHi(file) => Some(ofLong(b.hiUpTo(DoubleOrder.NaN - 1)(file), summary.dataType))
    case _ => hi(summary, file)
  }

  private def bound(summary: ColumnSummary, file: Int, low: Boolean): Option[Any] = summary.bounds match {
    case b: LongBounds if (if (low) b.hasLo(file) else b.hasHi(file)) =>
      Some(ofLong(if (low) b.lo(file) else b.hi(file), summary.dataType))
    case b: BytesBounds => Option(if (low) b.lo(file) else b.hi(file)).map(ofBytes(_, summary.dataType))
    case _ => None
  }

  /** One of some values in the order of bounds, as Catalyst's internal value. */
  def ordered(values: Values, place: Int, dataType: DataType): Any = values match {
    case Values.Longs(array) => ofLong(array(place), dataType)
    case Values.Bytes(array) => ofBytes(array(place), dataType)
  }

  /** A value as stored in a column's encoding, as Catalyst's internal value. */
  def catalyst(value: Any, dataType: DataType): Any = (value, dataType) match {
    case (long: Long, _) => ofLong(long, dataType)
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
    case (decimal: Decimal, d: DecimalType) =>
      decimal.toJavaBigDecimal.setScale(d.scale).unscaledValue.longValueExact
    case (number: Number, _) => number.longValue
    case _ => throw new IllegalArgumentException(s"$value is no ${dataType.catalogString}")
  }

  /** Catalyst's internal value in the order of [[BytesBounds]]. */
  def orderedBytes(value: Any): Array[Byte] = value match {
    case text: UTF8String => text.getBytes
    case bytes: Array[Byte] => bytes
    case decimal: Decimal => DecimalBytes.of(decimal.toJavaBigDecimal.unscaledValue)
    case other => throw new IllegalArgumentException(s"$other has no order by bytes")
  }

  /** Catalyst's internal value as one to be looked up. */
  def point(value: Any, dataType: DataType): Values =
    if (TypePromotion.encoding(dataType).contains(Encoding.BinaryValues))
      Values.Bytes(Array(orderedBytes(value)))
    else Values.Longs(Array(orderedLong(value, dataType)))

  private def ofLong(value: Long, dataType: DataType): Any = dataType match {
    case BooleanType => value != 0
    case ByteType => value.toByte
    case ShortType => value.toShort
    case IntegerType | DateType | _: YearMonthIntervalType => value.toInt
    case FloatType => DoubleOrder.value(value).toFloat
    case DoubleType => DoubleOrder.value(value)
    case d: DecimalType => decimal(java.math.BigInteger.valueOf(value), d)
    case _ => value
  }

  private def ofBytes(value: Array[Byte], dataType: DataType): Any = dataType match {
    case d: DecimalType => decimal(DecimalBytes.unscaled(value), d)
    case StringType => UTF8String.fromBytes(value)
    case _ => value
  }

  private def decimal(unscaled: java.math.BigInteger, d: DecimalType): Decimal =
    Decimal(new java.math.BigDecimal(unscaled, d.scale), d.precision, d.scale)
}
