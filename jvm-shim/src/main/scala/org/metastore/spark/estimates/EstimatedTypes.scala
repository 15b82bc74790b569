package org.metastore.spark.estimates

import org.apache.spark.sql.types._

/** The types whose statistics Spark's estimates can use. */
private[estimates] object EstimatedTypes {
  private val Texts: Set[DataType] = Set(StringType, BinaryType)
  private val Floating: Set[DataType] = Set(FloatType, DoubleType)
  private val Whole: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType, DateType)
  private val OrderedBesideNumbers: Set[DataType] = Set(BooleanType, DateType, TimestampType)

  /**
   * Whether Spark gets statistics of a type. Spark 4.1 fails on ranges of TIMESTAMP_NTZ, TIME and intervals.
   */
  def isSupported(dataType: DataType): Boolean = isOrdered(dataType) || Texts(dataType)

  /** Whether Spark estimates conditions on a type by minimum and maximum. */
  def isOrdered(dataType: DataType): Boolean =
    OrderedBesideNumbers(dataType) || dataType.isInstanceOf[NumericType]

  /** Whether a range has a finite width: Spark divides by it. */
  def isFinite(dataType: DataType, lo: Any, hi: Any): Boolean =
    !Floating(dataType) || java.lang.Double.isFinite(number(hi) - number(lo))

  /** The number of values that a range can hold. */
  def domain(dataType: DataType, bounds: (Option[Any], Option[Any])): Double = bounds match {
    case (Some(lo), Some(hi)) if Whole(dataType) => number(hi) - number(lo) + 1
    case (Some(lo), Some(hi)) if dataType == BooleanType => if (lo == hi) 1 else 2
    case _ => Double.MaxValue
  }

  private def number(value: Any): Double = value.asInstanceOf[Number].doubleValue

  /** The average length of values: as measured for texts, else the size of the type. */
  def length(dataType: DataType, measured: Double): Long =
    if (Texts(dataType) && measured >= 0) math.ceil(measured).toLong
    else dataType.defaultSize.toLong
}
