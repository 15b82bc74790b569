package org.metastore.spark.statistics.values

import java.math.BigInteger
import java.util.Arrays

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.statistics.objects.UnsignedOrder

/** Places of values on a line: numbers as they are, texts by the bytes behind the common prefix of the column. */
final class Axis(dataType: DataType, common: Array[Byte]) {

  /** The distance of neighbours; 0 if there is always a value between two values. */
  val unit: Double = dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | BooleanType => 1
    case d: DecimalType => math.pow(10, -d.scale)
    case _ => 0
  }

  /** The place of a value. */
  def at(value: Any): Double = value match {
    case flag: Boolean => if (flag) 1 else 0
    case decimal: Decimal => decimal.toDouble
    case number: Number => math.max(-Axis.Edge, math.min(number.doubleValue, Axis.Edge))
    case text: UTF8String => placeOf(text.getBytes)
    case bytes: Array[Byte] => placeOf(bytes)
    case other => throw new IllegalArgumentException(s"$other has no place")
  }

  private def placeOf(bytes: Array[Byte]): Double = {
    val order = UnsignedOrder.compare(Arrays.copyOf(bytes, math.min(bytes.length, common.length)), common)
    if (order < 0) -1
    else if (order > 0) Axis.Edge
    else {
      val digits = Arrays.copyOfRange(bytes, common.length, common.length + Axis.Bytes)
      new BigInteger(1, digits).doubleValue
    }
  }
}

object Axis {
  private val Bytes = 6 // doubles have room for them
  private val Edge = Double.MaxValue / 4 // of infinities: ranges have a width

  /** The axis of a column with a least and a greatest value. */
  def between(dataType: DataType, least: Option[Any], most: Option[Any]): Axis = {
    val both = (least, most) match {
      case (Some(lo: UTF8String), Some(hi: UTF8String)) => lo.getBytes.zip(hi.getBytes)
      case (Some(lo: Array[Byte]), Some(hi: Array[Byte])) => lo.zip(hi)
      case _ => Array.empty[(Byte, Byte)]
    }
    new Axis(dataType, both.takeWhile { case (a, b) => a == b }.map(_._1))
  }
}
