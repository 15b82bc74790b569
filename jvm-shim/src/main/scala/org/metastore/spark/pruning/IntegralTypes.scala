package org.metastore.spark.pruning

import org.apache.spark.sql.types.{ByteType, DataType, IntegerType, LongType, ShortType}

/** The types of whole numbers. */
private[pruning] object IntegralTypes {

  def isIntegral(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }

  /** The value, if the type holds it: otherwise Spark's result would have wrapped around or failed. */
  def within(dataType: DataType, value: Long): Long = {
    val fits = dataType match {
      case ByteType => value.isValidByte
      case ShortType => value.isValidShort
      case IntegerType => value.isValidInt
      case _ => true
    }
    if (fits) value else throw new ArithmeticException("overflow")
  }
}
