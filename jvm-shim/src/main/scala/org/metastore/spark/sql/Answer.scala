package org.metastore.spark.sql

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData
import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.UTF8String

/** Builds rows from what Scala code has at hand: texts, options and numbers. */
object ResultRow {
  private val Digits = 38
  private val Most = BigInt(10).pow(Digits) - 1

  /** One row; `None` is null, texts become Spark's. */
  def row(values: Any*): InternalRow = new GenericInternalRow(values.map(internal).toArray[Any])

  /** A number of any size as DECIMAL(38,0), the largest there is beyond it. */
  def decimalOf(number: BigInt): Decimal = Decimal(BigDecimal(number.min(Most)), Digits, 0)

  /** A map of texts. */
  def texts(entries: Seq[(String, String)]): ArrayBasedMapData = {
    val (keys, values) = entries.unzip
    ArrayBasedMapData(keys.map(UTF8String.fromString).toArray[Any], values.map(UTF8String.fromString).toArray[Any])
  }

  private def internal(value: Any): Any = value match {
    case None | null => null
    case Some(inner) => internal(inner)
    case text: String => UTF8String.fromString(text)
    case other => other
  }
}
