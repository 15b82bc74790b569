package org.metastore.spark.statistics.values

import java.math.BigInteger
import java.util.Arrays

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import org.metastore.spark.statistics.objects.UnsignedOrder

/** The positions of values on a line: numbers as they are, texts by the bytes after their common prefix. */
final class Axis(dataType: DataType, common: Array[Byte]) {

  /** The distance of two neighbouring values; 0 if there is always another value between two. */
  val unit: Double = dataType match {
    case ByteType | ShortType | IntegerType | LongType | DateType | BooleanType => 1
    case d: DecimalType => math.pow(10, -d.scale)
    case _ => 0
  }

  /** The position of a value. */
  def at(value: Any): Double = value match {
    case flag: Boolean => if (flag) 1 else 0
    case decimal: Decimal => decimal.toDouble
    case number: Number => math.max(-Axis.Edge, math.min(number.doubleValue, Axis.Edge))
    case text: UTF8String => positionOf(text.getBytes)
    case bytes: Array[Byte] => positionOf(bytes)
    case other => throw new IllegalArgumentException(s"$other has no position")
  }

  private def positionOf(bytes: Array[Byte]): Double = {
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
  private val Bytes = 6 // as many as a double represents exactly
  private val Edge = Double.MaxValue / 4 // stands for infinity, so that ranges have a width

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
