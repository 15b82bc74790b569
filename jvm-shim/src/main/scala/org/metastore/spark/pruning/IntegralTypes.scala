package org.metastore.spark.pruning

import org.apache.spark.sql.types.{ByteType, DataType, IntegerType, LongType, ShortType}

/** The types of whole numbers. */
private[pruning] object IntegralTypes {

  /** The least and the greatest value of a type, and their number of digits. */
  private final class Limits(val least: Long, val most: Long, val digits: Int)

  private val LimitsOfTypes: Map[DataType, Limits] = Map(
    ByteType -> new Limits(Byte.MinValue, Byte.MaxValue, 3),
    ShortType -> new Limits(Short.MinValue, Short.MaxValue, 5),
    IntegerType -> new Limits(Int.MinValue, Int.MaxValue, 10),
    LongType -> new Limits(Long.MinValue, Long.MaxValue, 19))

  def isIntegral(dataType: DataType): Boolean = LimitsOfTypes.contains(dataType)

  /** The most digits that values of an integral type have. */
  def digits(integral: DataType): Int = LimitsOfTypes(integral).digits

  /** Returns the value if the integral type has it. Throws otherwise: Spark's result wraps or fails. */
  def within(integral: DataType, value: Long): Long = {
    val limits = LimitsOfTypes(integral)
    if (value < limits.least || value > limits.most) throw new ArithmeticException("overflow")
    value
  }

  /** Matches an expression of an integral type. */
  object Integral {
    def unapply(dataType: DataType): Boolean = isIntegral(dataType)
  }
}
