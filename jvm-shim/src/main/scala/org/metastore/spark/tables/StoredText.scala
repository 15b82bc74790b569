package org.metastore.spark.tables

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.{Cast, Literal}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** A stored value as text: numbers, dates, instants and unscaled decimals in digits, bytes in hexadecimal. */
object StoredText {

  /** The text of Catalyst's value. */
  def render(value: Any, dataType: DataType): Option[String] = (value, dataType) match {
    case (null, _) => None
    case (flag: Boolean, _) => Some(if (flag) "1" else "0")
    case (number: Number, FloatType | DoubleType) => Some(number.doubleValue.toString)
    case (decimal: Decimal, d: DecimalType) =>
      Some(decimal.toJavaBigDecimal.setScale(d.scale).unscaledValue.toString)
    case (text: UTF8String, _) => Some(hex(text.getBytes))
    case (bytes: Array[Byte], _) => Some(hex(bytes))
    case (other, _) => Some(other.toString)
  }

  /**
   * The stored form of a text in a table's metadata, `Some(None)` for null; None if its meaning is unknown.
   */
  def parse(text: String, dataType: DataType): Option[Option[String]] = dataType match {
    // Readers take an empty text for null.
    case _ if text == null || text.isEmpty => Some(None)
    // Writers differ in zones and encodings.
    case TimestampType | TimestampNTZType | BinaryType | _: DayTimeIntervalType | _: YearMonthIntervalType =>
      None
    case d: DecimalType =>
      Try(render(Decimal(new java.math.BigDecimal(text).setScale(d.scale), d.precision, d.scale), d)).toOption
    case _ =>
      Try(render(Cast(Literal(text), dataType, Some("UTC"), ansiEnabled = true).eval(), dataType)).toOption
  }

  private def hex(bytes: Array[Byte]): String = bytes.map(b => f"${b & 0xff}%02x").mkString
}
