package org.metastore.spark.estimates

import org.apache.spark.sql.types._

/** What Spark's estimates can be told of values, by their type. */
private[estimates] object EstimatedTypes {

  /** TIMESTAMP_NTZ, TIME and intervals make Spark 4.1's range estimation fail: nothing is said of them. */
  def isSupported(dataType: DataType): Boolean =
    isOrdered(dataType) || dataType == StringType || dataType == BinaryType

  /** Types whose values Spark estimates by minimum and maximum. */
  def isOrdered(dataType: DataType): Boolean = dataType match {
    case BooleanType | DateType | TimestampType => true
    case _: NumericType => true
    case _ => false
  }

  /** Spark divides by the width of the range: an infinite one makes it fail. */
  def isFinite(dataType: DataType, lo: Any, hi: Any): Boolean = dataType match {
    case FloatType | DoubleType =>
      val width = number(hi) - number(lo)
      !width.isNaN && !width.isInfinite
    case _ => true
  }

  /** How many values the range can hold. */
  def domain(dataType: DataType, bounds: (Option[Any], Option[Any])): Double = (dataType, bounds) match {
    case (ByteType | ShortType | IntegerType | LongType | DateType, (Some(lo), Some(hi))) =>
      number(hi) - number(lo) + 1
    case (BooleanType, (Some(lo), Some(hi))) =>
      if (lo == hi) 1 else 2
    case _ => Double.MaxValue
  }

  private def number(value: Any): Double = value match {
    case n: java.lang.Number => n.doubleValue
    case other =>
      throw new IllegalArgumentException(s"$other is not a number")
  }

  /** The length of values: as measured, of texts; of others that of the type. */
  def length(dataType: DataType, measured: Double): Long = dataType match {
    case StringType | BinaryType if measured >= 0 =>
      math.ceil(measured).toLong
    case other => other.defaultSize.toLong
  }
}
